//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
)

// step is one event of a job, its disk or its backend.
type step struct {
	name string
	do   func(s *sequence)
	// forgets: the collector loses its state, and reads the logs on disk again.
	forgets bool
	// disorders: the order of writing is no longer visible in the logs on disk, or not fully. A log whose ids depend on all earlier rows is then left alone
	// unless the state has these rows and is not lost.
	disorders bool
}

// steps are all possible events of a sequence.
var steps = append([]step{
	{name: "kill", do: func(s *sequence) { s.kill(); s.work(); s.launch() }},
	{name: "kill_at_start", do: func(s *sequence) {
		s.kill()
		for range 3 {
			s.launch()
			s.pause(60)
			s.kill()
		}
		s.launch()
	}},
	{name: "stop", do: func(s *sequence) { s.stop(); s.work(); s.launch() }},
	{name: "rename", do: func(s *sequence) { s.eachFile(func(f *logFile) { s.rotate(f, numbered) }) }},
	{name: "rename_unseen", do: func(s *sequence) {
		s.kill()
		for range 2 {
			s.work()
			s.eachFile(func(f *logFile) { s.rotate(f, numbered) })
		}
		s.work()
		s.launch()
	}},
	{name: "shift_delete", disorders: true, do: func(s *sequence) {
		s.eachFile(func(f *logFile) { s.rotate(f, numbered); s.deleteOldest(f) })
	}},
	{name: "date_suffix", do: func(s *sequence) { s.eachFile(func(f *logFile) { s.rotate(f, dated) }) }},
	{name: "copytruncate", do: func(s *sequence) { s.eachFile(func(f *logFile) { s.copyTruncate(f, false) }) }},
	{name: "copytruncate_sparse", do: func(s *sequence) { s.eachFile(func(f *logFile) { s.copyTruncate(f, true) }) }},
	{name: "gzip", do: func(s *sequence) { s.compress(".gz") }},
	{name: "zstd", do: func(s *sequence) { s.compress(".zst") }},
	{name: "flip", disorders: true, do: (*sequence).flip},
	{name: "rewrite", disorders: true, do: func(s *sequence) { s.eachFile(s.rewrite) }},
	{name: "outage", do: func(s *sequence) { s.outage(s.work) }},
	{name: "too_large", do: func(s *sequence) { s.outage(s.wide) }},
	{name: "exhausted_retry_info", do: fault(failing(codes.ResourceExhausted, 20*time.Millisecond))},
	{name: "partial_success", do: fault(partial)},
	{name: "poison", do: fault(poison)},
	{name: "throttle", do: fault(slow(300 * time.Millisecond))},
	{name: "hang", do: fault(hang(false))},
	{name: "hang_taken", do: fault(hang(true))},
	{name: "half_taken", do: fault(half)},
	{name: "long_lines", do: (*sequence).long},
	{name: "nuls", do: func(s *sequence) { s.eachFile(func(f *logFile) { s.append(f, make([]byte, 1+s.rng.IntN(70_000))) }) }},
	{name: "disk_full", do: (*sequence).diskFull},
	{name: "disk_full_positions", do: fullFor("receiver.*.tail.state")},
	{name: "disk_full_counters", do: fullFor("connector.*.counts.state")},
	{name: "disk_full_promises", do: fullFor("processor.*.promises.state")},
	{name: "disk_full_runs", do: fullFor("receiver.*.runs.state")},
	{name: "state_missing", forgets: true, do: func(s *sequence) { s.kill(); s.forget(); s.launch() }},
	{name: "state_deleted", forgets: true, do: func(s *sequence) { s.forget(); s.work(); s.pause(1500); s.kill(); s.launch() }},
	{name: "state_torn", forgets: true, do: func(s *sequence) { s.kill(); s.damage(s.tear); s.launch() }},
	{name: "state_garbled", forgets: true, do: func(s *sequence) { s.kill(); s.damage(s.garble); s.launch() }},
	{name: "clock_back", disorders: true, do: func(s *sequence) { s.touch(-36 * time.Hour) }},
	{name: "clock_forward", disorders: true, do: func(s *sequence) { s.touch(36 * time.Hour) }},
	{name: "unreadable", do: (*sequence).unreadable},
	{name: "junk_files", do: (*sequence).junkFiles},
}, codeSteps()...)

