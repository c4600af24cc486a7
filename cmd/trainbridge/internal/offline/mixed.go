package offline

import (
	"bytes"
	"slices"

	"go.opentelemetry.io/collector/component"

	"github.com/trainbridge/trainbridge/bridge/tail"
)

// tqTrace is the type of the receiver of TransferQueue's logs.
var tqTrace = component.MustNewType("tq_trace")

// findSecond sets the second receiver of a file with two kinds of logs: the output of verl's driver has steps of verl between lines of TransferQueue, which Ray
// forwards from the workers. The receiver of TransferQueue is the first, whichever line comes first.
func (f *File) findSecond(owner component.ID, sorter *tail.Sorter) {
	switch owner.Type() {
	case tqTrace:
		if also, ok := sorter.Understands(f.Path, trainLog, verlStep, isVerlStep); ok {
			f.Also = also.String()
		}
	case trainLog:
		if first, ok := sorter.Understands(f.Path, tqTrace, tqTag, func([]byte) bool { return true }); ok {
			f.Receiver, f.Also = first.String(), owner.String()
		}
	}
}

// Mixes reports whether one file may have lines of both receivers.
func Mixes(a, b component.ID) bool {
	return a.Type() == tqTrace && b.Type() == trainLog || a.Type() == trainLog && b.Type() == tqTrace
}

// Texts in verl's steps and in the lines of TransferQueue.
var verlStep, tqTag = []byte("step:"), []byte("[TQ-TRACE]")

// isVerlStep reports whether a line may be a step of verl's console logger: "step:12 - actor/loss:0.5 - …" (verl/utils/tracking.py).
func isVerlStep(text []byte) bool {
	_, rest, ok := bytes.Cut(text, verlStep)
	number := bytes.TrimLeft(rest, "0123456789")
	return ok && len(number) < len(rest) && bytes.HasPrefix(number, []byte(" - "))
}

// mixedGlobs returns globs of the files with two kinds of logs of which a receiver reads one: files of a job, or all files if the job has no list.
func (r *Reading) mixedGlobs(of component.Type, job []string) []any {
	var files []string
	for _, f := range r.Files {
		if f.Also != "" && (of == tqTrace || of == trainLog) && (len(job) == 0 || slices.Contains(job, f.Path)) {
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
