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
	retryFirst = 200 * time.Millisecond // before the second try to send; the pause doubles with each try
	retryMost  = 30 * time.Second       // the longest pause between two tries

	shutdownWait = 5 * time.Second // for the last sweep
)

// stepJoin is the processor of traces. Batches pass at once, and leave facts in the runs (ConsumeTraces). A sweep, once a second, closes the groups that are
// complete, makes their spans (deriver) and sends them.
type stepJoin struct {
	cfg       *Config
	set       processor.Settings
	next      consumer.Traces
	telemetry *metadata.TelemetryBuilder
	now       func() time.Time
	promises  promises // roots still to be sent
	ledger    ledger   // windows and roots whose spans were made
	journal   journal  // stored facts, for the process after a crash
	leaves    []string // the patterns of Config.Leaves, sorted: the first that matches counts

	cancel context.CancelFunc // ends loop; nil: not started, or shut down
	loop   sync.WaitGroup     // the goroutine that sweeps once a second

	sweeping sync.Mutex // held for a whole sweep with the sending, which must not hold up ConsumeTraces. Locked before mu

	readers sync.Pool // of *reader

	mu     sync.Mutex            // guards the facts, and all below except the memory of the sweeping goroutine
	derive deriver               // makes the spans of closed groups
	runs   map[string]*facts.Run // by id
	places places                // how far Kafka's partitions were read

	crowded sync.Once  // guards the log line about missing room
	gpus    *gpus.GPUs // written by the instances of metrics
	release func()     // releases the GPUs

	refused     bool                 // the next component refused the last batch, which comes again
	swept       time.Time            // time of the last sweep
	silentUntil time.Time            // nothing could be received before
	resumed     time.Time            // end of the process's last suspension
	offline     bool                 // see Offline
	windows     func([]spans.Window) // see Offline; nil: every breakdown is a span

	due    []closing       // of the sweeping goroutine; memory reused
	closed []*facts.Group  // whose spans are made, and not sent yet
	unsent []ptrace.Traces // spans made and not accepted yet, of the sweeping goroutine
	plain  []spans.Window  // breakdowns without a span, of the sweeping goroutine
	grace  time.Duration   // how long a message is still handled whose partition is given up
}

// newStepJoin returns a processor without facts. The factory replaces gpus by the values that the instances of metrics share.
func newStepJoin(cfg *Config, set processor.Settings, next consumer.Traces) (*stepJoin, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p := &stepJoin{
		cfg: cfg, set: set, next: next, telemetry: telemetry, leaves: slices.Sorted(maps.Keys(cfg.Leaves)), now: time.Now,
		runs: map[string]*facts.Run{}, places: places{}, ledger: newLedger(), grace: handover, gpus: gpus.New(), release: func() {},
	}
	p.derive.p, p.derive.history = p, why.New()
	p.derive.parents, p.derive.loads = map[pcommon.SpanID]pcommon.SpanID{}, map[pcommon.SpanID]load{}
	p.readers.New = func() any { return &reader{p: p, ends: ends{}} }
	return p, nil
}

// Capabilities reports that batches are changed: ConsumeTraces gives roots of traces a parent.
func (p *stepJoin) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// Offline is for programs that read logs once, to their end (cmd/trainbridge/internal/offline), and is called before Start. A window is then complete once all
// sources have been read past the window or have ended (Ended), or once no span of it came for Config.Keep. Without a timer, windows are closed for lack of
// room, and by Shutdown. A complete breakdown is sent once some hundred later windows are known, with a verdict by the windows on both sides.
//
// windows, unless nil, gets the breakdowns that a spans.Window describes, instead of spans: most of a log of steps only.
func (p *stepJoin) Offline(windows func([]spans.Window)) { p.offline, p.windows = true, windows }

// Ended records, for Offline, that the source with this scope name sends nothing more.
func (p *stepJoin) Ended(scope string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.runs {
		r.Ended(scope)
	}
}

