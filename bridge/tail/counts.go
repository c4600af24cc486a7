package tail

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/lockorder"
)

const scopeName = "github.com/trainbridge/trainbridge/bridge/tail"

// Counts are the accounts of a receiver, in lines:
//
//	Lines = Records + Σ Ignored + Σ Rejected
//	Records = Sent + Refused + Pending
//
// The left sides are counted on reading, the right sides on completion; Pending are the lines now held or in flight. During reading the two sides may differ by
// a chunk.
//
// A line read again after a restart counts again in the new process.
type Counts struct {
	Bytes, Lines, Records  int64
	Ignored, Rejected      map[string]int64
	Sent, Refused, Pending int64
	Truncations, LostFiles int64
	ReadErrors             int64
	CheckpointErrors       int64
}

// tally collects a chunk's counts without locks.
type tally struct {
	bytes, lines, records int64
	reasons               []reasonCount
	last                  int // index in reasons of the reason counted last, mostly the next line's as well
}

// reasonCount is how many lines had a verdict for a reason.
type reasonCount struct {
	verdict Verdict
	reason  string
	n       int64
}

// count counts an ignored or rejected line by its reason. Beyond maxReasons reasons, further ones count as reasonOther.
func (t *tally) count(v Verdict, reason string) {
	if t.last < len(t.reasons) {
		if r := &t.reasons[t.last]; r.verdict == v && r.reason == reason {
			r.n++
			return
		}
	}
	for i := range t.reasons {
		if r := &t.reasons[i]; r.verdict == v && r.reason == reason {
			r.n++
			t.last = i
			return
		}
	}
	if len(t.reasons) >= maxReasons {
		reason = reasonOther
		for i := range t.reasons {
			if r := &t.reasons[i]; r.verdict == v && r.reason == reason {
				r.n++
				return
			}
		}
	}
	t.last = len(t.reasons)
	t.reasons = append(t.reasons, reasonCount{v, reason, 1})
}

// reasonCounter counts the lines skipped for a reason. Its first scrape reads 0: increase() misses a counter's initial value.
type reasonCounter struct {
	n     int64
	attrs metric.MeasurementOption
	born  bool // scraped before
}

// reasonKey identifies a reasonCounter.
type reasonKey struct {
	verdict Verdict
	reason  string
}

// counter is one series: its own number and the collector's instrument.
type counter struct {
	n    int64
	inst metric.Int64Counter
	opts []metric.AddOption
}

// add adds n to the own number and to the collector's instrument.
func (c *counter) add(n int64) {
	if n == 0 {
		return
	}
	c.n += n
	c.inst.Add(context.Background(), n, c.opts...)
}

// counts keeps the accounts and publishes them: updates are per chunk and per batch, never per line.
type counts struct {
	mu       lockorder.Mutex[leaf]
	pending  func() int64       // record lines held or in flight
	id       attribute.KeyValue // names the receiver
	bytes    counter
	lines    counter
	records  counter
	sentC    counter
	refusedC counter
	truncs   counter
	lost     counter
	readErrs counter
	ckptErrs counter
	forced   counter // times that held lines were given up because there were too many
	reasons  map[reasonKey]*reasonCounter
	ignored  metric.Int64ObservableCounter
	rejected metric.Int64ObservableCounter
	reg      metric.Registration
}

