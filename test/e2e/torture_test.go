//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.yaml.in/yaml/v3"

	"github.com/trainbridge/trainbridge"
	"github.com/trainbridge/trainbridge/bridge/tail/tailtest"
	"github.com/trainbridge/trainbridge/extensions/statestorage"
)

var (
	tortureSeed      = flag.Uint64("torture.seed", 1, "first seed of the campaign")
	tortureSequences = flag.Uint64("torture.sequences", 300, "number of sequences")
	tortureDuration  = flag.Duration("torture.duration", 0, "begin no sequence after this time; 0: no limit")
	tortureSteps     = flag.String("torture.steps", "", "comma-separated: only these steps")
	tortureAlone     = flag.Bool("torture.alone", false, "one kind of step in a sequence, all kinds in turn")
	torturePeer      = flag.Bool("torture.peer", false, "the same schedules with file_log beside it, and a table of what both lose")
	// A user has 128 inotify instances by default, and a collector takes two: a collector without inotify polls, and may miss rewrites.
	tortureParallel = flag.Int("torture.parallel", min(12*runtime.GOMAXPROCS(0), 48), "sequences at once")
)

const (
	// rssLimit is the largest memory of the collector in a sequence, for any logs: 256 MiB above some 90 MiB of an idle collector.
	rssLimit = 352 << 20
	// drainLimit is the time after the last fault within which everything must arrive; restLimit is the time without progress after which the sequence gives
	// up.
	drainLimit = 5 * time.Minute
	restLimit  = 30 * time.Second
	storeLimit = 2 * time.Second
)

// sequence is one seeded schedule: a collector with the shipped configuration, the logs of all file receivers, and a sink.
type sequence struct {
	*testing.T
	seed     uint64
	rng      *rand.Rand
	sink     *otlpSink
	c        *collector
	state    string
	mounted  bool // the state is on a small disk of its own
	restarts bool // a step is not an exchange of names, but a restart, a rotation, …
	peer     bool // the collector is file_log's
	files    []*logFile
	halves   bool // only one of the two files of joint records may be left
	records  []record
	junk     string // a folder of mixed files, some of which become logs
	late     int    // records in these
	forgets  bool
	full     bool // the disk of some of the state is full for a while
	step     *step
	done     []string // steps
	started  int      // processes
	peak     int64    // bytes
	tally    *tally
}

// logFile is a log and its rotated files, the newest first.
type logFile struct {
	format    *logFormat
	index     int
	path      string
	offset    int64 // of the writer
	made      int   // records
	records   []int // indices of the records now in the file
	style     int
	rotations int
	old       []*oldFile
}

type oldFile struct {
	path, packed string // packed is the suffix of a packed file
	records      []int
}

// tally sums up sequences, by step.
type tally struct {
	mu                                                     sync.Mutex
	steps                                                  map[string]*stepTally
	sequences, failed, lines, lost                         int
	seconds, changes                                       int
	hung, died, unaccounted, miscounted, copies, overLimit int
	peak                                                   int64
	bad                                                    []uint64
}

func newTally() *tally { return &tally{steps: make(map[string]*stepTally)} }

type stepTally struct{ sequences, failed, lines, lost int }

// The promise of the shipped configuration, under random faults: no readable data is lost unless the backend refused its content, nothing comes under a second
// id, or with different content under its id, nothing hangs, memory is bounded, and the account is right.
func TestTorture(t *testing.T) {
	bin := trainbridgeBin(t)
	known := steps
	if *tortureSteps != "" {
		names := strings.Split(*tortureSteps, ",")
		known = slices.DeleteFunc(slices.Clone(steps), func(st step) bool { return !slices.Contains(names, st.name) })
		require.Len(t, known, len(names), "-torture.steps: a name that is not in the table")
	}
	total, peers := newTally(), newTally()
	began, next := time.Now(), *tortureSeed
	end := next + *tortureSequences
	var mu sync.Mutex
	take := func() (seed uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= end || *tortureDuration > 0 && time.Since(began) > *tortureDuration {
			return 0, false
		}
		if next++; (next-*tortureSeed)%500 == 0 {
			t.Logf("%v: seed %d", time.Since(began).Round(time.Second), next)
		}
		return next - 1, true
	}
	var workers sync.WaitGroup
	for range *tortureParallel {
		workers.Go(func() {
			for seed, ok := take(); ok; seed, ok = take() {
				t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					newSequence(t, bin, seed, total).run(known)
					if *torturePeer {
						p := newSequence(t, fullBin(t), seed, peers)
						p.peer = true
						p.run(known)
					}
				})
			}
		})
	}
	workers.Wait()
	var cpu syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &cpu))
	t.Logf("%d sequences in %v, %v of CPU in collectors; next seed %d\n%s",
		total.sequences, time.Since(began).Round(time.Second), time.Duration(cpu.Utime.Nano()+cpu.Stime.Nano()).Round(time.Second), next, total)
	if *torturePeer {
		t.Logf("file_log:\n%s", peers)
	}
}