// codeSteps answer with each code of gRPC, 1 to 16. INVALID_ARGUMENT, an error of the data, is left to poison.
func codeSteps() []step {
	var list []step
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		if code != codes.InvalidArgument {
			list = append(list, step{name: "code_" + strings.ToLower(code.String()), do: fault(failing(code, 0))})
		}
	}
	return list
}

// fault sets the sink's behaviour during work, perhaps with a restart of the collector.
func fault(how behaviour) func(s *sequence) {
	return func(s *sequence) {
		s.sink.set(how)
		s.busy()
		s.sink.set(accept)
	}
}

// busy is the work during a backend's fault.
func (s *sequence) busy() {
	s.work()
	s.pause(500)
	switch s.rng.IntN(4) {
	case 0:
		s.kill()
		s.launch()
	case 1:
		s.eachFile(func(f *logFile) { s.rotate(f, numbered) })
	}
	s.work()
	s.pause(500)
}

func (s *sequence) outage(work func()) {
	s.sink.down()
	work()
	s.busy()
	s.check(s.sink.up())
}

// wide writes more data than one message holds.
func (s *sequence) wide() {
	f := s.filesOf("train_log")[s.rng.IntN(2)]
	var all []record
	for range 3000 {
		all = append(all, jsonLine(s.rng, f.index, f.made, wideFields(s.rng)))
		f.made++
	}
	s.write(f, all)
}

// long writes lines near the length limit, together perhaps more than one message holds, and one line above the limit.
func (s *sequence) long() {
	f := s.filesOf("train_log")[s.rng.IntN(2)]
	var all []record
	for range 6 {
		all = append(all, jsonLine(s.rng, f.index, f.made, `, "note": "`+strings.Repeat("very long ", 90_000)+`"`))
		f.made++
	}
	s.write(f, all)
	s.eachFile(func(f *logFile) { s.append(f, append(bytes.Repeat([]byte("x"), 1<<20+1), '\n')) })
}

// The styles of rotation, fixed for each log.
const (
	numbered = 1 + iota // log.1 is the newest
	dated               // log-20260305
)

// rotate renames a log and begins a new log.
func (s *sequence) rotate(f *logFile, style int) {
	s.check(os.Rename(f.path, s.makeRoom(f, style)))
	s.check(os.WriteFile(f.path, nil, 0o600))
	f.offset = 0
}

// copyTruncate copies a log and truncates it. A writer without O_APPEND continues at its offset, behind a hole. Lines not read before the truncation are not
// recognized in the copy (see bridge/tail). A log whose lines depend on earlier lines would then be misread.
func (s *sequence) copyTruncate(f *logFile, sparse bool) {
	if !f.format.unordered && (len(f.records) == 0 || !s.delivered(f.records[:1])) {
		return
	}
	data, err := os.ReadFile(f.path)
	s.check(err)
	s.check(os.WriteFile(s.makeRoom(f, numbered), data, 0o600))
	s.check(os.Truncate(f.path, 0))
	if !sparse {
		f.offset = 0
	}
}

// makeRoom returns the name for the log's present lines.
func (s *sequence) makeRoom(f *logFile, style int) string {
	if f.style == 0 {
		f.style = style
	}
	name := fmt.Sprintf("%s-%s", f.path, time.Date(2026, 3, 1+f.rotations, 0, 0, 0, 0, time.UTC).Format("20060102"))
	if f.style == numbered {
		for i, o := range slices.Backward(f.old) {
			to := fmt.Sprintf("%s.%d%s", f.path, i+2, o.packed)
			s.check(os.Rename(o.path, to))
			o.path = to
		}
		name = f.path + ".1"
	}
	f.rotations++
	f.old = append([]*oldFile{{path: name, records: f.records}}, f.old...)
	f.records = nil
	return name
}

// deleteOldest removes the oldest file once it is fully delivered and stored.
func (s *sequence) deleteOldest(f *logFile) {
	if n := len(f.old); n > 1 && s.doneWith(f, f.old[n-1].path, f.old[n-1].records) {
		s.check(os.Remove(f.old[n-1].path))
		s.halves = s.halves || f.format.joint
		f.old = f.old[:n-1]
	}
}

