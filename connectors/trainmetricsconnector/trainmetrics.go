package trainmetricsconnector

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector/internal/metadata"
)

// warnEvery bounds how often a refused flush is logged.
const warnEvery = time.Minute

// trainMetrics turns spans into metrics. ConsumeTraces may run concurrently.
type trainMetrics struct {
	id        component.ID
	cfg       *Config
	next      consumer.Metrics
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	scratch   sync.Pool // of *scratch

	now       func() time.Time
	newTicker func(time.Duration) (ticks <-chan time.Time, stop func())

	storage storage.Client // nil: none
	saving  sync.Mutex     // one write at a time; locked before mu

	mu      sync.Mutex // guards the fields below
	store   *store
	failing bool // the storage fails, and a warning was logged

	crowded sync.Once // for the warning about missing room

	cancel   context.CancelFunc // ends the flushing goroutine; nil before Start
	done     chan struct{}      // closed when the goroutine has ended
	shutdown sync.Once
	warned   time.Time // when a refused flush was logged last; owned by the flushing goroutine, then by Shutdown
}

var _ connector.Traces = (*trainMetrics)(nil)

// newTrainMetrics returns a connector that is not started.
func newTrainMetrics(cfg *Config, set connector.Settings, next consumer.Metrics) (*trainMetrics, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	c := &trainMetrics{
		id: set.ID, cfg: cfg, next: next, logger: set.Logger, telemetry: telemetry,
		now: time.Now,
		newTicker: func(d time.Duration) (<-chan time.Time, func()) {
			t := time.NewTicker(d)
			return t.C, t.Stop
		},
	}
	c.scratch.New = func() any { return newScratch() }
	c.store = newStore(cfg, c.now())
	c.store.zeros = zeroFlushes
	return c, nil
}

// Capabilities reports that spans are only read.
func (*trainMetrics) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// Start restores the stored state, and starts to flush. ctx ends when the collector has started, and is not kept.
func (c *trainMetrics) Start(ctx context.Context, host component.Host) error {
	if err := c.open(ctx, host); err != nil {
		return err
	}
	c.telemetry.ConnectorTrainMetricsStorageFailures.Add(ctx, 0) // increase() does not see a counter that begins above 0
	ctx, cancel := context.WithCancel(context.Background())      //nolint:contextcheck // as above
	c.cancel, c.done = cancel, make(chan struct{})
	ticks, stop := c.newTicker(c.cfg.MetricsFlushInterval)
	go func() {
		defer close(c.done)
		defer stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks:
				c.flush(ctx)
			}
		}
	}()
	return nil
}

// Shutdown sends the last values, accounts of runs included, and closes the storage; it does neither if the current flush outlasts ctx. It may be called twice,
// or without Start.
func (c *trainMetrics) Shutdown(ctx context.Context) (err error) {
	c.shutdown.Do(func() {
		defer c.telemetry.Shutdown()
		if c.cancel != nil {
			c.cancel()
			select {
			case <-c.done:
			case <-ctx.Done():
				err = fmt.Errorf("train_metrics: the next component holds a flush, the last values were not sent: %w", ctx.Err())
				return
			}
		}
		c.mu.Lock()
		c.store.accounts.final = true
		c.mu.Unlock()
		c.flush(ctx)
		if c.storage != nil {
			err = c.storage.Close(ctx)
		}
	})
	return err
}

// ConsumeTraces counts the spans, and returns when the counts are stored. The error is always nil: neither a refused flush nor a failing storage is the problem
// of the sender.
func (c *trainMetrics) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	s := c.scratch.Get().(*scratch)
	s.read(td)

	c.mu.Lock()
	before := c.store.seen.Early
	c.store.apply(s, c.now())
	duplicate, spills, full := c.store.duplicate, c.store.spills, c.store.full
	early := c.store.seen.Early - before // generations of ids that this batch ended by their size
	c.mu.Unlock()
	c.save(ctx)

	if duplicate > 0 {
		c.telemetry.ConnectorTrainMetricsDuplicateSpans.Add(ctx, duplicate)
	}
	if spills > 0 {
		c.telemetry.ConnectorTrainMetricsOverflowSpans.Add(ctx, spills)
		c.crowded.Do(func() {
			c.logger.Warn("there is no room for more series: what new names count goes to the series with otel.metric.overflow=true. "+
				"Raise 'cardinality_limit', or see what in the log has so many names",
				zap.Int("cardinality_limit", c.cfg.CardinalityLimit), zap.String("metric", metrics[full].Name))
		})
	}
	if early > 0 {
		c.telemetry.ConnectorTrainMetricsDedupEarlyRotations.Add(ctx, early)
	}
	if s.invalid > 0 {
		c.telemetry.ConnectorTrainMetricsInvalidSpans.Add(ctx, s.invalid)
	}
	s.reset()
	c.scratch.Put(s)
	return nil
}

// setAccounts sets the series of the runs with news. An account of many steps takes long (book.Due), so the account is made without the lock: batches need not
// wait.
func (c *trainMetrics) setAccounts(now time.Time) {
	c.mu.Lock()
	c.store.now = now.UnixNano()
	list := c.store.accounts.due(c.store)
	c.mu.Unlock()
	for _, d := range list {
		made, ok := d.from.Account()
		if !ok || made.Wall <= 0 { // no step has a time
			continue
		}
		c.mu.Lock()
		c.store.accounts.setAccount(c.store, d.run, &made, d.end)
		c.mu.Unlock()
	}
}

// flush sends every series, and forgets the expired ones. A refused flush loses nothing: the values are cumulative.
func (c *trainMetrics) flush(ctx context.Context) {
	now := c.now()
	c.setAccounts(now)
	c.mu.Lock()
	md := c.store.build(now)
	past := c.store.past
	c.store.past = nil
	c.mu.Unlock()
	if len(past) > 0 {
		c.logger.Info("runs of the past were read: their counters begin now. 'trainbridge replay' sends their metrics with the times of the logs",
			zap.Strings("runs", past))
	}
	c.save(ctx) // before values are sent: after a crash, even of the machine, no value is lower than one already scraped
	c.syncStorage(ctx)
	if md.ResourceMetrics().Len() == 0 {
		return
	}
	points := md.DataPointCount()
	err := c.next.ConsumeMetrics(ctx, md)
	if err == nil {
		return
	}
	c.telemetry.ConnectorTrainMetricsFlushFailures.Add(context.WithoutCancel(ctx), 1)
	if c.warned.IsZero() || now.Sub(c.warned) >= warnEvery {
		c.warned = now
		c.logger.Warn("metrics were refused; the values are cumulative and go with the next flush", zap.Int("points", points), zap.Error(err))
	}
}