func newSequence(t *testing.T, bin string, seed uint64, total *tally) *sequence {
	t.Helper()
	return &sequence{
		T: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0x70727475)), sink: startOTLPSink(t), state: filepath.Join(t.TempDir(), "state"),
		tally: total, c: &collector{bin: bin},
	}
}

// draw makes a schedule of the steps given.
func (s *sequence) draw(known []step) (plan []*step) {
	if *tortureAlone {
		return slices.Repeat([]*step{&known[s.seed%uint64(len(known))]}, 2)
	}
	for range 2 + s.rng.IntN(3) {
		plan = append(plan, &known[s.rng.IntN(len(known))])
	}
	return plan
}

func (s *sequence) run(known []step) {
	s.Helper()
	defer s.sum()
	plan := s.draw(known)
	for _, st := range plan {
		s.forgets = s.forgets || st.forgets
		s.mounted = s.mounted || st.name == "disk_full"
		s.full = s.full || strings.HasPrefix(st.name, "disk_full")
		s.restarts = s.restarts || st.name != "flip"
	}
	s.prepare()
	s.work()
	s.launch()
	for _, st := range plan {
		s.step = st
		s.done = append(s.done, st.name)
		s.pause(400)
		s.work()
		st.do(s)
	}
	s.work()
	s.settle()
}

// prepare makes folders and configuration.
func (s *sequence) prepare() {
	s.check(os.Mkdir(s.state, 0o700))
	if s.mounted {
		smallDisk(s, s.state, 2<<20)
	}
	logs := s.TempDir()
	s.junk = filepath.Join(logs, "junk")
	env := []string{"TRAINBRIDGE_STATE_DIR=" + s.state, "TRAINBRIDGE_LOGS=" + s.junk + "/**"}
	for _, format := range logFormats {
		dir := filepath.Join(logs, format.receiver)
		s.check(os.Mkdir(dir, 0o700))
		env = append(env, format.env+"="+dir+"/*")
		for i, name := range format.names {
			f := &logFile{format: format, index: i, path: filepath.Join(dir, name)}
			s.files = append(s.files, f)
			s.append(f, []byte(format.head))
		}
	}
	config := s.intervals()
	if s.peer {
		config = peerConfig(logs, s.sink.addr)
	}
	s.c = newCollector(s, s.c.bin, "", s.sink.addr, config)
	s.c.env = append(s.c.env, env...)
	if s.peer {
		s.c.args = peerArgs(s.c.args)
	}
	if os.Geteuid() == 0 { // root could read files without the right to read
		s.c.args = append([]string{"--bounding-set=-dac_override,-dac_read_search", s.c.bin}, s.c.args...)
		s.c.bin = "/usr/bin/setpriv"
	}
	if s.seed%5 == 0 && !s.peer { // 4, 8 or 12 logs may be open at once, of 10 and their rotated files
		limit := 52 + 4*(s.seed/5%3)
		s.c.args = append([]string{fmt.Sprintf("--nofile=%d:%[1]d", limit), s.c.bin}, s.c.args...)
		s.c.bin = "/usr/bin/prlimit"
	}
}

