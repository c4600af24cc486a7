package offline

import (
	"slices"

	"go.opentelemetry.io/collector/component"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/mixed"
)

// findSecond sets the second receiver of a file with two kinds of logs.
func (f *File) findSecond(owner component.ID, sorter *tail.Sorter) {
	beside := mixed.With(owner.Type())
	if beside == nil {
		return
	}
	also, ok := sorter.Understands(f.Path, beside.Receiver, beside.Text, beside.May)
	switch {
	case !ok:
	case beside == &mixed.TransferQueue:
		f.Receiver, f.Also = also.String(), owner.String()
	default:
		f.Also = also.String()
	}
}

// mixedGlobs returns globs of the files with two kinds of logs of which a receiver reads one: files of a job, or all files if the job has no list.
func (r *Reading) mixedGlobs(of component.Type, job []string) []any {
	var files []string
	for _, f := range r.Files {
		if f.Also != "" && mixed.With(of) != nil && (len(job) == 0 || slices.Contains(job, f.Path)) {
			files = append(files, f.Path)
		}
	}
	return globsOf(files)
}

// secondFiles returns the files whose second receiver is id.
func (o *Options) secondFiles(files []string, id component.ID) (secondFiles []string) {
	if o.reading == nil {
		return nil
	}
	for _, f := range files {
		if o.reading.File(f).Also == id.String() {
			secondFiles = append(secondFiles, f)
		}
	}
	return secondFiles
}

// watchSecond returns watch, replaced by Reading.watchSecond for the files whose second receiver is watched.
func (o *Options) watchSecond(also []string, watch func(path string) LineWatch) func(path string) LineWatch {
	return func(path string) LineWatch {
		if slices.Contains(also, path) {
			return o.reading.watchSecond(path)
		}
		return watch(path)
	}
}
