package stepjoinprocessor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/ending"
	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/gpus"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/why"
	"github.com/trainbridge/trainbridge/spans"
)

// scopeName is the scope of the added spans.
const scopeName = "github.com/trainbridge/trainbridge/processors/stepjoinprocessor"

const (
	sweepEvery = time.Second
	maxRuns    = 256
	retryFirst = 200 * time.Millisecond
	retryMost  = 30 * time.Second

	shutdownWait = 5 * time.Second
)

type stepJoin struct {
	cfg       *Config
	set       processor.Settings
	next      consumer.Traces
	telemetry *metadata.TelemetryBuilder
	now       func() time.Time
	promises  promises
	told      ledger
	journal   journal
	leaves    []string // the patterns of the configuration, sorted

	cancel context.CancelFunc
	loop   sync.WaitGroup

	sweeping sync.Mutex // locked before mu

	readers sync.Pool // of *reader

	mu     sync.Mutex
	derive deriver
	runs   map[string]*facts.Run
	places places

	crowded sync.Once  // guards the log line about missing room
	gpus    *gpus.GPUs // written by the instances of metrics
	release func()     // releases the GPUs

	refused     bool // the last batch was
	swept       time.Time
	silentUntil time.Time // nothing could be received before
	resumed     time.Time // end of the process's last suspension
	offline     bool      // see Offline

	due    []closing       // of the sweeping goroutine; memory reused
	closed []*facts.Group  // whose spans are made, and not sent yet
	unsent []ptrace.Traces // of the sweeping goroutine
	grace  time.Duration   // how long a message is still handled whose partition is given up
}

func newStepJoin(cfg *Config, set processor.Settings, next consumer.Traces) (*stepJoin, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p := &stepJoin{
		cfg: cfg, set: set, next: next, telemetry: telemetry, leaves: slices.Sorted(maps.Keys(cfg.Leaves)), now: time.Now,
		runs: map[string]*facts.Run{}, places: places{}, grace: 2 * time.Second, gpus: gpus.New(), release: func() {},
	}
	p.derive.p, p.derive.history, p.derive.parents = p, why.New(), map[pcommon.SpanID]pcommon.SpanID{}
	p.readers.New = func() any { return &reader{p: p, ends: ends{}} }
	return p, nil
}

// Capabilities: roots of traces are given a parent.
func (p *stepJoin) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// Offline is for programs that read logs once, to their end (cmd/trainbridge/internal/offline), and is called before Start: a window ends once all sources have
// been read past it or have ended (Ended), after any delay, and windows are closed for lack of room, and at the end. A breakdown is sent once some hundred
// later windows are known, with a verdict over the whole run.
func (p *stepJoin) Offline() { p.offline = true }

// Ended: the source with this scope sends nothing more.
func (p *stepJoin) Ended(scope string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.runs {
		r.Ended(scope)
	}
}

// Start begins to close groups.
func (p *stepJoin) Start(ctx context.Context, host component.Host) error {
	if err := p.promises.open(ctx, host, p.cfg.Storage, p.set.ID); err != nil {
		return err
	}
	if err := errors.Join(p.restoreTold(ctx), p.restore(ctx)); err != nil {
		return errors.Join(fmt.Errorf("'storage': what the last process had promised cannot be read: %w", err), p.promises.close(ctx))
	}
	if p.offline {
		p.cancel = func() {}
		return nil
	}
	ctx, p.cancel = context.WithCancel(context.Background()) //nolint:contextcheck // Start's context ends with Start
	p.loop.Go(func() {
		ticker := time.NewTicker(sweepEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				p.sweep(ctx, p.now(), false)
			}
		}
	})
	return nil
}

// Shutdown closes all groups.
func (p *stepJoin) Shutdown(ctx context.Context) error {
	p.release()
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	p.loop.Wait()
	last, cancel := context.WithTimeout(ctx, shutdownWait) // in an outage the next process sends the stored spans
	defer cancel()
	last, release := ending.Context(last)
	defer release()
	p.sweep(last, p.now(), true)
	p.cancel = nil
	p.telemetry.Shutdown()
	return p.promises.close(ctx)
}

// run is the state of a run, new where absent. p.mu is held.
func (p *stepJoin) run(id string, now time.Time) *facts.Run {
	r := p.runs[id]
	if r == nil {
		if len(p.runs) >= maxRuns {
			p.forgetRun()
		}
		r = facts.NewRun(strings.Clone(id))
		r.Since = now
		p.runs[r.ID] = r
	}
	r.Used = now
	return r
}