// intervals shortens the intervals of the shipped configuration, the only change beside ports and paths.
func (s *sequence) intervals() string {
	var shipped struct {
		Exporters map[string]any
		Service   struct {
			Pipelines map[string]struct{ Exporters []string }
		}
	}
	s.check(yaml.Unmarshal([]byte(trainbridge.DefaultConfig), &shipped))
	var b strings.Builder
	b.WriteString("connectors: {train_metrics: {metrics_flush_interval: 1s}}\nreceivers:\n")
	for _, format := range logFormats {
		fmt.Fprintf(&b, "  %s: {poll_interval: 20ms}\n", format.receiver)
	}
	for _, name := range shipped.Service.Pipelines["traces"].Exporters {
		if shipped.Exporters[name] != nil { // an exporter, not a connector
			fmt.Fprintf(
				&b, "exporters:\n  %s: {timeout: 1s, retry_on_failure: {initial_interval: 50ms, max_interval: 300ms}, headers: {%s: '${env:TORTURE_PROCESS}'}}\n", name,
				processHeader,
			)
		}
	}
	return b.String()
}

func (s *sequence) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("seed %d, %v: %v", s.seed, s.done, err)
	}
}

// pause waits for up to upTo ms.
func (s *sequence) pause(upTo int) { moment(s.rng, upTo) }

// quiet keeps the logs of killed processes out of the output of a failed test.
type quiet struct{ testing.TB }

// Failed returns false: start then does not show the logs.
func (quiet) Failed() bool { return false }

func (s *sequence) launch() {
	s.started++
	process := strconv.Itoa(s.started)
	s.sink.begin(process)
	s.c.env = append(s.c.env, "TORTURE_PROCESS="+process) // the last value counts
	s.c.launch(quiet{s})
}

// alive fails the test if the collector has exited on its own. On a full disk it may refuse to start, with a message.
func (s *sequence) alive() {
	s.Helper()
	if !s.c.running() && s.mounted && s.c.logged("no space left on device") {
		s.launch()
	}
	if !s.c.running() {
		s.count(func(t *tally) { t.died++ })
		s.fail("died", "the collector ended by itself")
		s.FailNow()
	}
}

func (s *sequence) kill() {
	s.Helper()
	s.alive()
	s.measure()
	s.c.kill()
}

// stop ends the collector with SIGTERM.
func (s *sequence) stop() {
	s.Helper()
	s.alive()
	s.measure()
	s.check(s.c.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-s.c.done:
		// Before the collector handles the signal, the signal itself kills it.
		if state := s.c.cmd.ProcessState; !state.Success() && !strings.Contains(state.String(), "terminated") {
			s.count(func(t *tally) { t.died++ })
			s.fail("died", "%v after SIGTERM", state)
		}
	case <-time.After(patience):
		s.c.kill()
		s.count(func(t *tally) { t.hung++ })
		s.fail("hung", "no end within %v of SIGTERM", patience)
	}
}

// measure records the process's peak memory.
func (s *sequence) measure() {
	if peak, err := s.c.status("VmHWM"); err == nil {
		s.peak = max(s.peak, peak)
	}
}

// eachFile does something with about half of the logs.
func (s *sequence) eachFile(do func(f *logFile)) {
	for _, f := range s.files {
		if s.rng.IntN(2) == 0 && !s.spared(f) {
			do(f)
		}
	}
}

// spared says whether the step leaves a log alone: the log needs the order that the step would disturb, unless it was read and the state has it. The halves of
// joint records come apart when a rank's lines are read out of order, so the records must be delivered before.
func (s *sequence) spared(f *logFile) bool {
	if !s.step.disorders {
		return false
	}
	switch {
	case f.format.counts:
		return s.forgets || within(storeLimit, func() error { return s.stored(f) }) != nil
	case f.format.joint:
		return !s.delivered(f.records) || slices.ContainsFunc(f.old, func(o *oldFile) bool { return !s.delivered(o.records) })
	}
	return false
}

// stored says whether the state on disk covers all lines of a log, so no process reads them again.
func (s *sequence) stored(f *logFile) error {
	paths := []string{f.path}
	for _, o := range f.old {
		paths = append(paths, o.path)
	}
	return s.storedFiles(f.format.receiver, paths...)
}

