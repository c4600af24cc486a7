package verdictlogsconnector

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/connectors/verdictlogsconnector/internal/metadata"
	"github.com/trainbridge/trainbridge/internal/seen"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// verdictLogs turns verdicts into log records. ConsumeTraces may run concurrently.
type verdictLogs struct {
	component.StartFunc

	cfg       *Config
	next      consumer.Logs
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	seed      maphash.Seed // for the hash of verdicts' names in their ids
	now       func() time.Time

	mu   sync.Mutex // guards the fields below
	seen seen.Seen
	rate rate

	crowded  sync.Once // for the warning about the limit
	wrong    sync.Once // for the warning about refused records
	shutdown sync.Once
}

var _ connector.Traces = (*verdictLogs)(nil)

// newVerdictLogs makes the connector.
func newVerdictLogs(cfg *Config, set connector.Settings, next consumer.Logs) (*verdictLogs, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &verdictLogs{
		cfg: cfg, next: next, logger: set.Logger, telemetry: telemetry, seed: maphash.MakeSeed(), now: time.Now,
		seen: seen.New(cfg.DedupWindow, now), rate: newRate(cfg.RateLimit, now),
	}, nil
}

// Capabilities: the spans are only read.
func (*verdictLogs) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// Shutdown may be called twice: no data is held.
func (c *verdictLogs) Shutdown(context.Context) error {
	c.shutdown.Do(c.telemetry.Shutdown)
	return nil
}

// ConsumeTraces returns when the next component has taken the records, with its error: the batch of records refused for now is sent again. A permanent error
// concerns the records only (Loki refuses old ones, for example), and is not returned to the sender of the spans.
func (c *verdictLogs) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	all := c.find(td)
	if len(all) == 0 {
		return nil
	}
	batch := c.choose(td, all)
	var err error
	if batch.chosen > 0 {
		err = c.next.ConsumeLogs(ctx, batch.logs)
	}
	if consumererror.IsPermanent(err) {
		c.refused(ctx, &batch, err)
		err = nil
	}
	c.settle(ctx, &batch, err == nil)
	return err
}

// refused counts the records of a batch as refused for good, and no longer as chosen, and warns once.
func (c *verdictLogs) refused(ctx context.Context, b *batch, err error) {
	c.telemetry.ConnectorTrainVerdictsRefused.Add(ctx, b.chosen)
	b.chosen = 0
	c.wrong.Do(func() {
		c.logger.Warn("the exporter of verdicts refused records for good; from now on they are only counted, in otelcol_connector_train_verdicts_refused. "+
			"The verdicts are still on their spans", zap.Error(err))
	})
}

// find returns the verdicts about the spans, and the error events of runs: how a run ended, or that its steps stopped. Most batches have none, and need no
// memory.
func (c *verdictLogs) find(td ptrace.Traces) (all []found) {
	for i, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			list := ss.Spans()
			for j := range list.Len() {
				span := list.At(j)
				if span.Events().Len() > 0 {
					all = c.ofSpan(all, i, span)
				}
				if span.Name() == spans.SpanEvent && span.Status().Code() == ptrace.StatusCodeError {
					all = append(all, found{resource: i, span: span, id: seen.ID(span.TraceID(), span.SpanID()), event: true})
				}
			}
		}
	}
	return all
}

// ofSpan appends the verdicts about a span of a resource, given by its index in the batch. Several verdicts of one name get different ids, by their order.
func (c *verdictLogs) ofSpan(all []found, resource int, span ptrace.Span) []found {
	first := len(all)
	for v := range view.Verdicts(span) {
		f := found{resource: resource, span: span, verdict: v}
		if !span.SpanID().IsEmpty() {
			f.id = seen.ID(span.TraceID(), span.SpanID()) ^ maphash.String(c.seed, v.Name)
			for i := first; i < len(all); i++ {
				if all[i].verdict.Name == v.Name {
					f.id++
				}
			}
			f.id = max(f.id, 1)
		}
		all = append(all, f)
	}
	return all
}

// batch is the result of choose.
type batch struct {
	logs      plog.Logs
	ids       map[uint64]struct{} // of all new verdicts, those over the rate too
	chosen    int64               // verdicts with a record in logs
	known     int64               // verdicts that were dealt with before
	overLimit int64               // verdicts over the rate, without a record
}

// choose makes records of the new verdicts within the rate.
func (c *verdictLogs) choose(td ptrace.Traces, all []found) batch {
	now := c.now()
	r, b := newRecorder(now), batch{ids: make(map[uint64]struct{}, len(all))}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.Advance(now.UnixNano())
	c.rate.fill(now)
	for i := range all {
		f := &all[i]
		if f.id != 0 { // duplicates of a span without an id cannot be recognised
			if _, twice := b.ids[f.id]; twice || c.seen.Has(f.id) {
				b.known++
				continue
			}
			b.ids[f.id] = struct{}{}
		}
		if !c.rate.take() {
			b.overLimit++
			continue
		}
		r.add(td, f)
		b.chosen++
	}
	b.logs = r.logs
	return b
}

// settle ends a batch. If its records were accepted, or refused for good, all its verdicts are remembered, those over the rate too, and counted. A batch
// refused for now is sent again: nothing is remembered, and its records give back their tokens.
func (c *verdictLogs) settle(ctx context.Context, b *batch, accepted bool) {
	c.mu.Lock()
	if !accepted {
		c.rate.give(float64(b.chosen))
		c.mu.Unlock()
		return
	}
	now := c.now().UnixNano()
	for id := range b.ids {
		c.seen.Known(id, now)
	}
	c.mu.Unlock()
	if b.chosen > 0 {
		c.telemetry.ConnectorTrainVerdictsRecords.Add(ctx, b.chosen)
	}
	if b.known > 0 {
		c.telemetry.ConnectorTrainVerdictsDuplicates.Add(ctx, b.known)
	}
	if b.overLimit > 0 {
		c.telemetry.ConnectorTrainVerdictsOverLimit.Add(ctx, b.overLimit)
		c.crowded.Do(func() {
			c.logger.Warn("more verdicts come than 'rate_limit' allows: the rest become no record, and are counted in otelcol_connector_train_verdicts_over_limit. "+
				"They are still on their spans", zap.Float64("rate_limit", c.cfg.RateLimit))
		})
	}
}
