package check

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/kernelfs"
	"github.com/trainbridge/trainbridge/internal/nonlog"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
)

// formats names all supported formats, for the finding about a log that is in none.
const formats = "verl with TransferQueue ([TQ-TRACE], cost time); FlagScale perf_monitor; Megatron, JSONL, Hugging Face, DeepSpeed, torchtitan, NeMo, verl, " +
	"nanoGPT, LitGPT, torchtune, Composer, OpenRLHF, slime, tqdm, CSV and key=value training logs; ZeroMQ performance logs; NCCL Inspector, NCCL profiler, " +
	"Flight Recorder, VCCL"

// paths reports the files that were not read although the paths lead to them: unreadable, passed over by name, the kernel's, too many, or behind links.
func (c *account) paths(in *offline.Input) {
	for _, err := range in.Denied {
		c.find(finding{
			Name: "unreadable", Off: true, What: err.Error(), Why: "Files below are not read.", Fix: "Give the collector's user the right to read it.",
		})
	}
	c.passedOver(in.PassedOver)
	c.kernel(in.Kernel)
	if in.Left > 0 {
		c.find(finding{
			Name: "too_many", Off: true, What: "Of too many files some are left out: " + reading.LeftOut(in), Why: "The others are not read.",
			Fix: "Name a directory or a glob that holds fewer.",
		})
	}
	var links []place
	for _, link := range in.Unfollowed() {
		links = append(links, place{File: link})
	}
	if len(links) > 0 {
		c.links(links)
	}
}

// passedOver reports files that are no logs by their names.
func (c *account) passedOver(what nonlog.Tally) {
	if what.Sum() == 0 {
		return
	}
	c.find(finding{
		Name: "passed_over", What: "Passed over by name, as no logs: " + what.String(), Why: "Weights, pictures, compiled code and repositories hold no logs.",
		Fix: "Nothing; where one is a log, name the file itself, or set include_non_logs: true for the receiver.",
	})
}

// kernel reports virtual file systems of the kernel.
func (c *account) kernel(passed kernelfs.Passed) {
	if len(passed) == 0 {
		return
	}
	c.find(finding{
		Name: "kernel_files", What: "Passed over, as the kernel's: " + passed.String(), Why: "These file systems hold no logs, and many of their files have no end.",
		Fix: "Nothing, or name directories of logs.",
	})
}

// links reports symbolic links that are not followed.
func (c *account) links(links []place) {
	c.find(finding{
		Name: "links", What: count(int64(len(links)), "symbolic link is", "symbolic links are") + " not followed", Seen: links,
		Why: "Files behind links are not read unless a path names the link.",
		Fix: "Name what they lead to, or set follow_symlinks: true for the receiver, " + offline.FollowSymlinks + "=true for the shipped configuration and here.",
	})
}

// other is a known kind of file that no receiver reads.
type other struct {
	name string
	is   func(path string, head []byte) bool // head: the file's first headBytes
	fix  string                              // what to do
	// packed: the file is compressed, and the content may be a log, so that the finding is a problem.
	packed bool
}

// begins is a test for files with any of some texts at their beginning.
func begins(magic ...string) func(string, []byte) bool {
	return func(_ string, head []byte) bool {
		for _, m := range magic {
			if bytes.HasPrefix(head, []byte(m)) {
				return true
			}
		}
		return false
	}
}

// holds is a test for a file with all of some texts in its beginning.
func holds(texts ...string) func(string, []byte) bool {
	return func(_ string, head []byte) bool {
		for _, t := range texts {
			if !bytes.Contains(head, []byte(t)) {
				return false
			}
		}
		return true
	}
}

// all is a test that passes if all of some tests do.
func all(of ...func(string, []byte) bool) func(string, []byte) bool {
	return func(path string, head []byte) bool {
		for _, is := range of {
			if !is(path, head) {
				return false
			}
		}
		return true
	}
}

// named is a test for a file with a part in its name.
func named(part string) func(string, []byte) bool {
	return func(path string, _ []byte) bool { return strings.Contains(filepath.Base(path), part) }
}

