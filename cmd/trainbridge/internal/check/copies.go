package check

import (
	"fmt"
	"maps"
	"slices"
)

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
	seen := make(map[string][]place) // by the file that is read instead
	for _, c := range r.got.Copies {
		seen[c.Of] = append(seen[c.Of], place{File: c.Path})
	}
	for _, of := range slices.Sorted(maps.Keys(seen)) {
		n := int64(len(seen[of]))
		r.find(finding{
			Name: "copies", What: fmt.Sprintf("%s all of whose steps are in %s", count(n, "file is not read,", "files are not read,"), r.got.Name(of)), Seen: seen[of],
			Why: "Checkpoints repeat the log so far; TensorBoard and W&B repeat what is printed.", Fix: "Nothing.",
		})
	}
}
