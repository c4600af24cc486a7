package sim

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// trainer writes the log of a trainer. Times are s since the job began.
type trainer interface {
	// traits describes the content of the log.
	traits() traits
	// begin are the first lines of an attempt; loaded is the step of the loaded checkpoint.
	begin(j *job, at float64, loaded int64)
	step(j *job, s *step)
	// save and evaluate are called after the iteration n, between steps.
	save(j *job, at, took float64, n int64)
	evaluate(j *job, at, took float64, n int64)
	// die is the word of a launcher when a process is gone.
	die(j *job, at float64)
	end(j *job, at float64)
}

// traits of a log.
type traits struct {
	clock   bool // lines have stamps
	parts   bool // times of data loading are logged
	started bool // lines before the first step have stamps
	lines   bool // the time of a step is the time between lines, with everything in between
}

type step struct {
	n                  int64
	start, took, usual float64
	parts              []part
	batch              int
	late               []float64 // by rank, s: behind the first
	slowLink           float64   // s
}

type part struct {
	name string
	took float64
}

// share is a part of the usual step: its name, and its share of the time.
type share struct {
	name string
	of   float64
}

// fault makes a step slow.
type fault struct {
	extra float64
	part  string // "": a part in no log
	rank  int    // -1: none
	host  string
	open  bool // of a period, or no fault at all: not scored
	save  bool // a checkpoint within the step
	test  bool // an evaluation within the step
	link  bool // slow transfer

	unexplained bool // a reader may leave the cause open
}

// job is a simulated job at work.
type job struct {
	rng   *rand.Rand
	dir   string
	zone  *time.Location
	epoch time.Time
	errs  []error
	files []*logFile

	out    trainer
	beside *collectives // logs of NCCL
	now    float64
	noise  noise
	level  func(n int64) float64 // the usual time of a step, s
	shares []share
	batch  func(n int64) int
	faults map[int64]fault
	ranks  int
	hosts  []string
	always map[int]float64 // lateness of a rank in each step, a share of the step

	done   map[int64]bool
	useful float64
	over   map[string]float64 // by part and rank of faults: s, above the usual time, noise included
	drifts bool               // the usual time changes from step to step
	truth  Truth
}

// logFile is an open log.
type logFile struct {
	*bufio.Writer
	file *os.File
}

// create makes a log.
func (j *job) create(name string) io.Writer {
	path := filepath.Join(j.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		fail("%w", err)
	}
	f, err := os.Create(path)
	if err != nil {
		fail("%w", err)
	}
	j.files = append(j.files, &logFile{bufio.NewWriterSize(f, 1<<16), f})
	return j.files[len(j.files)-1]
}

func (j *job) close() {
	for _, f := range j.files {
		j.errs = append(j.errs, f.Flush(), f.file.Close())
	}
	j.files = nil
}

// when is the time of day of a moment.
func (j *job) when(at float64) time.Time { return j.epoch.Add(time.Duration(at * 1e9)) }

func (j *job) stamp(at float64, layout string) string { return j.when(at).Format(layout) }

// between is a random whole number.
func (j *job) between(low, high int) int { return low + j.rng.IntN(high-low+1) }

// uniform is a random number.
func (j *job) uniform(low, high float64) float64 { return low + (high-low)*j.rng.Float64() }

// pick draws count steps of from..to, at least apart steps from each other.
func (j *job) pick(count, from, to, apart int) []int64 {
	var picked []int64
	for tries := 0; len(picked) < count; tries++ {
		if tries > 100000 {
			fail("no room for %d of the steps %d to %d", count, from, to)
		}
		n := int64(j.between(from, to))
		if !slices.ContainsFunc(picked, func(m int64) bool { return max(n-m, m-n) < int64(apart) }) {
			picked = append(picked, n)
		}
	}
	slices.Sort(picked)
	return picked
}

// clear draws a clear fault at a step: at least 15 % of the usual time and eight standard deviations, up to three times as much.
func (j *job) clear(n int64) float64 {
	return j.level(n) * max(0.18, 10*j.noise.deviation) * j.uniform(1, 3)
}

// add makes steps slow.
func (j *job) add(f fault, steps ...int64) {
	for _, n := range steps {
		one := f
		if one.extra == 0 {
			one.extra = j.clear(n)
		}
		j.faults[n] = one
	}
}

// start begins an attempt: its first line comes at once, its first step after took seconds.
func (j *job) start(took float64, loaded int64) {
	t := j.out.traits()
	j.out.begin(j, j.now, loaded)
	if t.started {
		j.spend(StartUp, took)
	}
	if j.beside != nil {
		j.beside.open(j)
	}
	j.now += took
	if !t.started {
		j.epoch = j.epoch.Add(-time.Duration(took * 1e9))
	}
	j.truth.Attempts = append(j.truth.Attempts, Attempt{First: loaded + 1})
	j.truth.Open[loaded+1] = true
}

// spend puts time into the account.
func (j *job) spend(state string, s float64) {
	j.truth.States[state] += s
	if j.beside != nil {
		j.truth.Devices[state] += s * float64(j.ranks)
	}
}

func (j *job) steps(from, to int64) {
	for n := from; n <= to; n++ {
		j.step(n)
	}
}