// missed marks the runs of a partition as lacking facts that other processes have read. p.mu is held.
func (p *stepJoin) missed(partition string, now time.Time) {
	for _, r := range p.runs {
		if r.Partition == partition {
			r.Misses(now)
		}
	}
}

// forgetRun drops the run idle for the longest time, among those with nothing to send.
func (p *stepJoin) forgetRun() {
	var oldest *facts.Run
	for _, r := range p.runs {
		r.Sort()
		if len(r.Open()) == 0 && (oldest == nil || r.Used.Before(oldest.Used)) {
			oldest = r
		}
	}
	if oldest != nil {
		delete(p.runs, oldest.ID)
	}
}

// ConsumeTraces keeps the facts of spans and passes the spans on.
func (p *stepJoin) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if fromKafka(ctx) {
		if err := ctx.Err(); err != nil { // the partition belongs to another gateway, which counts the message
			return err
		}
		var done func()
		ctx, done = finishing(ctx, p.grace)
		defer done()
	}
	r := p.readers.Get().(*reader)
	defer p.readers.Put(r)
	p.mu.Lock()
	now := p.now()
	r.place = p.places.of(ctx, now, p.cfg.WaitLimit)
	if r.place.gap {
		p.missed(r.place.partition, now)
	}
	r.read(td, now)
	late, crowded := r.lateSpans, p.size() > p.cfg.MaxBytes
	p.promise(ctx, r.fresh)
	p.record(ctx, r)
	p.mu.Unlock()
	if late > 0 {
		p.telemetry.ProcessorStepJoinLate.Add(ctx, late)
	}
	if crowded { // the next sweep would be too late, and the sender must wait for it
		p.relieve(ctx)
	}
	err := p.next.ConsumeTraces(ctx, td)
	p.mu.Lock()
	p.refused = err != nil // the batch comes again
	p.mu.Unlock()
	return err
}

// sweep closes the completed groups, in order of time, and sends the added spans. all: every group.
func (p *stepJoin) sweep(ctx context.Context, now time.Time, all bool) {
	p.sweeping.Lock()
	defer p.sweeping.Unlock()
	p.sweepLocked(ctx, now, all)
}

// relieve frees memory beyond the limit.
func (p *stepJoin) relieve(ctx context.Context) {
	p.sweeping.Lock()
	defer p.sweeping.Unlock()
	p.mu.Lock()
	crowded := p.size() > p.cfg.MaxBytes // others may have made room meanwhile
	p.mu.Unlock()
	if crowded {
		p.sweepLocked(ctx, p.now(), false)
	}
}

func (p *stepJoin) sweepLocked(ctx context.Context, now time.Time, all bool) {
	p.mu.Lock()
	if !p.offline && !all {
		p.stalls(now)
	}
	due := p.over(now, all)
	p.mu.Unlock()
	defer clear(due)
	for first := true; first || len(due) > 0; first = false {
		most := mostClosed
		if all && !p.offline { // the process ends: the next process sends the rest
			most = lastClosed
			if !first && ctx.Err() != nil {
				return
			}
		}
		part := due[:min(len(due), most)]
		due = due[len(part):]
		p.mu.Lock()
		p.closeGroups(ctx, now, part, all && len(due) == 0)
		p.mu.Unlock()
		p.keep(ctx)
		if !p.send(ctx) {
			return // the rest goes with the next sweep, or with Shutdown's
		}
		p.sent(ctx)
	}
	p.mu.Lock()
	over := p.promises.sent(p.closed)
	p.closed = p.closed[:0]
	p.mu.Unlock()
	// Counters of sent spans must be on disk before the promise is deleted, as with a position.
	over = over && storageclient.Sync(ctx, p.promises.store) == nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if over {
		p.promises.kept(ctx)
	}
	p.trim(ctx, now)
	p.forget(now)
	p.shed(ctx)
	p.report(now, all)
}

const (
	quiet    = 3 // in waits, without a window of a run: ended, or paused
	reported = 3 // causes in the log line
)