func (s *sequence) storedFiles(receiver string, paths ...string) error {
	accepted, err := s.accepted(receiver)
	if err != nil {
		return err
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		s.check(err)
		text, err := os.ReadFile(path)
		s.check(err)
		if ino := info.Sys().(*syscall.Stat_t).Ino; accepted[ino] <= int64(bytes.LastIndexByte(text, '\n')) {
			return fmt.Errorf("%s is stored up to byte %d", path, accepted[ino])
		}
	}
	return nil
}

// accepted reads the positions of a receiver in a copy of the state, as another process would find them.
func (s *sequence) accepted(receiver string) (map[uint64]int64, error) {
	const name = "receiver.%s.tail.state"
	data, err := os.ReadFile(filepath.Join(s.state, fmt.Sprintf(name, receiver)))
	if err != nil {
		return nil, err
	}
	dir := s.TempDir()
	s.check(os.WriteFile(filepath.Join(dir, fmt.Sprintf(name, receiver)), data, 0o600))
	factory := statestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*statestorage.Config)
	cfg.Directory = dir
	copied, err := factory.Create(s.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
	s.check(err)
	s.check(copied.Start(s.Context(), componenttest.NewNopHost()))
	defer func() { s.check(copied.Shutdown(s.Context())) }()
	client, err := copied.(storage.Extension).GetClient(s.Context(), component.KindReceiver, component.MustNewID(receiver), "tail")
	s.check(err)
	defer func() { s.check(client.Close(s.Context())) }()
	return tailtest.Accepted(s.Context(), client)
}

func (s *sequence) filesOf(receiver string) []*logFile {
	at := slices.IndexFunc(s.files, func(f *logFile) bool { return f.format.receiver == receiver })
	return s.files[at : at+2]
}

// work writes some records to some of the logs.
func (s *sequence) work() {
	for i, f := range s.files {
		if s.rng.IntN(3) == 0 || f.format.joint && i%2 == 1 {
			continue
		}
		var all []record
		for range 1 + s.rng.IntN(20) {
			all = append(all, f.format.make(s.rng, f.index, f.made))
			f.made++
		}
		s.write(f, all)
	}
}

// write writes records to a log, or to both of a format whose records are in both.
func (s *sequence) write(f *logFile, all []record) {
	for _, to := range s.filesOf(f.format.receiver) {
		if to != f && !f.format.joint {
			continue
		}
		var text []byte
		for i := range all {
			for _, line := range all[i].lines[to.index] {
				text = append(append(text, line...), '\n')
			}
			to.records = append(to.records, len(s.records)+i)
		}
		s.append(to, text)
	}
	s.records = append(s.records, all...)
}

// append writes in pieces that do not end at line ends.
func (s *sequence) append(f *logFile, text []byte) {
	out, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY, 0o600)
	s.check(err)
	for len(text) > 0 {
		n := 1 + s.rng.IntN(len(text))
		if n > len(text)*3/4 {
			n = len(text)
		}
		_, err = out.WriteAt(text[:n], f.offset)
		s.check(err)
		f.offset += int64(n)
		text = text[n:]
		if len(text) > 0 {
			s.pause(5)
		}
	}
	s.check(out.Close())
}

// delivered says whether the sink has accepted or refused all of these records.
func (s *sequence) delivered(records []int) bool {
	for _, i := range records {
		if s.lost(&s.records[i]) > 0 {
			return false
		}
	}
	return true
}

// lost is the number of lines of a record neither accepted nor refused for their content.
func (s *sequence) lost(r *record) (lines int) {
	if s.peer {
		for _, part := range r.lines {
			for _, line := range part {
				line = strings.TrimRight(line, " ")
				if !s.sink.has(line) && !s.sink.refusedFor(line) {
					lines++
				}
			}
		}
		return lines
	}
	all := len(r.lines[0]) + len(r.lines[1])
	for _, key := range r.keys {
		switch {
		case s.sink.refusedFor(key):
			if r.receiver != "zmq_rpc" { // a zmq_rpc record may have Init too, in a trace of its own
				return 0
			}
		case !s.sink.has(key):
			lines = all
		}
	}
	return lines
}

