package offline

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/spans"
)

// job is the files of one run.
type job struct {
	run   string // ml.run.id
	files []string
}

// partOfJob matches directories with the part of a job written by a rank, a host or an attempt, such as torchrun's <log_dir>/<run_id>/attempt_0/3/stdout.log
// (torch/distributed/elastic/multiprocessing/api.py), a host by its address, or a checkpoint of Hugging Face's Trainer.
var partOfJob = regexp.MustCompile(`(?i)^(\d+|\d+\.\d+\.\d+\.\d+|checkpoint-\d+|` +
	`(attempt|rank|local_rank|global_rank|host|node|worker|gpu|proc|process|pod|machine)[-_]?\d+|` +
	`((gpu|compute)[-_])?(host|node|machine)[-_]?(\d+|[a-z]))$`)

// trainReceivers are the receivers of logs with steps. Other logs, of collectives, RPCs and the like, accompany a job.
var trainReceivers = map[string]bool{"train_log": true, "flagscale": true}

// jobs groups files by job. The logs in one directory belong to one job. Below a directory named by the user, logs of different kinds also belong to one job,
// as do logs that accompany a single training. If two directories there have logs of the same kind, each is a job, unless by their names they are parts of one.
// kind returns the receiver of a file, "" for none.
func (in *Input) jobs(run string, kind func(file string) string) (jobs []job) {
	run = cmp.Or(run, os.Getenv("TRAINBRIDGE_RUN_ID")) // a run that the user names is that of all files
	by := make(map[string]*job)                        // by run id
	put := func(id string, files []string) {
		if by[id] == nil {
			by[id] = &job{run: id}
		}
		by[id].files = append(by[id].files, files...)
	}
	for _, r := range in.roots {
		files := slices.DeleteFunc(slices.Clone(r.files), func(f string) bool { return kind(f) == "" })
		switch {
		case len(files) == 0:
		case run != "":
			put(spans.Name(run), files)
		case r.dir:
			at, _ := resolve(r.path) // no error: the directory was listed before
			var below []locatedFile
			for _, f := range files {
				rel, _ := filepath.Rel(at, filepath.Dir(f))
				below = append(below, locatedFile{f, strings.Split(rel, string(filepath.Separator))})
			}
			splitJobs(at, below, kind, put)
		default:
			for _, f := range files {
				if in.Name(f) == stdinName { // without a directory that would identify its run
					put("stdin", []string{f})
					continue
				}
				put(spans.DirectoryRun(f), []string{f})
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(by)) {
		jobs = append(jobs, *by[id])
	}
	return jobs
}

// locatedFile is a file with the names of the directories from the one that is split down to the file; "." if there are none.
type locatedFile struct {
	path string
	dirs []string
}

// splitJobs divides the files below a directory into jobs and calls put for each. All files are one job unless areSeveral finds several; then each directory
// below is split in the same way. Directories that are parts of a job by their names do not count as directories.
func splitJobs(dir string, files []locatedFile, kind func(file string) string, put func(id string, files []string)) {
	below := make(map[string][]locatedFile)   // by the first directory that is no part of a job; "" without one
	kinds := make(map[string]map[string]bool) // the directories of each kind
	for _, f := range files {
		name := ""
		for i, d := range f.dirs {
			if d != "." && !partOfJob.MatchString(d) {
				name, f.dirs = d, f.dirs[i+1:]
				break
			}
		}
		below[name] = append(below[name], f)
		k := kind(f.path)
		if kinds[k] == nil {
			kinds[k] = make(map[string]bool)
		}
		kinds[k][name] = true
	}
	join := func(files []locatedFile) {
		var paths []string
		for _, f := range files {
			paths = append(paths, f.path)
		}
		put(spans.DirectoryRun(filepath.Join(dir, "x")), paths) // "x": DirectoryRun takes the path of a file
	}
	if !areSeveral(kinds) {
		join(files)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(below)) {
		if name == "" {
			join(below[name])
			continue
		}
		splitJobs(filepath.Join(dir, name), below[name], kind, put)
	}
}

// areSeveral reports whether directories are of several jobs. They are if logs of a trainer are in two of them. They also are if logs of another kind are in
// two of them, and either no directory has logs of a trainer or one of the two has. kinds are the directories of each kind.
func areSeveral(kinds map[string]map[string]bool) bool {
	training := make(map[string]bool)
	for k, dirs := range kinds {
		if trainReceivers[k] {
			maps.Copy(training, dirs)
		}
	}
	for k, dirs := range kinds {
		besideTraining := false
		for d := range dirs {
			besideTraining = besideTraining || training[d]
		}
		if len(dirs) > 1 && (trainReceivers[k] || len(training) == 0 || besideTraining) {
			return true
		}
	}
	return false
}