// newCounts makes the accounts of a receiver and registers their metrics, trainbridge.tail.*. What is not counted but stands at the time of a scrape is asked
// for: pending record lines, files and status.
func newCounts(
	set component.TelemetrySettings, id component.ID, pending func() int64, files func() (open, watched int64), status func() (Status, time.Time),
) (*counts, error) {
	m := set.MeterProvider.Meter(scopeName)
	c := &counts{pending: pending, id: attribute.String("receiver", id.String()), reasons: map[reasonKey]*reasonCounter{}}
	opts := []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(c.id))}
	var err error // the first
	inst := func(name, unit, desc string) metric.Int64Counter {
		i, e := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(desc))
		if e != nil && err == nil {
			err = e
		}
		return i
	}
	for _, x := range []struct {
		c                *counter
		name, unit, desc string
	}{
		{&c.bytes, "trainbridge.tail.bytes", "By", "Bytes read, after decompression."},
		{&c.lines, "trainbridge.tail.lines", "{line}", "Lines read."},
		{&c.records, "trainbridge.tail.records", "{line}", "Lines that are (part of) a record."},
		{&c.sentC, "trainbridge.tail.sent", "{line}", "Record lines that were accepted downstream."},
		{&c.refusedC, "trainbridge.tail.refused", "{line}", "Record lines that were refused downstream for good."},
		{&c.truncs, "trainbridge.tail.truncations", "{file}", "Files found cut or rewritten."},
		{
			&c.lost, "trainbridge.tail.lost_files", "{file}",
			"Files that had unread or unacknowledged lines and cannot be found any more, or were rotated away unseen, as far as that can be known.",
		},
		{&c.readErrs, "trainbridge.tail.read_errors", "{error}", "Errors from opening and reading files."},
		{&c.ckptErrs, "trainbridge.tail.checkpoint_errors", "{error}", "Checkpoints that could not be stored, or not be understood."},
		{&c.forced, "trainbridge.tail.forced_expiries", "{expiry}", "Times that held lines were given up early because there were too many."},
	} {
		x.c.inst, x.c.opts = inst(x.name, x.unit, x.desc), opts
		x.c.inst.Add(context.Background(), 0, opts...) // increase() misses a counter that begins above 0
	}
	if err != nil {
		return nil, err
	}
	c.ignored, err = m.Int64ObservableCounter("trainbridge.tail.ignored", metric.WithUnit("{line}"),
		metric.WithDescription("Lines that are not for this receiver."))
	if err != nil {
		return nil, err
	}
	c.rejected, err = m.Int64ObservableCounter("trainbridge.tail.rejected", metric.WithUnit("{line}"),
		metric.WithDescription("Lines that should have been records and cannot be read."))
	if err != nil {
		return nil, err
	}
	waiting, err := m.Int64ObservableUpDownCounter("trainbridge.tail.pending", metric.WithUnit("{line}"),
		metric.WithDescription("Record lines held or in flight."))
	if err != nil {
		return nil, err
	}
	gauge, err := m.Int64ObservableUpDownCounter("trainbridge.tail.files", metric.WithUnit("{file}"), metric.WithDescription("Files, by state."))
	if err != nil {
		return nil, err
	}
	p, err := newProgress(m)
	if err != nil {
		return nil, err
	}
	self := metric.WithAttributeSet(attribute.NewSet(c.id))
	open := metric.WithAttributeSet(attribute.NewSet(c.id, attribute.String("state", "open")))
	watched := metric.WithAttributeSet(attribute.NewSet(c.id, attribute.String("state", "watched")))
	c.reg, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(waiting, c.pending(), self)
		no, nw := files()
		o.ObserveInt64(gauge, no, open)
		o.ObserveInt64(gauge, nw, watched)
		c.observe(o)
		st, now := status()
		p.observe(o, self, &st, now)
		return nil
	}, waiting, gauge, c.ignored, c.rejected, p.size, p.lag, p.behind, p.rate, p.eta)
	return c, err
}

// add adds a chunk's counts to the accounts, and empties the tally.
func (c *counts) add(t *tally) {
	if t.bytes == 0 && t.lines == 0 && len(t.reasons) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes.add(t.bytes)
	c.lines.add(t.lines)
	c.records.add(t.records)
	for i := range t.reasons {
		r := &t.reasons[i]
		if r.n > 0 {
			c.reason(r.verdict, r.reason).n += r.n
			r.n = 0
		}
	}
	t.bytes, t.lines, t.records = 0, 0, 0
}

// observe publishes the number of skipped lines, by reason.
func (c *counts) observe(o metric.Observer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, rc := range c.reasons {
		inst, n := c.ignored, rc.n
		if k.verdict == Rejected {
			inst = c.rejected
		}
		if !rc.born {
			rc.born, n = true, 0
		}
		o.ObserveInt64(inst, n, rc.attrs)
	}
}

// reason returns the counter of a reason, new if unknown; beyond maxReasons counters that of reasonOther. The caller holds mu.
func (c *counts) reason(v Verdict, reason string) *reasonCounter {
	k := reasonKey{v, reason}
	if rc := c.reasons[k]; rc != nil {
		return rc
	}
	if len(c.reasons) >= maxReasons && reason != reasonOther {
		return c.reason(v, reasonOther)
	}
	rc := &reasonCounter{attrs: metric.WithAttributeSet(attribute.NewSet(c.id, attribute.String("reason", reason)))}
	c.reasons[k] = rc
	return rc
}

// bump adds to a counter.
func (c *counts) bump(rc *counter, n int64) {
	c.mu.Lock()
	rc.add(n)
	c.mu.Unlock()
}

// bytesRead returns the number of bytes read so far.
func (c *counts) bytesRead() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes.n
}

func (c *counts) sent(n int64)    { c.bump(&c.sentC, n) }
func (c *counts) refused(n int64) { c.bump(&c.refusedC, n) }

// snapshot returns the accounts so far.
func (c *counts) snapshot() Counts {
	pending := c.pending() // takes a lock, and mu is a leaf
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Counts{
		Bytes: c.bytes.n, Lines: c.lines.n, Records: c.records.n, Sent: c.sentC.n, Refused: c.refusedC.n,
		Pending: pending,
		Ignored: map[string]int64{}, Rejected: map[string]int64{},
		Truncations: c.truncs.n, LostFiles: c.lost.n, ReadErrors: c.readErrs.n, CheckpointErrors: c.ckptErrs.n,
	}
	for k, rc := range c.reasons {
		m := out.Ignored
		if k.verdict == Rejected {
			m = out.Rejected
		}
		m[k.reason] = rc.n
	}
	return out
}

// close ends the publishing of the metrics.
func (c *counts) close() {
	if c.reg != nil {
		_ = c.reg.Unregister()
	}
}