// rewrite begins a log anew in the same file, once it is fully delivered and stored.
func (s *sequence) rewrite(f *logFile) {
	if !s.doneWith(f, f.path, f.records) {
		return
	}
	s.check(os.Truncate(f.path, 0))
	s.halves = s.halves || f.format.joint
	f.offset, f.records = 0, nil
	s.append(f, []byte(f.format.head))
}

// doneWith says whether all of a file was accepted, with the positions stored. Lines accepted in the last second before a crash are read again: their counts,
// and the steps before them, are read from the file alone.
func (s *sequence) doneWith(f *logFile, path string, records []int) bool {
	return s.delivered(records) &&
		(s.forgets || s.peer || within(storeLimit, func() error { return s.storedFiles(f.format.receiver, path) }) == nil)
}

// flip swaps the names of two logs of a receiver; the writers keep their files. At the cut a writer's lines are then in two streams, read independently.
// Excluded are logs whose records depend on earlier records, and joint records: a collective waits for a rank only until later lines of that rank were read.
func (s *sequence) flip() {
	for i := 0; i < len(s.files); i += 2 {
		a, b := s.files[i], s.files[i+1]
		if s.rng.IntN(2) == 0 || s.spared(a) || s.spared(b) || s.restarts && !a.format.unordered {
			continue
		}
		s.check(unix.Renameat2(unix.AT_FDCWD, a.path, unix.AT_FDCWD, b.path, unix.RENAME_EXCHANGE))
		a.path, b.path = b.path, a.path
		a.old, b.old = b.old, a.old
		a.style, b.style = b.style, a.style
		a.rotations, b.rotations = b.rotations, a.rotations
	}
}

// compress packs one rotated file of each log, as logrotate does: the packed file grows beside the original, which is then removed.
func (s *sequence) compress(suffix string) {
	s.eachFile(func(f *logFile) {
		if len(f.old) == 0 {
			s.rotate(f, numbered)
		}
		o := f.old[s.rng.IntN(len(f.old))]
		if o.packed != "" {
			return
		}
		info, err := os.Stat(o.path)
		s.check(err)
		data, err := os.ReadFile(o.path)
		s.check(err)
		var packed bytes.Buffer
		if suffix == ".gz" {
			w := gzip.NewWriter(&packed)
			_, err = w.Write(data)
			s.check(err)
			s.check(w.Close())
		} else {
			w, err := zstd.NewWriter(&packed)
			s.check(err)
			_, err = w.Write(data)
			s.check(err)
			s.check(w.Close())
		}
		out, err := os.Create(o.path + suffix)
		s.check(err)
		half := packed.Len() / 2
		_, err = out.Write(packed.Next(half))
		s.check(err)
		s.pause(30)
		_, err = out.Write(packed.Bytes())
		s.check(err)
		s.check(out.Close())
		s.check(os.Chtimes(o.path+suffix, info.ModTime(), info.ModTime()))
		s.check(os.Remove(o.path))
		o.path += suffix
		o.packed = suffix
	})
}

// diskFull leaves no room for the state, for a while.
func (s *sequence) diskFull() {
	free := fill(s, s.state)
	s.busy()
	free()
}

// fullFor puts some files of the state on a full disk, for a while. Their former names keep the old content.
func fullFor(pattern string) func(s *sequence) {
	return func(s *sequence) {
		s.kill()
		disk := s.TempDir()
		smallDisk(s, disk, 2<<20)
		files, err := filepath.Glob(filepath.Join(s.state, pattern))
		s.check(err)
		for _, file := range files {
			to := filepath.Join(disk, filepath.Base(file))
			data, err := os.ReadFile(file)
			s.check(err)
			s.check(os.WriteFile(to, data, 0o600))
			s.check(os.Remove(file))
			s.check(os.Symlink(to, file))
		}
		s.launch()
		s.work()
		s.pause(800)
		free := fill(s, disk)
		s.busy()
		s.pause(1500)
		s.kill()
		free()
		s.launch()
	}
}