// others are the known kinds; the first that fits a file is taken.
var others = []other{
	{"xz", begins("\xfd7zXZ\x00"), "Unpack it: unxz FILE; .gz and .zst are read as they are.", true},
	{"bzip2", begins("BZh"), "Unpack it: bunzip2 FILE; .gz and .zst are read as they are.", true},
	{"lz4", begins("\x04\x22\x4d\x18"), "Unpack it: unlz4 FILE; .gz and .zst are read as they are.", true},
	{"zip", begins("PK\x03\x04"), "Unpack it: unzip FILE; .gz and .zst are read as they are.", true},
	{"gzip", begins("\x1f\x8b"), "Call it FILE.gz: files are unpacked by their names.", true},
	{"zstd", begins("\x28\xb5\x2f\xfd"), "Call it FILE.zst: files are unpacked by their names.", true},
	{"TensorBoard", named("events.out.tfevents"), "It has no scalars of steps: where the trainer writes some elsewhere, name those files.", false},
	{"W&B", named(".wandb"), "It has no rows of steps yet: W&B writes some kilobytes at a time.", false},
	{
		"Flight Recorder (pickle)", all(begins("\x80\x02", "\x80\x03", "\x80\x04", "\x80\x05"), holds("pg_config")),
		"Call it nccl_trace_rank_N, as PyTorch does, with the rank for N: by that name it is read.", false,
	},
	{
		"NCCL Inspector (Prometheus)", holds("nccl_bus_bandwidth_gbs"),
		"Have Prometheus read it, or unset NCCL_INSPECTOR_PROM_DUMP, so that Inspector writes JSON.", false,
	},
	{
		"NCCL Inspector, without the line that names the communicator", begins(`{"coll_perf"`, `{"p2p_perf"`, `{"proxy_trace"`),
		"Read the log from its beginning: since v4.3 a line before each dump says what the next ones are of.", false,
	},
	{
		"NCCL debug", holds(" NCCL INFO "),
		"Use the NCCL Inspector plugin (NCCL_PROFILER_PLUGIN, NCCL_INSPECTOR_ENABLE=1): NCCL's debug output has no times.", false,
	},
	{"nccl-tests", holds("out-of-place", "in-place", "algbw"), "It is a benchmark's table, without ranks or times: it stays as it is.", false},
	{"trainer_state", holds(`"log_history"`), "Call it trainer_state.json, as the trainer does: by that name it is read.", false},
	{"verl with TransferQueue, without [TQ-TRACE]", holds("TransferQueue", " pid="), traceOn, false},
	{"PyTorch profiler", holds(`"deviceProperties"`), "Open it in Perfetto: profiler traces are not read.", false},
}

const headBytes = 64 << 10

// headOf is the beginning of a file, as stored (compressed files are not unpacked).
func headOf(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, headBytes)
	n, _ := io.ReadFull(f, head)
	return head[:n]
}

// unread reports files without a receiver: a finding for each unreadable file, for each known kind that is not read, and for all files that are text in no
// known format, that are binary, and that are empty. Files of the known kinds are compressed logs, for example, or need another name.
func (c *account) unread() {
	var empty, binary, text, broken []*file
	known := make([][]*file, len(others)) // by the index of others
	for _, f := range c.files {
		switch f.Unread() {
		case "":
		case offline.UnreadEmpty:
			empty = append(empty, f)
		case offline.UnreadClosed:
			broken = append(broken, f)
		default: // binary or text
			head := headOf(f.Path)
			kind := slices.IndexFunc(others, func(o other) bool { return o.is(f.Path, head) })
			switch {
			case kind >= 0:
				known[kind] = append(known[kind], f)
			case f.Binary:
				binary = append(binary, f)
			default:
				text = append(text, f)
			}
		}
	}
	// alone: no file is understood. Then the files are the user's question, and problems; beside logs they are notes.
	alone := c.Understood == 0
	for _, f := range broken {
		c.find(finding{
			Name: "unreadable", Off: true, What: f.Name + " cannot be read: " + outfile.Reason(f.Err).Error(), Why: "The file is in no trace.",
			Fix: "Give the collector's user the right to read it; of a damaged archive, take the original.",
		})
	}
	for i, files := range known {
		if len(files) == 0 {
			continue
		}
		what, seen := several(files, "is", "are")
		c.find(finding{
			Name: "not_read", Off: others[i].packed || alone, What: what + " of a kind that is known and not read: " + others[i].name, Seen: seen,
			Why: "The file is in no trace.", Fix: others[i].fix,
		})
	}
	if len(text) > 0 {
		c.notUnderstood(text, alone)
	}
	if len(binary) > 0 {
		what, seen := several(binary, "is binary", "are binary")
		c.find(finding{Name: "binary", Off: alone, What: what, Seen: seen, Why: "Logs are text.", Fix: "Leave them out."})
	}
	if len(empty) > 0 {
		what, seen := several(empty, "is empty", "are empty")
		c.find(finding{
			Name: "empty", Off: alone, What: what, Seen: seen, Why: "There is nothing in them yet.", Fix: "Nothing, where the job has just begun, or writes elsewhere.",
		})
	}
}