// settle waits until all has arrived, or nothing moves any more, and draws the balance.
func (s *sequence) settle() {
	s.Helper()
	lost := s.drain()
	lines := 0
	for i := range s.records {
		lines += len(s.records[i].lines[0]) + len(s.records[i].lines[1])
	}
	s.count(func(t *tally) {
		t.lines += lines
		t.lost += lost
		for _, name := range s.kinds() {
			t.step(name).lines += lines
			t.step(name).lost += lost
		}
	})
	if s.peer {
		s.c.kill()
		return
	}
	if n := len(s.sink.seconds); n > 0 {
		s.count(func(t *tally) { t.seconds += n })
		s.fail("second id", "%d spans came with another id, such as %s", n, s.sink.seconds[0])
	}
	// Without its state a collector has lost the reading time of logs without a clock, and its earlier verdicts; a state without room counts as lost.
	if n := len(s.sink.changes); n > 0 && !s.forgets && !s.full {
		s.count(func(t *tally) { t.changes += n })
		s.fail("second content", "%d spans came with another content:\n%s", n, strings.Join(sorts(s.sink.changes), "\n"))
	}
	// On a crowded machine answers come after the exporter's second, and a batch is sent again until an answer comes in time.
	if err := within(patience, s.balanced); err != nil {
		s.count(func(t *tally) { t.unaccounted++ })
		s.fail("account", "%v", err)
	}
	if err := within(patience, s.counted); err != nil {
		s.count(func(t *tally) { t.miscounted++ })
		s.fail("counters", "%v", err)
	}
	s.stop()
	if s.peak > rssLimit {
		s.count(func(t *tally) { t.overLimit++ })
		s.fail("memory", "%d MiB", s.peak>>20)
	}
}

// drain waits until every line has arrived, or progress ends; it returns the lost lines.
func (s *sequence) drain() (lost int) {
	s.Helper()
	deadline := time.Now().Add(drainLimit)
	var first string
	balance := func() {
		lost, first = 0, ""
		for i := range s.records {
			if n := s.lost(&s.records[i]); n > 0 {
				lost += n
				first = cmp.Or(first, s.records[i].receiver+": "+s.records[i].keys[0])
			}
		}
	}
	quiet, seen, moved := time.Now(), -1, ""
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 300*time.Millisecond) {
		s.alive()
		if n := s.sink.progress(); n != seen {
			seen, quiet = n, time.Now()
			if balance(); lost == 0 {
				break
			}
		}
		if !s.peer { // the peer's accounts prove nothing
			accounts, err := s.c.accounts()
			if now := fmt.Sprint(accounts); now != moved || err != nil { // a starting collector does not answer yet
				moved, quiet = now, time.Now()
			}
		}
		if time.Now().After(deadline) {
			s.count(func(t *tally) { t.hung++ })
			s.fail("hung", "%d lines have not arrived within %v, the first of %s: %v", lost, drainLimit, first, moved)
			break
		}
		if time.Since(quiet) > restLimit {
			s.fail("lost", "%d lines lost, the first of %s: %v", lost, first, moved)
			break
		}
		time.Sleep(pause)
	}
	return lost
}

// balanced checks the account of an idle collector.
func (s *sequence) balanced() error {
	all, err := s.c.accounts()
	if err != nil {
		return err
	}
	delete(all, "run_events") // no test data is written for it
	if len(all) != len(logFormats) {
		err = fmt.Errorf("%d receivers have accounts", len(all))
	}
	want, byNumber := s.refusedLines()
	for _, format := range logFormats {
		a := all[format.receiver]
		// Lines of a log truncated before it was read, or read again without a state, wait for the other ranks' lines for minutes.
		waits := format.joint && (a["truncations"] > 0 || s.halves && s.forgets)
		if a["lines"] != a["records"]+a["ignored"]+a["rejected"] || a["records"] != a["sent"]+a["refused"]+a["pending"] || a["pending"] != 0 && !waits {
			err = errors.Join(err, fmt.Errorf("%s: %v", format.receiver, a))
		}
		// Lines refused by number are counted as their share of a request.
		if refused := a["refused"]; refused != want[format.receiver] && (!byNumber || refused > 0 != (want[format.receiver] > 0)) {
			err = errors.Join(err, fmt.Errorf("%s: %d lines were refused, counted are %d", format.receiver, want[format.receiver], refused))
		}
	}
	return err
}