// report logs, once a run is idle, the total cost of its slow windows.
func (p *stepJoin) report(now time.Time, all bool) {
	for _, r := range p.runs {
		if !r.Fresh || !all && now.Sub(r.Used) < quiet*p.cfg.Wait {
			continue
		}
		r.Fresh = false
		costs := p.derive.history.Costs(r.ID)
		var said []string
		for i := range costs[:min(len(costs), reported)] {
			said = append(said, costs[i].Sentence())
		}
		judged, unjudged := p.derive.history.Judged(r.ID)
		fields := []zap.Field{zap.String("run", r.ID), zap.Int64("judged", judged), zap.Int64("not_judged", unjudged)}
		if len(said) == 0 {
			if unjudged > 0 {
				p.set.Logger.Info("Of the steps, batches and passes that were judged none was slow", fields...)
			}
			continue
		}
		if what, ok := p.derive.history.WhatIf(r.ID); ok && what.Sentence() != "" {
			fields = append(fields, zap.String("without_the_worst", what.Sentence()))
		}
		p.set.Logger.Info("What slow steps, batches and passes lost: "+strings.Join(said, "; "), fields...)
	}
}

// closing is a completed group.
type closing struct {
	run     *facts.Run
	group   *facts.Group
	partial string // why the group may be incomplete; empty: complete
	early   bool   // for want of room
}

// over returns the completed groups, in order of time within a run. all: every group.
func (p *stepJoin) over(now time.Time, all bool) []closing {
	p.forget(now)
	due := p.due[:0]
	short := p.short() // of bytes
	p.journal.needs = make(map[string]need, len(p.runs))
	for _, id := range slices.Sorted(maps.Keys(p.runs)) {
		r := p.runs[id]
		r.Sort()
		r.Settle(now, p.cfg.WaitLimit)
		first := len(due)
		var early []closing // incomplete, but possibly without room to wait
		for _, g := range r.Open() {
			p.journal.needs[id] = p.journal.needs[id].and(g)
			idle := now.Sub(g.Last)
			if p.resumed.After(g.Last) { // input of the suspension is still unread
				idle = now.Sub(p.resumed)
			}
			until := g.End
			if until == 0 { // the group's time may be in any log
				until = math.MaxInt64
			}
			behind, limit := r.Behind(until, now, p.cfg.Wait), p.cfg.Keep
			if p.offline {
				behind = !all && r.Unread(until)
			} else if !behind && g.End != 0 && len(g.Windows) > 0 && r.Awaits(until, now, p.cfg.WaitLimit) {
				behind, limit = true, p.cfg.WaitLimit
			}
			partial := ""
			if behind {
				partial = spans.PartialBehind
			}
			if !all && (idle < p.wait() || behind && idle < limit) {
				early = append(early, closing{r, g, spans.PartialRoom, true})
				continue
			}
			due = append(due, closing{r, g, partial, false})
			short -= g.Bytes()
		}
		if short <= 0 || len(early) == 0 {
			continue
		}
		// Those idle for the longest time first: logs of one job may be read at different positions, and then the oldest groups are not the first to be
		// complete.
		slices.SortStableFunc(early, func(a, b closing) int { return a.group.Last.Compare(b.group.Last) })
		for _, c := range early {
			if short <= 0 {
				break
			}
			due = append(due, c)
			short -= c.group.Bytes()
		}
		slices.SortStableFunc(due[first:], func(a, b closing) int { return cmp.Compare(a.group.Start, b.group.Start) })
	}
	p.due = due
	return due
}

// mostClosed bounds the groups whose spans are in memory at once.
const mostClosed = 2048

// lastClosed bounds the groups closed at the end without checking the time.
const lastClosed = 256

