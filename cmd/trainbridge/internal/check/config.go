package check

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/kernelfs"
	"github.com/trainbridge/trainbridge/internal/mixed"
	"github.com/trainbridge/trainbridge/internal/nonlog"
)

// tailing is a receiver of log files in a configuration: Include and Shared are the files that the globs match.
type tailing struct {
	offline.Receiver
	files tail.Config
}

// config checks the files that a collector with a configuration would read, and the configuration's globs. A configuration with a fault is a finding; as far as
// the receivers can be told, their files are checked all the same.
func (c *account) config(cmd *cobra.Command, files []string, resolve Resolve) error {
	conf, fault := resolve(cmd.Context(), files)
	if conf == nil {
		return reading.Errorf(cmd, "%w", fault)
	}
	if fault != nil {
		c.find(finding{
			Name: "config", Off: true, What: strings.Join(strings.Fields(fault.Error()), " "), Why: "A collector does not start with it.",
			Fix: "Correct it; trainbridge validate says the same.",
		})
	}
	all, err := tailings(conf)
	if err != nil {
		return reading.Errorf(cmd, "%w", err)
	}
	c.reach(all)
	c.shared(all)
	paths := c.claimed(all)
	if len(paths) == 0 {
		c.find(finding{
			Name: "no_log", Off: true, What: "No receiver has a file to read", Why: "The collector would wait for a file.",
			Fix: "Set TRAINBRIDGE_LOGS='/data/job/**/*.log', or name the logs: trainbridge check PATH.",
		})
		return nil
	}
	in, err := offline.Open(paths, nil)
	if err != nil {
		c.missing(err) // deleted just now
		return nil
	}
	defer in.Close()
	receivers := make([]offline.Receiver, len(all))
	for i, t := range all {
		receivers[i] = t.Receiver
	}
	if err := c.read(cmd, in, receivers); err != nil {
		if fault != nil {
			return nil // the fault, a finding already, is the reason
		}
		return err
	}
	return c.mistaken(cmd, all)
}

// fileReceivers are the types of receivers of log files.
var fileReceivers = []string{"tq_trace", "flagscale", "train_log", "zmq_rpc", "nccl", "run_events"}