// counted returns the counters that differ from the logs. Counts are lost with the state.
func (s *sequence) counted() (err error) {
	if s.forgets {
		return nil
	}
	want := make(map[string]int)
	for _, format := range logFormats {
		for i := range s.records {
			switch r := &s.records[i]; {
			case r.receiver != format.receiver:
			case format.perKey:
				want[format.counter] += len(r.keys)
			default:
				want[format.counter]++
			}
		}
	}
	for name, n := range want {
		err = errors.Join(err, s.c.counted(name, n)())
	}
	return err
}

// refusedLines are the lines to be counted as refused by the running process, by receiver, and whether some of them were refused by number.
func (s *sequence) refusedLines() (lines map[string]int64, byNumber bool) {
	final, byNumber := s.sink.refusals()
	lines = make(map[string]int64)
	for i := range s.records {
		r := &s.records[i]
		n := 0
		for _, key := range r.keys {
			if final[key] {
				n++
			}
		}
		if n > 0 && r.receiver != "zmq_rpc" { // each line of a zmq_rpc record has a key of its own
			n = len(r.lines[0]) + len(r.lines[1])
		}
		lines[r.receiver] += int64(n)
	}
	return lines, byNumber
}

// fail marks the sequence as failed, with instructions to repeat it.
func (s *sequence) fail(kind, format string, args ...any) {
	s.Helper()
	text := fmt.Sprintf(format, args...)
	if s.peer {
		s.Logf("%s: %s\n%s", kind, text, s.c.tail(12))
		return
	}
	only := ""
	if *tortureSteps != "" {
		only = " -torture.steps=" + *tortureSteps
	}
	if *tortureAlone {
		only += " -torture.alone"
	}
	s.Errorf("%s: %s\nseed %d: %s\nrepeat: go test -tags e2e -count=1 -run TestTorture ./test/e2e -torture.seed=%d -torture.sequences=1%s\n%s",
		kind, text, s.seed, strings.Join(s.done, ", "), s.seed, only, s.c.tail(12))
}

// kinds are the names of the executed steps.
func (s *sequence) kinds() []string { return slices.Compact(slices.Sorted(slices.Values(s.done))) }

func (s *sequence) count(f func(t *tally)) {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	f(s.tally)
}

func (t *tally) step(name string) *stepTally {
	if t.steps[name] == nil {
		t.steps[name] = &stepTally{}
	}
	return t.steps[name]
}

// sum adds the sequence to the tally.
func (s *sequence) sum() {
	s.count(func(t *tally) {
		t.sequences++
		t.copies += s.sink.copies
		t.peak = max(t.peak, s.peak)
		if s.Failed() {
			t.failed++
			t.bad = append(t.bad, s.seed)
		}
		for _, name := range s.kinds() {
			t.step(name).sequences++
			if s.Failed() {
				t.step(name).failed++
			}
		}
	})
}

// String is a table of the steps, worst first, and the sums.
func (t *tally) String() string {
	var b strings.Builder
	names := make([]string, 0, len(t.steps))
	for name := range t.steps {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		a, b := t.steps[x], t.steps[y]
		return cmp.Or(cmp.Compare(b.failed*a.sequences, a.failed*b.sequences), strings.Compare(x, y))
	})
	fmt.Fprintf(&b, "%-24s %9s %7s %9s %9s\n", "step", "sequences", "failed", "lines", "lost")
	for _, name := range names {
		st := t.steps[name]
		fmt.Fprintf(&b, "%-24s %9d %7d %9d %9d\n", name, st.sequences, st.failed, st.lines, st.lost)
	}
	slices.Sort(t.bad)
	fmt.Fprintf(&b, "%d sequences, %d failed; %d lines, %d lost, %d second ids, %d second contents, %d hung, %d died, %d accounts wrong, %d counters wrong, %d over "+
		"%d MiB (the most: %d MiB); %d spans came again with the same id\nfailing seeds: %v",
		t.sequences, t.failed, t.lines, t.lost, t.seconds, t.changes, t.hung, t.died, t.unaccounted, t.miscounted, t.overLimit, rssLimit>>20, t.peak>>20, t.copies,
		t.bad)
	return b.String()
}