// Start restores what the last process has stored, and begins to sweep once a second; offline nothing sweeps by time.
func (p *stepJoin) Start(ctx context.Context, host component.Host) error {
	if err := p.promises.open(ctx, host, p.cfg.Storage, p.set.ID); err != nil {
		return err
	}
	if err := errors.Join(p.restoreLedger(ctx), p.restore(ctx)); err != nil {
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

// Shutdown ends the loop, closes all groups and sends their spans, for at most shutdownWait (offline: as long as they are accepted). The process after this one
// sends the rest, if stored.
func (p *stepJoin) Shutdown(ctx context.Context) error {
	p.release()
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	p.loop.Wait()
	last, cancel := context.WithTimeout(ctx, shutdownWait)
	defer cancel()
	last, release := ending.Context(last) // ends earlier if the command itself must end
	defer release()
	p.sweep(last, p.now(), true)
	p.cancel = nil
	p.telemetry.Shutdown()
	return p.promises.close(ctx)
}

// run returns the state of a run, made if absent. Beyond maxRuns an idle run is forgotten, if one has no open groups. p.mu is held.
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

// markMissed records in each run of a Kafka partition that other processes have read some of its facts, so the run may lack them. p.mu is held.
func (p *stepJoin) markMissed(partition string, now time.Time) {
	for _, r := range p.runs {
		if r.Partition == partition {
			r.MarkMissed(now)
		}
	}
}

// forgetRun drops the run idle for the longest time among the runs without open groups, which have nothing left to send. If every run has open groups, no run
// is dropped.
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

// ConsumeTraces reads the facts of a batch, stores them and the promises made to the batch, and then passes the batch on: after a crash the next process knows
// about every batch that was sent. It returns the error of the next component.
func (p *stepJoin) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	partition := ctx // of the kafka receiver: done once the partition is another process's
	if fromKafka(ctx) {
		if err := ctx.Err(); err != nil { // the partition belongs to another gateway, which counts the message
			return err
		}
		var done func()
		ctx, done = withGrace(ctx, p.grace)
		defer done()
	}
	r := p.readers.Get().(*reader)
	defer p.readers.Put(r)
	p.mu.Lock()
	now := p.now()
	r.place = p.places.locate(partition, now, p.cfg.WaitLimit)
	if r.place.gap {
		p.markMissed(r.place.partition, now)
	}
	r.read(td, now)
	late, crowded := r.lateSpans, p.size() > p.cfg.MaxBytes
	p.promise(ctx, r.fresh)
	p.record(ctx, r)
	p.mu.Unlock()
	if late > 0 {
		p.telemetry.ProcessorStepJoinLate.Add(ctx, late)
	}
	if crowded { // the next sweep, in a second, would be too late: the sender waits for one now
		p.relieve(ctx)
	}
	err := p.next.ConsumeTraces(ctx, td)
	p.mu.Lock()
	p.refused = err != nil // the batch comes again
	p.mu.Unlock()
	return err
}

// sweep closes the completed groups, in order of time, and sends the spans made for them. all: every group, complete or not.
func (p *stepJoin) sweep(ctx context.Context, now time.Time, all bool) {
	p.sweeping.Lock()
	defer p.sweeping.Unlock()
	p.sweepLocked(ctx, now, all)
}

// relieve sweeps at once if the facts take more than Config.MaxBytes: groups are closed early, then leaves are dropped.
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

// sweepLocked is sweep, with p.sweeping held. p.mu is held only while facts are read or changed, never while spans are sent: ConsumeTraces does not wait for a
// slow receiver.
func (p *stepJoin) sweepLocked(ctx context.Context, now time.Time, all bool) {
	p.mu.Lock()
	if !p.offline && !all {
		p.stalls(now)
	}
	due := p.complete(now, all)
	p.mu.Unlock()
	defer clear(due) // the memory is reused, and must not keep groups alive
	// The groups are closed and sent in portions, each stored before sending. The first round runs even without a group: p.unsent may have spans of the last
	// sweep.
	for first := true; first || len(due) > 0; first = false {
		most := mostClosed
		if all && !p.offline { // the process ends: small portions, until there is no time left. The next process sends the rest
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
		p.storeUnsent(ctx)
		if !p.send(ctx) {
			return // the next sweep, or Shutdown, sends the rest
		}
		p.deleteStoredSpans(ctx)
	}
	// Every span is sent: the promises of these groups are kept.
	p.mu.Lock()
	deletable := p.promises.markKept(p.closed)
	p.closed = p.closed[:0]
	p.mu.Unlock()
	// Counters of sent spans must be on disk before the promise is deleted, as with a position.
	deletable = deletable && storageclient.Sync(ctx, p.promises.store) == nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if deletable {
		p.promises.deleteKept(ctx)
	}
	// Memory and storage get back what no window needs any more.
	p.trim(ctx, now)
	p.forget(now)
	p.shedLeaves(ctx)
	p.logCosts(now, all)
}

const (
	quiet    = 3 // times Config.Wait without a fact: the run counts as idle
	reported = 3 // most causes in the log line
)

// logCosts logs the total cost of a run's slow windows, once the run is idle; all: of every run with windows not reported yet.
func (p *stepJoin) logCosts(now time.Time, all bool) {
	for _, r := range p.runs {
		isIdle := now.Sub(r.Used) >= quiet*p.cfg.Wait
		if !r.Fresh || !all && !isIdle {
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
			if unjudged > 0 { // otherwise every window was judged and usual: no log line
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

// complete returns the groups to be closed now, by run and in order of time: groups for which nothing more is awaited, and, if memory is short, the longest
// idle of the other groups. all: every group. complete also collects in journal.needs which journal entries the remaining groups need, for trim. p.mu is held.
func (p *stepJoin) complete(now time.Time, all bool) []closing {
	p.forget(now) // before bytesToFree looks at the memory
	due := p.due[:0]
	toFree := p.bytesToFree()
	p.journal.needs = make(map[string]need, len(p.runs))
	for _, id := range slices.Sorted(maps.Keys(p.runs)) {
		r := p.runs[id]
		r.Sort()
		r.Settle(now, p.cfg.WaitLimit)
		first := len(due)
		var early []closing // incomplete: closed only if there is no room to wait
		var needs need
		unread := r.Unread()
		for _, g := range r.Open() {
			needs = needs.including(g)
			idle := now.Sub(g.Last)
			if p.resumed.After(g.Last) { // what was written while the process was suspended is still unread
				idle = now.Sub(p.resumed)
			}
			behind, limit := p.behind(r, g, now, all, unread)
			partial := ""
			if behind {
				partial = spans.PartialBehind
			}
			waits := idle < p.minIdle() || behind && idle < limit
			if waits && !all {
				early = append(early, closing{r, g, spans.PartialRoom, true})
				continue
			}
			due = append(due, closing{r, g, partial, false})
			toFree -= g.Bytes()
		}
		p.journal.needs[id] = needs
		if toFree <= 0 || len(early) == 0 {
			continue
		}
		// The longest idle groups first, not the oldest: logs of one job may be read at different positions.
		slices.SortStableFunc(early, func(a, b closing) int { return a.group.Last.Compare(b.group.Last) })
		for _, c := range early {
			if toFree <= 0 {
				break
			}
			due = append(due, c)
			toFree -= c.group.Bytes()
		}
		slices.SortStableFunc(due[first:], func(a, b closing) int { return cmp.Compare(a.group.Start, b.group.Start) })
	}
	p.due = due
	return due
}

// behind reports whether some log may still have spans of a group; limit is how long the group, idle, waits for them. With all, no log has any (offline).
// unread is the time up to which all logs are read (offline). Collectives are awaited only for a group with a place in time.
func (p *stepJoin) behind(r *facts.Run, g *facts.Group, now time.Time, all bool, unread int64) (behind bool, limit time.Duration) {
	until := g.End
	if until == 0 { // the group's time may be in any log
		until = math.MaxInt64
	}
	hasPlace := g.End != 0 && len(g.Windows) > 0
	switch behind = r.Behind(until, now, p.cfg.Wait); {
	case p.offline:
		return !all && until > unread, p.cfg.Keep
	case p.places.isLost(r.Partition, now, all): // the spans that are missing go to another process
		return true, p.cfg.WaitLimit
	case !behind && hasPlace && r.Awaits(until, now, p.cfg.WaitLimit):
		return true, p.cfg.WaitLimit
	}
	return behind, p.cfg.Keep
}

// mostClosed bounds the groups whose spans are in memory at once.
const mostClosed = 2048

// lastClosed bounds the groups closed, in Shutdown, between two looks at the time left.
const lastClosed = 256

// closeGroups makes the spans of the groups in due and queues them in p.unsent, and draws passes of RPCs that arrived after their group was closed (Run.Late).
// last: no group follows, so every breakdown still waiting for a verdict gets one. p.mu is held.
func (p *stepJoin) closeGroups(ctx context.Context, now time.Time, due []closing, last bool) {
	out := spans.NewBatch(scopeName, p.set.BuildInfo.Version)
	p.derive.out = out
	closedGroups, partial := int64(0), int64(0) // a group counts once, however many windows the group has
	defer p.derive.resolver.Forget()
	for _, c := range due {
		g := c.group
		// The group has only passes without a clock, and no time yet to place them. A promised root must be sent in any case.
		awaitsStep := len(g.Unplaced) > 0 && g.End == 0 && !g.Promised
		// Closed now, the passes would not get the step's time.
		if c.early && awaitsStep {
			p.telemetry.ProcessorStepJoinShed.Add(ctx, int64(len(g.Unplaced)))
			c.run.Drop(g)
			continue
		}
		closedGroups++
		placed := g.End != 0 // before Arrived, which may set End from arrival times
		c.run.UseArrivalTimes(g)
		c.run.Sort()
		if c.partial != "" {
			g.SetPartial(c.partial)
		}
		p.derive.derive(out, c.run, g, placed)
		if g.Partial != "" {
			partial++
		}
		c.run.Fresh = true
		if len(g.Windows) > 0 && (g.HasStep() || c.run.Trainer == "") { // in a run with steps, only steps count
			c.run.ClosedUntil = max(c.run.ClosedUntil, g.End)
		}
		c.run.Close(g, now)
		p.closed = append(p.closed, g)
	}
	if last {
		p.derive.history.Settle()
	}
	for _, r := range p.runs {
		for _, g := range r.Late {
			p.derive.deriveLate(out, r, g)
		}
		r.Late = nil
	}
	for _, m := range out.Messages() {
		p.unsent = append(p.unsent, m.Traces)
	}
	p.telemetry.ProcessorStepJoinWindows.Add(ctx, closedGroups)
	p.telemetry.ProcessorStepJoinPartial.Add(ctx, partial)
	p.telemetry.ProcessorStepJoinJoined.Add(ctx, p.derive.counts.joined)
	p.telemetry.ProcessorStepJoinAmbiguous.Add(ctx, p.derive.counts.ambiguous)
	p.derive.counts.joined, p.derive.counts.ambiguous = 0, 0
}

// minIdle returns how long a group must have been idle before complete closes the group; offline 0, since time there does not depend on the clock.
func (p *stepJoin) minIdle() time.Duration {
	if p.offline {
		return 0
	}
	return p.cfg.Wait
}

// forget drops facts that came more than Config.Keep ago, and, where memory is short, closed groups, the earliest closed first.
func (p *stepJoin) forget(now time.Time) {
	for _, r := range p.runs {
		r.Forget(now.Add(-p.cfg.Keep))
	}
	short := p.bytesToFree()
	for _, r := range p.runs {
		if short > 0 {
			short -= r.ShedGroups(short)
		}
	}
}

// shedLeaves drops the oldest leaves of runs while memory is still short, counts them in telemetry, and logs one warning per process. Windows that may have
// needed the leaves become partial.
func (p *stepJoin) shedLeaves(ctx context.Context) {
	short := p.bytesToFree()
	for _, r := range p.runs {
		if short <= 0 {
			return
		}
		n := min(int64(r.Leaves()), short/facts.LeafBytes+1) // + 1: rounded up
		r.Shed(int(n))
		short -= n * facts.LeafBytes
		p.telemetry.ProcessorStepJoinShed.Add(ctx, n)
		p.crowded.Do(func() {
			p.set.Logger.Warn("There is no room for all that may belong to a step that is still to come: raise 'max_bytes'. Steps that may lack something "+
				"say trainbridge.join.partial.", zap.Int64("max_bytes", p.cfg.MaxBytes), zap.String("run", r.ID))
		})
	}
}

// bytesToFree returns by how many bytes the facts exceed Config.MaxBytes, plus a quarter of MaxBytes, so that not every batch needs a sweep; 0: within the
// limit.
func (p *stepJoin) bytesToFree() int64 {
	if over := p.size() - p.cfg.MaxBytes; over > 0 {
		return over + p.cfg.MaxBytes/4
	}
	return 0
}

// size returns the approximate memory of the facts, in bytes.
func (p *stepJoin) size() (n int64) {
	for _, r := range p.runs {
		n += r.Bytes()
	}
	return n
}

// send passes p.plain and then the messages of p.unsent on, one after another, and reports whether all were handed over. A message is tried again until
// accepted; a message with a permanent error is logged and dropped. false: ctx ended first, and the rest stays in p.unsent.
func (p *stepJoin) send(ctx context.Context) bool {
	if len(p.plain) > 0 {
		p.windows(p.plain)
		p.plain = nil
	}
	for ; len(p.unsent) > 0; p.unsent = p.unsent[1:] {
		for delay := retryFirst; ; delay = min(2*delay, retryMost) {
			try := p.unsent[0]
			if p.next.Capabilities().MutatesData {
				try = ptrace.NewTraces() // a refused try may have been changed
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

// matches reports whether Config.Windows or Config.Leaves has a pattern for a span name.
func (p *stepJoin) matches(name string) bool {
	if p.isWindow(name) {
		return true
	}
	_, ok := p.leafKind(name)
	return ok
}

// isWindow reports whether Config.Windows has a pattern for a span name.
func (p *stepJoin) isWindow(name string) bool {
	for _, pattern := range p.cfg.Windows {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// leafKind returns the kind of time that Config.Leaves gives a span name; false: no pattern matches.
func (p *stepJoin) leafKind(name string) (breakdown.Kind, bool) {
	for _, pattern := range p.leaves {
		if ok, _ := path.Match(pattern, name); ok {
			return leafKindNamed(p.cfg.Leaves[pattern])
		}
	}
	return breakdown.Unattributed, false
}