// fill takes all blocks of a folder's disk, until free is called.
func fill(tb testing.TB, dir string) (free func()) {
	tb.Helper()
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	require.NoError(tb, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.NoError(tb, f.Close())
	return func() { require.NoError(tb, os.Remove(filler)) }
}

// smallDisk mounts a disk of the given size on a folder.
func smallDisk(tb testing.TB, dir string, size int64) {
	tb.Helper()
	require.NoError(tb, syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", size)))
	tb.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// damage does something to every file in the folder of the state.
func (s *sequence) damage(do func(path string) error) {
	entries, err := os.ReadDir(s.state)
	if !os.IsNotExist(err) { // a collector killed early has made no folder
		s.check(err)
	}
	for _, e := range entries {
		if err := do(filepath.Join(s.state, e.Name())); !os.IsNotExist(err) {
			s.check(err)
		}
	}
}

// forget removes the state, and perhaps its folder, unless a mount.
func (s *sequence) forget() {
	if s.mounted || s.rng.IntN(2) == 0 {
		s.damage(os.RemoveAll)
		return
	}
	for range 100 { // the collector may make the folder again meanwhile
		if err := os.RemoveAll(s.state); !errors.Is(err, syscall.ENOTEMPTY) {
			s.check(err)
			return
		}
	}
}

func (s *sequence) tear(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return err
	}
	return os.Truncate(path, s.rng.Int64N(info.Size()+1))
}

func (s *sequence) garble(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, syscall.EISDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	for range 1 + len(data)/512 {
		if len(data) > 0 {
			data[s.rng.IntN(len(data))] = byte(s.rng.Uint32())
		}
	}
	return os.WriteFile(path, data, 0o600)
}

// touch moves the modification times of logs, as if the clock was set. (Linux time namespaces do not cover the wall clock, and Go asks the kernel, not libc.)
func (s *sequence) touch(by time.Duration) {
	s.eachFile(func(f *logFile) {
		at := time.Now().Add(by)
		s.check(os.Chtimes(f.path, at, at))
		if len(f.old) > 0 && s.rng.IntN(2) == 0 {
			s.check(os.Chtimes(f.old[0].path, at, at))
		}
	})
}

// unreadable removes the read permission of the logs for a while. The collector has no privileges to bypass permissions.
func (s *sequence) unreadable() {
	var taken []string
	s.eachFile(func(f *logFile) {
		s.check(os.Chmod(f.path, 0o200))
		taken = append(taken, f.path)
	})
	if s.rng.IntN(2) == 0 {
		s.kill()
		s.launch()
	}
	s.work()
	s.pause(800)
	for _, path := range taken {
		s.check(os.Chmod(path, 0o600))
	}
}

// junkFiles puts hundreds of non-logs beside the logs: empty files, texts and long texts; some grow, some become logs, and one disappears.
func (s *sequence) junkFiles() {
	const files = 300
	dir := filepath.Join(s.junk, strconv.Itoa(len(s.done)))
	s.check(os.MkdirAll(dir, 0o700))
	path := func(i int) string { return filepath.Join(dir, fmt.Sprintf("output-%d.txt", i)) }
	texts := []string{"", "hello world\n", strings.Repeat("loading a shard of the dataset\n", 8_000), "no end"}
	for i := range files {
		s.check(os.WriteFile(path(i), []byte(texts[i%len(texts)]), 0o600))
	}
	s.check(os.WriteFile(filepath.Join(dir, "model.safetensors"), make([]byte, 1<<20), 0o600))
	s.pause(1000)
	s.check(os.Remove(path(0)))
	for range 2 {
		for i := 1; i < files; i += 7 {
			switch {
			case s.rng.IntN(2) == 0:
				s.addTo(path(i), "another line\n")
			case !s.peer: // the peer reads other folders
				s.becomeLog(path(i))
			}
		}
		if s.rng.IntN(3) == 0 {
			s.kill()
			s.launch()
		}
		s.work()
		s.pause(1000)
	}
}

// becomeLog writes records to a file that had none.
func (s *sequence) becomeLog(path string) {
	text := []byte("\n") // the last line may have no end
	for range 1 + s.rng.IntN(5) {
		r := jsonLine(s.rng, 0, 500_000+s.late, "") // beyond the records of train.jsonl
		s.late++
		text = append(append(text, r.lines[0][0]...), '\n')
		s.records = append(s.records, r)
	}
	s.addTo(path, string(text))
}

func (s *sequence) addTo(path, text string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	s.check(err)
	_, err = f.WriteString(text)
	s.check(errors.Join(err, f.Close()))
}
