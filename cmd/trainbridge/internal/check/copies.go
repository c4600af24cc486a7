package check

import "fmt"

// copies reports repeated lines and files, whose steps count once.
func (r *rules) copies() {
	for _, f := range r.got.Files {
		if n := f.CopiedLines(); n > 0 {
			r.find(finding{
				Name: "copies", What: fmt.Sprintf("%s of %s repeat what another rank wrote", count(n, "line", "lines"), f.Name),
				Seen: []place{{File: f.Name, Line: r.got.LineAt(f.Path, f.Ignored["copy"].Offset), Text: f.Ignored["copy"].Text}},
				Why:  "All ranks print the steps of the job: steps count once, and slow ranks are not known.", Fix: "Print on one rank, or nothing.",
			})
		}
	}
	if n := len(r.got.Copies); n > 0 {
		f := finding{
			Name: "copies", What: fmt.Sprintf("%s all of whose steps are in %s", count(int64(n), "file is not read,", "files are not read,"), r.got.Copies[0].Of),
			Why: "Checkpoints repeat the log so far; TensorBoard and W&B repeat what is printed.", Fix: "Nothing.",
		}
		for _, c := range r.got.Copies {
			f.Seen = append(f.Seen, place{File: c.Path})
		}
		r.find(f)
	}
}