// closeGroups makes the spans of completed groups. last: no other follows.
func (p *stepJoin) closeGroups(ctx context.Context, now time.Time, due []closing, last bool) {
	out := spans.NewBatch(scopeName, p.set.BuildInfo.Version)
	partial := int64(0)
	defer p.derive.resolver.Forget()
	for _, c := range due {
		g := c.group
		if c.early && g.End == 0 && !g.Promised && len(g.Unplaced) > 0 { // closed now, the pass would not get the step's time
			p.telemetry.ProcessorStepJoinShed.Add(ctx, int64(len(g.Unplaced)))
			c.run.Drop(g)
			continue
		}
		placed := g.End != 0
		c.run.Arrived(g)
		c.run.Sort()
		if c.partial != "" {
			g.Lacks(c.partial)
		}
		p.derive.derive(out, c.run, g, placed)
		if g.Partial != "" {
			partial++
		}
		c.run.Fresh = true
		if len(g.Windows) > 0 && (g.HasStep() || c.run.Trainer == "") {
			c.run.Told = max(c.run.Told, g.End)
		}
		c.run.Close(g, now)
		p.closed = append(p.closed, g)
	}
	if last {
		p.derive.out = out
		p.derive.history.Settle()
	}
	for _, r := range p.runs {
		for _, g := range r.Late {
			p.derive.late(out, r, g)
		}
		r.Late = nil
	}
	for _, m := range out.Messages() {
		p.unsent = append(p.unsent, m.Traces)
	}
	p.telemetry.ProcessorStepJoinWindows.Add(ctx, int64(len(due)))
	p.telemetry.ProcessorStepJoinPartial.Add(ctx, partial)
	p.telemetry.ProcessorStepJoinJoined.Add(ctx, p.derive.counts.joined)
	p.telemetry.ProcessorStepJoinAmbiguous.Add(ctx, p.derive.counts.ambiguous)
	p.derive.counts.joined, p.derive.counts.ambiguous = 0, 0
}

// wait is the wait of a window, and for sources.
func (p *stepJoin) wait() time.Duration {
	if p.offline {
		return 0
	}
	return p.cfg.Wait
}

// forget drops facts older than needed, and beyond the limit the groups closed first.
func (p *stepJoin) forget(now time.Time) {
	for _, r := range p.runs {
		r.Forget(now.Add(-p.cfg.Keep))
	}
	short := p.short()
	for _, r := range p.runs {
		if short > 0 {
			short -= r.ShedGroups(short)
		}
	}
}

// shed drops leaves if still beyond the limit.
func (p *stepJoin) shed(ctx context.Context) {
	short := p.short()
	for _, r := range p.runs {
		if short <= 0 {
			return
		}
		n := min(int64(r.Leaves()), short/facts.LeafBytes+1)
		r.Shed(int(n))
		short -= n * facts.LeafBytes
		p.telemetry.ProcessorStepJoinShed.Add(ctx, n)
		p.crowded.Do(func() {
			p.set.Logger.Warn("There is no room for all that may belong to a step that is still to come: raise 'max_bytes'. Steps that may lack something "+
				"say trainbridge.join.partial.", zap.Int64("max_bytes", p.cfg.MaxBytes), zap.String("run", r.ID))
		})
	}
}

// short is the number of bytes to free: beyond the limit, plus a quarter of the limit, to avoid an early repeat.
func (p *stepJoin) short() int64 {
	if over := p.size() - p.cfg.MaxBytes; over > 0 {
		return over + p.cfg.MaxBytes/4
	}
	return 0
}

func (p *stepJoin) size() (n int64) {
	for _, r := range p.runs {
		n += r.Bytes()
	}
	return n
}

// send passes the messages on until accepted; false: stopped before.
func (p *stepJoin) send(ctx context.Context) bool {
	for ; len(p.unsent) > 0; p.unsent = p.unsent[1:] {
		for delay := retryFirst; ; delay = min(2*delay, retryMost) {
			try := p.unsent[0]
			if p.next.Capabilities().MutatesData {
				try = ptrace.NewTraces()
				p.unsent[0].CopyTo(try)
			}
			err := p.next.ConsumeTraces(ctx, try)
			if err == nil {
				break
			}
			if consumererror.IsPermanent(err) {
				p.set.Logger.Warn("Joined spans were refused for good", zap.Error(err))
				break
			}
			select {
			case <-ctx.Done():
				return false
			case <-time.After(delay):
			}
		}
	}
	p.unsent = nil
	return true
}

// matches says whether the configuration names spans of a name.
func (p *stepJoin) matches(name string) bool {
	if p.isWindow(name) {
		return true
	}
	_, ok := p.leafKind(name)
	return ok
}

func (p *stepJoin) isWindow(name string) bool {
	for _, pattern := range p.cfg.Windows {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

func (p *stepJoin) leafKind(name string) (breakdown.Kind, bool) {
	for _, pattern := range p.leaves {
		if ok, _ := path.Match(pattern, name); ok {
			return leafKindNamed(p.cfg.Leaves[pattern])
		}
	}
	return breakdown.Unattributed, false
}