// notUnderstood reports text in no known format. Without any log that is understood (alone), the advice is a pattern for the lines of the text, if one can be
// made.
func (c *account) notUnderstood(text []*file, alone bool) {
	what, seen := several(text, "is in no format that is known", "are in no format that is known")
	f := finding{Name: "not_understood", What: what, Seen: seen, Why: "The file is in no trace.", Fix: "Where they are no logs, nothing."}
	if alone {
		f.Off, f.Why = true, "Of the first 16 MB no line is a record. Known are "+formats+"."
		f.Fix = "Name other files; or have the job print a line for each step: print(json.dumps({'step': step, 'loss': float(loss), 'step_time': seconds}))."
		if pattern := propose(text); pattern != "" {
			f.Fix = "If its lines are of steps, say what their numbers are, and rename what is wrong: --pattern '" + pattern +
				"' (in the configuration train_log: patterns)."
		}
	}
	c.find(f)
}

// From rejectedLeast rejected lines and a share of rejectedShare on, a file has a problem. A torn last line, or a line that two processes wrote into, is no
// reason for alarm.
const (
	rejectedShare = 0.01
	rejectedLeast = 3
)

// rejections reports each file with many lines that look like records and cannot be read, or with such lines and no record at all.
func (c *account) rejections() {
	for _, f := range c.files {
		n := total(f.rejected)
		few := n < rejectedLeast || float64(n) < rejectedShare*float64(n+f.Records)
		if n == 0 || f.Records > 0 && few {
			continue
		}
		var seen []place
		fix := "Let each process write a file of its own; where the lines are whole, report the format."
		for _, r := range f.rejected {
			seen = append(seen, r.first)
			if r.name == "pickle" {
				fix = "Leave it out, and load it nowhere: it imports or calls something, and PyTorch's dumps do not."
			}
		}
		look := count(n, "line that looks like a record", "lines that look like records")
		c.find(finding{
			Name: "rejected", Off: true, What: fmt.Sprintf("%s: %s cannot be read (%s)", f.Name, look, names(f.rejected)), Seen: seen,
			Why: "They are in no trace, so calls and steps are incomplete.", Fix: fix,
		})
	}
}

// names lists reasons with their numbers of lines: "3 torn, 1 bad time".
func names(list []reason) string {
	var s []string
	for _, r := range list {
		s = append(s, human.Thousands(r.lines)+" "+words(r.name))
	}
	return strings.Join(s, ", ")
}

// words is the name of a reason as words: "bad_time" is "bad time".
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// count is a number with its noun: "1 file", "3,204 files".
func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return human.Thousands(n) + " " + many
}

const proposedFrom = 256 << 10 // bytes of a log behind a pattern

// propose makes a pattern, for train_log's setting patterns, of the first log with repeated lines of numbers; "": no log has such lines.
func propose(files []*file) string {
	for _, f := range files {
		r, err := os.Open(f.Path)
		if err != nil {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(r, proposedFrom))
		_ = r.Close()
		if err != nil {
			continue
		}
		if p := trainlogreceiver.ProposePattern(strings.FieldsFunc(string(b), func(c rune) bool { return c == '\n' || c == '\r' })); p != "" {
			return p
		}
	}
	return ""
}