// tailings are the receivers of log files that a configuration runs, in the order of their names. The error is about settings that cannot be read.
func tailings(conf map[string]any) (all []*tailing, err error) {
	running := make(map[string]bool)
	service := confmap.NewFromStringMap(conf)
	pipelines, _ := service.Get("service::pipelines").(map[string]any)
	for _, p := range pipelines {
		m, _ := p.(map[string]any)
		list, _ := m["receivers"].([]any)
		for _, name := range list {
			running[fmt.Sprint(name)] = true
		}
	}
	settings, _ := conf["receivers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		t := &tailing{files: tail.DefaultConfig()}
		if err := t.ID.UnmarshalText([]byte(name)); err != nil || !running[name] || !slices.Contains(fileReceivers, t.ID.Type().String()) {
			continue
		}
		t.Conf, _ = settings[name].(map[string]any)
		if err := confmap.NewFromStringMap(t.Conf).Unmarshal(&t.files, confmap.WithIgnoreUnused()); err != nil {
			return nil, fmt.Errorf("receivers::%s: %w", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// reach finds the files of each receiver by the globs, sets Include and Shared (sorted, each file once), and lists the globs in c.globs. Reported are globs
// without a file, links, files passed over, and the kernel's file systems.
func (c *account) reach(all []*tailing) {
	var links []place
	passed, kernel := make(map[string]string), make(kernelfs.Passed)
	for _, t := range all {
		for _, list := range []struct {
			key   string
			globs []string
			files *[]string
		}{{"include", t.files.Include, &t.Include}, {"document", t.files.Document, &t.Include}, {"include_by_content", t.files.IncludeByContent, &t.Shared}} {
			for _, pattern := range list.globs {
				own, linked, err := t.match(pattern, passed, kernel)
				*list.files = append(*list.files, own...)
				links = append(links, linked...)
				c.globs = append(c.globs, glob{t.ID.String(), list.key, pattern, len(own)})
				// A glob that is the default of a variable, "${env:NAME:-GLOB}", may match nothing: nobody has asked for those files.
				isDefault := strings.Contains(trainbridge.DefaultConfig, ":-"+pattern+"}")
				if len(own) > 0 || err == nil && isDefault {
					continue
				}
				c.find(finding{
					Name: "no_file", Off: true, What: fmt.Sprintf("'receivers::%s::%s': %s matches no file", t.ID, list.key, pattern),
					Why: "The collector waits for a file, and says nothing.", Fix: "Correct the glob, where the log should be there by now.",
				})
			}
		}
		slices.Sort(t.Include)
		slices.Sort(t.Shared)
		t.Include, t.Shared = slices.Compact(t.Include), slices.Compact(t.Shared)
	}
	if len(links) > 0 {
		c.links(links)
	}
	tally := make(nonlog.Tally)
	for _, name := range passed {
		tally[name]++
	}
	c.passedOver(tally)
	c.kernel(kernel)
}

// match finds the files of a glob that the receiver reads, by its settings. links lead to files that are not read; added to passed are the files that are no
// logs by their names, to kernel the kernel's file systems.
func (t *tailing) match(pattern string, passed map[string]string, kernel kernelfs.Passed) (files []string, links []place, err error) {
	found, err := offline.Glob(pattern, kernel)
	if err != nil {
		return nil, nil, err
	}
	base, _ := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(pattern)))
	from, err := filepath.EvalSymlinks(base)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // then it matches nothing
	}
	for _, path := range found {
		if slices.ContainsFunc(t.files.Exclude, func(g string) bool { ok, _ := doublestar.PathMatch(filepath.Clean(g), path); return ok }) {
			continue
		}
		if at, name := offline.NonLog(base, pattern, path); name != "" && !t.files.IncludeNonLogs {
			passed[at] = name
			continue
		}
		to, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		if fi, err := os.Stat(to); err != nil || !fi.Mode().IsRegular() {
			continue
		}
		// Links in the glob's fixed part are followed; a link behind is met if the file's own path is not where the glob found the file.
		if rel, err := filepath.Rel(base, path); !t.files.FollowSymlinks && (err != nil || filepath.Join(from, rel) != to) {
			links = append(links, place{File: path})
			continue
		}
		to, err = filepath.Abs(to)
		if err == nil {
			files = append(files, to)
		}
	}
	return files, links, nil
}

// shared reports files that the includes of two receivers name, unless a file may have the lines of both. The first receiver keeps a reported file.
func (c *account) shared(all []*tailing) {
	by := make(map[string]component.ID) // the first receiver of each file
	var seen []place
	n := int64(0)
	var both string // the two receivers of the last such file
	for _, t := range all {
		t.Include = slices.DeleteFunc(t.Include, func(f string) bool {
			first, twice := by[f]
			if twice && mixed.Mixes(first.Type(), t.ID.Type()) {
				return false
			}
			if twice {
				n++
				seen = append(seen, place{File: f})
				both = fmt.Sprintf("%s and %s", first, t.ID)
			} else {
				by[f] = t.ID
			}
			return twice
		})
	}
	if n > 0 {
		c.find(finding{
			Name: "read_twice", Off: true, What: count(n, "file is", "files are") + " read by two receivers: " + both, Seen: seen,
			Why: "Each of its records appears twice.", Fix: "Let the globs of 'include' differ, or use 'include_by_content' in both.",
		})
	}
}

// claimed are the files that any receiver asks for, sorted. Reported are receivers with files and without a storage for their positions.
func (c *account) claimed(all []*tailing) (paths []string) {
	var forgetful []string
	for _, t := range all {
		paths = append(paths, t.Include...)
		paths = append(paths, t.Shared...)
		if t.files.Storage == nil && len(t.Include)+len(t.Shared) > 0 {
			forgetful = append(forgetful, t.ID.String())
		}
	}
	if len(forgetful) > 0 {
		c.find(finding{
			Name: "no_storage", What: "No 'storage' for " + strings.Join(forgetful, ", "), Why: "After a restart all files are read from their beginning again.",
			Fix: "Add the extension state_storage, and name it in each.",
		})
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// mistaken reports files in which the receiver that includes them found no record, and that another receiver understands: such files are read once more, by
// content.
func (c *account) mistaken(cmd *cobra.Command, all []*tailing) error {
	named := make(map[string]bool)
	for _, t := range all {
		for _, f := range t.Include {
			named[f] = true
		}
	}
	var paths []string
	for _, f := range c.files {
		if named[f.Path] && f.Receiver != "" && f.Records == 0 && f.Size > 0 {
			paths = append(paths, f.Path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	in, err := offline.Open(paths, nil)
	if err != nil {
		return nil //nolint:nilerr // they were deleted just now
	}
	defer in.Close()
	got, err := offline.Read(cmd.Context(), in, offline.Options{}, offline.Sink{})
	if err != nil {
		return err
	}
	for _, f := range got.Files {
		switch was := c.file(f.Path); f.Receiver {
		case "", was.kind(): // understood by nobody, or by another receiver of the same type
		default:
			c.find(finding{
				Name: "wrong_receiver", Off: true, What: fmt.Sprintf("%s is read by %s, which understands no line of it; %s does", f.Name, was.Receiver, f.Receiver),
				Why: "The file is in no trace.", Fix: fmt.Sprintf("Put it into 'receivers::%s::include'.", f.Receiver),
			})
		}
	}
	return nil
}

// file is the file of a path, nil if unknown.
func (c *account) file(path string) *file {
	for _, f := range c.files {
		if f.Path == path {
			return f
		}
	}
	return nil
}
