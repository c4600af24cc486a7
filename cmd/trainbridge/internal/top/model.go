package top

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/spans"
)

// Bounds.
const (
	mostSteps    = 512 // as many as a wide sparkline has columns
	mostVerdicts = 200
	mostGPUs     = 64
	mostParts    = 64
	mostRuns     = 64
)

// step is the data of a training step. NaN: unknown.
type step struct {
	n      int64   // the iteration; -1: unknown
	end    int64   // ns since 1970
	time   float64 // s
	tokens float64 // 1/s
	sample float64 // 1/s
	flop   float64 // 1/s per device
	mfu    float64
	loss   float64
	odd    string // the log's text of a loss that is NaN or infinite
}

// window says where the time of a step went; from a scrape, the time of all steps since the scrape before.
type window struct {
	n     int64              // the iteration; -1: unknown
	end   int64              // ns since 1970
	whole float64            // s
	parts map[string]float64 // s by part
}

// verdict is a verdict on a span, or a line about the end of a run.
type verdict struct {
	at       int64  // ns since 1970
	where    string // on what: "step 12", "rank 3"
	name     string // the verdict's title
	severity string
	reason   string // a sentence
}

// gpu is the data of a GPU. NaN: unknown.
type gpu struct {
	host, id, name, model string
	busy                  float64 // share
	memory, memoryLimit   float64 // By
	power, temperature    float64 // W, Cel
	throttled             string  // why the clocks are held down
	logged                bool    // from a log, not from the driver
}

// job is a run on the screen.
type job struct {
	id       string
	of       int64     // iterations planned; 0: not known
	steps    []step    // the latest mostSteps, by end
	windows  []window  // likewise
	verdicts []verdict // the latest mostVerdicts, by time
	told     int       // verdicts seen so far, also those dropped
	changed  time.Time // when anything came

	book  *book.Book // the times in the logs; nil: the figures are another trainbridge's
	stale bool       // the book has more than spent
	known int        // how many steps of the book are in spent
	spent spent
}

// model is the data of the screen. Its methods may be called by several goroutines.
type model struct {
	mu      sync.Mutex
	from    string // the watched directory or address
	jobs    map[string]*job
	gpus    map[string]*gpu
	trouble string          // why nothing comes
	dirty   chan struct{}   // holds an item when the model has changed since the last frame
	on      func(event any) // called with each new step and verdict, under mu; nil: not wanted
}

func newModel(from string) *model {
	return &model{from: from, jobs: map[string]*job{}, gpus: map[string]*gpu{}, dirty: make(chan struct{}, 1)}
}

// change calls f, which changes the model, under the lock, and has the screen drawn again.
func (m *model) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	select {
	case m.dirty <- struct{}{}:
	default: // a frame is due already
	}
}

// job is the job of a run, a new one if unknown; beyond mostRuns the job without news for the longest time is dropped.
func (m *model) job(id string, now time.Time) *job {
	j := m.jobs[id]
	if j == nil {
		if len(m.jobs) >= mostRuns {
			oldest := slices.MinFunc(slices.Collect(maps.Values(m.jobs)), func(a, b *job) int { return a.changed.Compare(b.changed) })
			delete(m.jobs, oldest.id)
		}
		j = &job{id: id}
		m.jobs[id] = j
	}
	j.changed = now
	return j
}

// current is the job on the screen: the job with the newest data, of equals the one with the higher id; nil without a job.
func (m *model) current() *job {
	var out *job
	for _, j := range m.jobs {
		if out == nil || cmp.Or(cmp.Compare(out.last(), j.last()), cmp.Compare(out.id, j.id)) < 0 {
			out = j
		}
	}
	return out
}

// last is the time of the newest data, ns since 1970; 0: none.
func (j *job) last() (at int64) {
	if n := len(j.steps); n > 0 {
		at = j.steps[n-1].end
	}
	if n := len(j.windows); n > 0 {
		at = max(at, j.windows[n-1].end)
	}
	if n := len(j.verdicts); n > 0 {
		at = max(at, j.verdicts[n-1].at)
	}
	return at
}