func (j *job) step(n int64) {
	usual := j.level(n)
	s := &step{n: n, start: j.now, usual: usual, took: usual * j.noise.next(j.rng), batch: 256}
	if j.batch != nil {
		s.batch = j.batch(n)
	}
	for _, of := range j.shares {
		s.parts = append(s.parts, part{of.name, s.took * of.of})
	}
	if j.beside != nil {
		s.late = make([]float64, j.ranks)
		for r, of := range j.always {
			s.late[r] = of * s.took
		}
	}
	f, faulty := j.faults[n]
	if faulty && !j.done[n] {
		j.disturb(s, f)
	} else {
		f = fault{}
	}
	j.out.step(j, s)
	if j.beside != nil {
		j.beside.step(j, s)
	}
	j.now += s.took
	a := &j.truth.Attempts[len(j.truth.Attempts)-1]
	a.Last, a.Steps = n, a.Steps+1
	switch {
	case j.done[n]:
		a.Redone++
		j.truth.Open[n] = true
		j.spend(Redone, s.took)
		return
	case f.save:
		j.spend(Checkpoint, f.extra)
		j.spend(Step, s.took-f.extra)
	case f.test:
		j.spend(Evaluation, f.extra)
		j.spend(Step, s.took-f.extra)
	default:
		j.spend(Step, s.took)
	}
	j.done[n] = true
	j.truth.Steps++
	j.useful += usual
}

// disturb makes a step slow.
func (j *job) disturb(s *step, f fault) {
	s.took += f.extra
	switch {
	case f.link:
		s.slowLink = f.extra
	case f.rank >= 0 && s.late != nil:
		s.late[f.rank] += f.extra
	}
	called := f.part
	for i := range s.parts {
		if slices.Contains(within[f.part], s.parts[i].name) { // a timer includes the timers within it
			s.parts[i].took += f.extra
		}
		if s.parts[i].name == called {
			s.parts[i].took += f.extra
			called = ""
		}
	}
	if called != "" && (f.save || f.test) {
		s.parts = append(s.parts, part{called, f.extra})
	}
	if f.open || f.save || f.test {
		j.truth.Open[s.n] = true
		return
	}
	slow := Slow{Iteration: s.n, Extra: f.extra, Part: f.part, Untold: f.unexplained, Rank: f.rank, Host: f.host}
	if j.beside != nil {
		slow.Devices = f.extra * float64(j.ranks)
	}
	j.truth.Slow = append(j.truth.Slow, slow)
	j.over[fmt.Sprint(f.part, f.rank)] += s.took - s.usual
}

// save saves a checkpoint between steps.
func (j *job) save(took float64) {
	a := j.truth.Attempts[len(j.truth.Attempts)-1]
	j.out.save(j, j.now, took, a.Last)
	if j.out.traits().lines {
		j.truth.Open[a.Last+1] = true
	}
	j.spend(Checkpoint, took)
	j.now += took
}

// evaluate evaluates between steps.
func (j *job) evaluate(took float64) {
	a := j.truth.Attempts[len(j.truth.Attempts)-1]
	j.out.evaluate(j, j.now, took, a.Last)
	j.spend(Evaluation, took)
	j.now += took
}

// crash ends an attempt; the next begins after down seconds.
func (j *job) crash(down float64) {
	j.out.die(j, j.now)
	j.spend(Down, down)
	j.now += down
}

// end ends the job.
func (j *job) end(after float64) {
	if j.out.traits().started && after > 0 {
		j.spend(AfterEnd, after)
		j.now += after
	}
	j.out.end(j, j.now)
}

// settle adds up the truth.
func (j *job) settle() {
	t := &j.truth
	for _, s := range t.States {
		t.Wall += s
	}
	if !j.drifts {
		t.Goodput = j.useful / t.Wall
	}
	t.Parts = t.Parts || j.out.traits().parts
	if len(t.Lost) == 0 {
		all := 0.0
		for _, over := range j.over {
			all += over
			t.Lost = append(t.Lost, over)
		}
		if len(j.over) > 1 {
			t.Lost = append(t.Lost, all)
		}
		slices.Sort(t.Lost)
	}
	if len(t.Lost) > 0 && t.Share == 0 {
		t.Share = slices.Max(t.Lost) / t.Wall
	}
	if t.noClock {
		t.Wall, t.States, t.Goodput = 0, nil, 0
	}
	steps := count(t.Steps)
	if again := t.redone(); again > 0 {
		steps += "|" + count(t.Steps+again)
	}
	t.Must = append(t.Must, steps)
	if t.Rank >= 0 && len(t.Somewhere) == 0 {
		t.Must = append(t.Must, fmt.Sprintf(`rank %d\b`, t.Rank))
	}
	t.Never = append(t.Never, "Nothing is wrong", "Nothing was lost", "Nothing is off")
	if !t.Parts || t.Share >= 0.05 {
		t.Never = append(t.Never, "(?i)healthy")
	}
}

// redone is how many steps were done again.
func (t *Truth) redone() (n int) {
	for _, a := range t.Attempts {
		n += a.Redone
	}
	return n
}

// together merges states of the account that no log can distinguish.
func (t *Truth) together(states ...string) {
	sum := 0.0
	for _, state := range states {
		sum += t.States[state]
		delete(t.States, state)
	}
	t.States[strings.Join(states, "+")] = sum
}

// count is a pattern of a number, with a separator or without.
func count(n int) string {
	text := strconv.Itoa(n)
	if n >= 1000 {
		text = fmt.Sprintf("%d,?%03d", n/1000, n%1000)
	}
	return `(^|[^0-9.,])` + text + `($|[^0-9,.]|[.,]($|[^0-9]))`
}
