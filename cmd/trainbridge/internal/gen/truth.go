package gen

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/spans"
)

// Truth is truth.json. Times are true, by no host's clock: ns unless the name says s.
type Truth struct {
	// RunID is for the receivers' run_id: no log has it.
	RunID  string         `json:"run_id"`
	Seed   uint64         `json:"seed"`
	Ranks  int            `json:"ranks"`
	Clocks []string       `json:"clocks,omitempty"`
	Hosts  []Host         `json:"hosts"`
	Files  []logfile.File `json:"files"` // paths from the directory on
	Start  int64          `json:"start"`
	End    int64          `json:"end"`
	Tokens int64          `json:"tokens"` // of all steps in the training log
	Steps  []Step         `json:"steps"`
}

// Host is a host: at true time t its clock shows t + SkewNS + DriftPPM·1e-6·(t − Start). PIDs are the workers of its ranks, in order.
type Host struct {
	Name      string  `json:"name"`
	FirstRank int     `json:"first_rank"`
	PIDs      []int   `json:"pids"`
	SkewNS    int64   `json:"skew_ns"`
	DriftPPM  float64 `json:"drift_ppm"`
}

// Step is the content of one line of the training log: a step, or several with ClockNSteps.
type Step struct {
	Step    int `json:"step"` // the last one
	Covered int `json:"steps_covered"`
	// TraceID is the id in all logs with ids; with ClockNA TransferQueue's is N/A. TraceIDs are the ids of several steps, whose line has none.
	TraceID  string   `json:"trace_id,omitempty"`
	TraceIDs []string `json:"trace_ids,omitempty"`
	Start    int64    `json:"start"`
	End      int64    `json:"end"`
	Tokens   int64    `json:"tokens"` // of all ranks
	Breakdown
	Waits []Wait `json:"waits"`
	// Spans is the number of its spans by trainbridge.kind. Stages are get, compute and put.
	Spans map[string]int `json:"spans"`
	// Cause is why the step was slow, nil if not; of several steps the most expensive cause.
	Cause *Cause `json:"cause"`
	// Throttled is when a GPU was held down.
	Throttled []Throttled `json:"throttled,omitempty"`
}

// Wait is the time that ranks waited for the last rank, over all collectives of a step.
type Wait struct {
	Rank    int     `json:"rank"`
	Host    string  `json:"host"`
	Comm    string  `json:"comm"` // as in the log; VCCL has none
	Seconds float64 `json:"seconds"`
}

// Cause is a fault. Seconds is the step's extra time over the same step without the fault; Rank is -1 for a fault of no rank.
type Cause struct {
	Kind    string  `json:"kind"`
	Rank    int     `json:"rank"`
	Host    string  `json:"host,omitempty"`
	To      *int    `json:"to,omitempty"`       // of a link, the receiving rank
	Func    string  `json:"function,omitempty"` // of get and put
	Seconds float64 `json:"seconds"`
}

// Throttled is a time in which a rank's GPU was throttled by heat.
type Throttled struct {
	Rank  int    `json:"rank"`
	Host  string `json:"host"`
	Start int64  `json:"start"`
	End   int64  `json:"end"`
}

// doneStep is a step with its place in time.
type doneStep struct {
	*plan
	*timeline
	rpcs  rpcs
	extra int64 // ns by which the fault makes the step longer
}

// truthOf is the truth about the steps of a line of the training log: times, waiting for ranks, numbers of spans, and the cause that costs most.
func (j *job) truthOf(steps []doneStep) Step {
	first, last := &steps[0], &steps[len(steps)-1]
	s := Step{Step: last.step, Covered: len(steps), Start: first.start, End: last.end, Waits: []Wait{}, Spans: map[string]int{}}
	waits := map[int]int64{} // ns, by the rank waited for
	worst := int64(0)        // ns, of the cause so far
	for i := range steps {
		t := &steps[i]
		s.Tokens += t.tokens
		if j.opt.ids() {
			s.TraceIDs = append(s.TraceIDs, t.traceID)
		}
		for k := range t.collectives {
			c := &t.collectives[k]
			waits[c.last()] += c.begun - c.first()
		}
		j.countSpans(s.Spans, t)
		if t.fault != nil && t.extra > worst {
			worst = t.extra
			s.Cause = j.cause(t)
		}
		if t.fault != nil && t.fault.kind == FaultGPU {
			r := t.fault.rank
			s.Throttled = append(s.Throttled, Throttled{
				// From the begin of the update's computing to the arrival at the last collective.
				Rank: r, Host: j.host(r).name, Start: t.functions[update][r].got, End: t.collectives[len(t.collectives)-1].arrive[r],
			})
		}
	}
	s.Spans[spans.KindStep], s.Spans[spans.KindPart] = 1, len(parts(steps))
	if len(s.TraceIDs) == 1 {
		s.TraceID, s.TraceIDs = s.TraceIDs[0], nil
	}
	s.Breakdown = breakDown(steps, interval{s.Start, s.End})
	for _, rank := range slices.Sorted(maps.Keys(waits)) {
		s.Waits = append(s.Waits, Wait{Rank: rank, Host: j.host(rank).name, Comm: j.comm, Seconds: float64(waits[rank]) / 1e9})
	}
	slices.SortStableFunc(s.Waits, func(a, b Wait) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return s
}

// countSpans adds the numbers of spans that the logs of a step make, by kind, but for those of its line in the training log.
func (j *job) countSpans(n map[string]int, t *doneStep) {
	n[spans.KindFunction] += functions * j.opt.Ranks
	n[spans.KindStage] += 3 * functions * j.opt.Ranks
	n[spans.KindCollective] += len(t.collectives)
	n[spans.KindRank] += len(t.collectives) * j.opt.Ranks
	n[spans.KindPass]++
	n[spans.KindCall] += len(t.rpcs)
}

// cause is the fault of a step as the truth has it.
func (j *job) cause(t *doneStep) *Cause {
	c := &Cause{Kind: t.fault.kind, Rank: t.fault.rank, Seconds: float64(t.extra) / 1e9}
	if c.Rank >= 0 {
		c.Host = j.host(c.Rank).name
	}
	switch c.Kind {
	case FaultLink:
		to := (c.Rank + 1) % j.opt.Ranks
		c.To = &to
	case FaultGet, FaultPut:
		c.Func = names[t.fault.at]
	}
	return c
}

// write writes the truth as JSON, in place of an older file at once.
func (t *Truth) write(path string) error {
	f, err := outfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	e := json.NewEncoder(f)
	e.SetIndent("", " ")
	if err := e.Encode(t); err != nil {
		return err
	}
	return f.Commit()
}