// addStep adds a step at its place in time. A step with the number of a known one, from another rank or log, adds the figures that are unknown yet: the first
// value of a figure wins. Steps without a number are the same if they end at the same time.
func (m *model) addStep(j *job, s step) {
	at, there := slices.BinarySearchFunc(j.steps, s, func(a, b step) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.n, b.n)) })
	if i := slices.IndexFunc(j.steps, func(o step) bool { return o.n == s.n }); i >= 0 && s.n >= 0 {
		at, there = i, true
	}
	if there {
		o := &j.steps[at]
		for _, v := range []struct {
			to   *float64
			from float64
		}{{&o.time, s.time}, {&o.tokens, s.tokens}, {&o.sample, s.sample}, {&o.flop, s.flop}, {&o.mfu, s.mfu}, {&o.loss, s.loss}} {
			if math.IsNaN(*v.to) {
				*v.to = v.from
			}
		}
		o.odd = cmp.Or(o.odd, s.odd)
		return
	}
	j.steps = slices.Insert(j.steps, at, s)
	newest := at == len(j.steps)-1
	if n := len(j.steps); n > mostSteps {
		j.steps = slices.Delete(j.steps, 0, n-mostSteps)
	}
	if m.on != nil && newest { // printed lines are in order: a step that comes late is not printed
		m.on(s)
	}
}

// addWindow adds a window at its place in time.
func (j *job) addWindow(w window) {
	at, _ := slices.BinarySearchFunc(j.windows, w, func(a, b window) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.n, b.n)) })
	j.windows = slices.Insert(j.windows, at, w)
	if n := len(j.windows); n > mostSteps {
		j.windows = slices.Delete(j.windows, 0, n-mostSteps)
	}
}

// addVerdict adds a verdict at its place in time; the same verdict again counts once.
func (m *model) addVerdict(j *job, v verdict) {
	if slices.Contains(j.verdicts, v) {
		return
	}
	at, _ := slices.BinarySearchFunc(j.verdicts, v, func(a, b verdict) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name), cmp.Compare(a.reason, b.reason))
	})
	j.verdicts = slices.Insert(j.verdicts, at, v)
	j.told++
	if n := len(j.verdicts); n > mostVerdicts {
		j.verdicts = slices.Delete(j.verdicts, 0, n-mostVerdicts)
	}
	if m.on != nil {
		m.on(v)
	}
}

// gpuOf is a GPU by its host and id, apart for what a log says and what the driver says; a new one if unknown. nil: there are mostGPUs.
func (m *model) gpuOf(host, id string, logged bool) *gpu {
	key := fmt.Sprint(host, "\x00", id, logged)
	g := m.gpus[key]
	if g == nil && len(m.gpus) < mostGPUs {
		nan := math.NaN()
		g = &gpu{host: host, id: id, logged: logged, busy: nan, memory: nan, memoryLimit: nan, power: nan, temperature: nan}
		m.gpus[key] = g
	}
	return g
}

// cards are the GPUs to show, by host and number: those known from the driver if any are, else those from logs. The shorter name comes first: GPU 2 before
// GPU 10.
func (m *model) cards() []*gpu {
	all := slices.Collect(maps.Values(m.gpus))
	if slices.ContainsFunc(all, func(g *gpu) bool { return !g.logged }) {
		all = slices.DeleteFunc(all, func(g *gpu) bool { return g.logged })
	}
	slices.SortFunc(all, func(a, b *gpu) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name),
			cmp.Compare(len(a.id), len(b.id)), cmp.Compare(a.id, b.id))
	})
	return all
}

// told is the latest verdict of a kind.
type told struct {
	verdict

	times int // how many of the kind there are
}

// badness orders severities: bad is 1, a warning 0, none −1.
func badness(severity string) int {
	return slices.Index([]string{spans.SeverityWarning, spans.SeverityBad}, severity)
}

// grouped are the kinds of verdicts of a job, each with its latest verdict: bad before warnings, and of equals the newest first. A job may get hundreds of a
// kind in a minute. A kind is a title and what the verdicts are on, without a number: "step 12" and "step 13" are one.
func (j *job) grouped() (all []told) {
	at := map[string]int{}
	for _, v := range slices.Backward(j.verdicts) {
		key := v.name + "\x00" + strings.TrimRight(v.where, "0123456789")
		i, ok := at[key]
		if !ok {
			i = len(all)
			at[key] = i
			all = append(all, told{verdict: v})
		}
		all[i].times++
	}
	slices.SortStableFunc(all, func(a, b told) int { return cmp.Compare(badness(b.severity), badness(a.severity)) })
	return all
}
