package offline

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/tail"
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
// as do logs that accompany a single training. If two directories there have logs of the same kind, each is a job, unless by their names they are parts of one,
// or have the records of one communicator.
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
// below is split in the same way. Directories that are parts of a job by their names do not count as directories. Directories that share a communicator count
// as one, and are one job.
func splitJobs(dir string, files []locatedFile, kind func(file string) string, put func(id string, files []string)) {
	below := make(map[string][]locatedFile) // by the first directory that is no part of a job; "" without one
	for _, f := range files {
		name := ""
		for i, d := range f.dirs {
			if d != "." && !partOfJob.MatchString(d) {
				name, f.dirs = d, f.dirs[i+1:]
				break
			}
		}
		below[name] = append(below[name], f)
	}
	first := make(map[string]string) // the directory itself, as long as no communicator is asked for
	for name := range below {
		first[name] = name
	}
	several := areSeveral(kindsIn(below, first, kind))
	if several { // only then the logs are looked at
		linkSharing(first, below, kind)
		several = areSeveral(kindsIn(below, first, kind))
	}
	joined := make(map[string][]string) // the files of each job of several directories, by the first; without several jobs "" has all
	linked := make(map[string]int)      // the number of directories of each job, by the first
	for _, job := range first {
		linked[job]++
	}
	for _, name := range slices.Sorted(maps.Keys(below)) {
		job := first[name]
		if several && name != "" && linked[job] == 1 {
			splitJobs(filepath.Join(dir, name), below[name], kind, put)
			continue
		}
		if !several {
			job = ""
		}
		for _, f := range below[name] {
			joined[job] = append(joined[job], f.path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(joined)) {
		put(spans.DirectoryRun(filepath.Join(dir, name, "x")), joined[name]) // "x": DirectoryRun takes the path of a file
	}
}

// kindsIn returns the directories of each kind of logs; first names the directory that stands for a directory.
func kindsIn(below map[string][]locatedFile, first map[string]string, kind func(file string) string) map[string]map[string]bool {
	kinds := make(map[string]map[string]bool)
	for name, files := range below {
		for _, f := range files {
			k := kind(f.path)
			if kinds[k] == nil {
				kinds[k] = make(map[string]bool)
			}
			kinds[k][first[name]] = true
		}
	}
	return kinds
}

// linkSharing sets first of each directory to the first one, in order of names, among those linked to the directory by common communicators.
func linkSharing(first map[string]string, below map[string][]locatedFile, kind func(file string) string) {
	root := func(name string) string {
		for first[name] != name {
			name = first[name]
		}
		return name
	}
	owner := make(map[string]string) // a directory with the communicator
	names := slices.Sorted(maps.Keys(below))
	for _, name := range names {
		for _, f := range below[name] {
			if kind(f.path) != "nccl" {
				continue
			}
			for comm := range communicatorsIn(f.path) {
				of, known := owner[comm]
				if !known {
					owner[comm] = name
					continue
				}
				a, b := root(of), root(name)
				first[max(a, b)] = min(a, b)
			}
		}
	}
	for _, name := range names {
		first[name] = root(name)
	}
}

// headBytes is the part of a log in which communicatorsIn looks: the first few hundred records.
const headBytes = 1 << 18

// communicatorIn matches the communicator of a record of NCCL Inspector, and of a row of VCCL's telemetry (Time,Group,…).
var communicatorIn = regexp.MustCompile(`"header":\s*\{\s*"id":\s*"0x([0-9a-f]{6,})"|^\d{14},(\d{9,}),`)

// communicatorsIn returns the communicators at the beginning of a log of collectives: the hashes, which are of one job. None: the log has none, or cannot be
// read.
func communicatorsIn(path string) map[string]bool {
	found := make(map[string]bool)
	_ = tail.Head(path, headBytes, func(text []byte) bool { // an error only ends the lines
		for _, m := range communicatorIn.FindAllSubmatch(text, -1) {
			found[string(m[1])+string(m[2])] = true
		}
		return true
	})
	return found
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
