package runlakeexporter

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/exporters/runlakeexporter/internal/metadata"
	"github.com/trainbridge/trainbridge/internal/lake"
	"github.com/trainbridge/trainbridge/internal/seen"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	mostRuns    = 10_000 // with spans on disk
	mostRefused = 10 * mostRuns
	looks       = 10      // within Config.Silence
	mostSeen    = 1 << 22 // spans of a run in the writing, of which each counts once
)

var errRoom = errors.New("'max_bytes' of spans are kept")

// runLake is the run_lake exporter.
type runLake struct {
	cfg    *Config
	log    *zap.Logger
	tel    *metadata.TelemetryBuilder
	now    func() time.Time
	writer string // the name of this process's files of spans
	packer *zstd.Encoder

	mu      sync.Mutex
	runs    map[string]*run     // by the name of the run's directory
	refused map[string]struct{} // runs that are not kept (room): a run that got room later would be a part of itself
	bytes   int64               // of all spans on disk, as of the last look, and what this process added since

	writing sync.Mutex // held while runs are written: one at a time
	stop    chan struct{}
	done    chan struct{}
}

// run is a run with spans on disk.
type run struct {
	last    time.Time // when the last span came
	size    int64     // By, of the spans of all gateways, at the last look
	spans   int64     // number of spans that this process has kept
	dropped bool      // has the mark droppedName
}

func newRunLake(ctx context.Context, cfg *Config, set exporter.Settings, now func() time.Time) (*runLake, error) {
	tel, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	e := &runLake{
		cfg: cfg, log: set.Logger, tel: tel, now: now, writer: rand.Text(), packer: packer, runs: make(map[string]*run), refused: make(map[string]struct{}),
	}
	e.tel.ExporterRunLakeDropped.Add(ctx, 0) // increase() misses a counter that begins above 0
	e.tel.ExporterRunLakeFailed.Add(ctx, 0)
	return e, nil
}

// Capabilities implements exporter.Traces.
func (*runLake) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start looks for the runs of earlier processes, and begins to look for silent ones.
func (e *runLake) Start(ctx context.Context, _ component.Host) error {
	e.stop, e.done = make(chan struct{}), make(chan struct{})
	e.look(context.WithoutCancel(ctx))
	go func() {
		defer close(e.done)
		ticker := time.NewTicker(e.cfg.Silence / looks)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				e.look(context.WithoutCancel(ctx))
			case <-e.stop:
				return
			}
		}
	}()
	return nil
}

// Shutdown writes the runs with spans of this process, as far as the spans have come, until ctx ends. The next process writes the rest.
func (e *runLake) Shutdown(ctx context.Context) error {
	defer e.tel.Shutdown()
	if e.stop == nil {
		return nil
	}
	close(e.stop)
	<-e.done
	e.mu.Lock()
	var names []string
	for name, r := range e.runs {
		if r.spans > 0 {
			names = append(names, name)
		}
	}
	e.mu.Unlock()
	slices.Sort(names)
	for _, name := range names {
		e.write(ctx, name)
	}
	return e.packer.Close()
}

// ConsumeTraces keeps the spans of each run. It returns no error: a lake that cannot be written does not hold up traces.
func (e *runLake) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	by := make(map[string]ptrace.Traces)
	for _, rs := range td.ResourceSpans().All() {
		id := spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID)
		of, ok := by[id]
		if !ok {
			of = ptrace.NewTraces()
			by[id] = of
		}
		rs.CopyTo(of.ResourceSpans().AppendEmpty())
	}
	for id, of := range by {
		n := int64(of.SpanCount())
		if id == "" { // jobs of all days would be one run
			e.tel.ExporterRunLakeDropped.Add(ctx, n)
			continue
		}
		e.tel.ExporterRunLakeDropped.Add(ctx, e.keep(lake.RunName(id), of, n))
	}
	return nil
}

// keep appends n spans to those of a run, and returns how many spans are dropped instead: of a run that is left out from now on, the spans kept before too.
func (e *runLake) keep(name string, td ptrace.Traces, n int64) (dropped int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := spoolOf(e.cfg.Directory, name, e.writer)
	r := e.runs[name]
	if r == nil {
		if !e.room(name, s) {
			return n
		}
		r = &run{dropped: s.dropped()}
		e.runs[name] = r
	}
	r.last = e.now()
	if r.dropped {
		return n
	}
	err := errRoom
	if e.bytes < e.cfg.MaxBytes {
		var size int64
		size, err = s.add(e.packer, td)
		e.bytes += size
	}
	if err == nil {
		r.spans += n
		return 0
	}
	e.log.Warn("A run is left out of the lake: its spans have no room; report --format parquet adds it from its logs",
		zap.String("run", name), zap.String("lake", e.cfg.Directory), zap.Error(errors.Join(err, s.drop())))
	dropped, r.spans, r.dropped = n+r.spans, 0, true
	return dropped
}

// room says whether the spans of a run new to this process are kept: runs are not too many, and the lake does not have rows of the run without its spans on
// disk: such rows are of removed spans, or of logs. Once refused is full, any new run may be one that was refused, so none is kept.
func (e *runLake) room(name string, s spool) bool {
	if _, known := e.refused[name]; known {
		return false
	}
	if len(e.runs) < mostRuns && len(e.refused) < mostRefused {
		if paths, _ := s.files(); len(paths) > 0 || !lake.Has(e.cfg.Directory, name) {
			return true
		}
	}
	if len(e.refused) < mostRefused {
		e.refused[name] = struct{}{}
	}
	return false
}

// look looks at the spans of all runs in the lake: writes silent runs, also of gateways long gone, and removes spans kept for long enough.
func (e *runLake) look(ctx context.Context) {
	entries, _ := os.ReadDir(filepath.Join(e.cfg.Directory, spansDir)) // missing before the first span
	var silent []string
	all := int64(0)
	for _, entry := range entries {
		size, due := e.lookAt(ctx, entry.Name())
		all += size
		if due {
			silent = append(silent, entry.Name())
		}
	}
	e.mu.Lock()
	e.bytes = all
	e.mu.Unlock()
	for _, name := range silent {
		e.write(ctx, name)
	}
}

// lookAt looks at the spans of a run: their size on disk, and whether the run is due to be written. Spans kept for long enough are removed, but not before the
// run is written.
func (e *runLake) lookAt(ctx context.Context, name string) (size int64, due bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := spoolOf(e.cfg.Directory, name, e.writer)
	r := e.runs[name]
	if r != nil && !r.dropped && s.dropped() { // by another gateway: the spans kept here will be in no row
		e.tel.ExporterRunLakeDropped.Add(ctx, r.spans)
		r.spans, r.dropped = 0, true
		_ = s.drop()
	}
	_, size = s.files()
	now := e.now()
	if r == nil {
		if len(e.runs) >= mostRuns {
			return size, false
		}
		r = &run{last: now, size: size, dropped: s.dropped()}
		e.runs[name] = r
	}
	if size != r.size { // this gateway or another goes on
		r.size, r.last = size, now
	}
	silence := now.Sub(r.last)
	due = silence >= e.cfg.Silence && !r.dropped && s.written() != size
	// A due run is still to be written; a foreign one never is, although due.
	if silence >= e.cfg.Keep && (!due || e.foreign(name, s)) {
		if err := os.RemoveAll(s.dir); err == nil {
			delete(e.runs, name)
			return 0, false
		}
	}
	return size, due
}

// foreign says whether the rows of a run were made of logs, by `report`: such rows know more, and stay.
func (e *runLake) foreign(name string, s spool) bool {
	return s.written() < 0 && lake.Has(e.cfg.Directory, name)
}

// write writes a run into the lake, unless its rows are as new as its spans, or are of its logs, or spans of the run were dropped.
func (e *runLake) write(ctx context.Context, name string) {
	e.writing.Lock()
	defer e.writing.Unlock()
	s := spoolOf(e.cfg.Directory, name, e.writer)
	paths, size := s.files()
	if ctx.Err() != nil || size == 0 || s.written() == size || s.dropped() || e.foreign(name, s) {
		return
	}
	if err := e.rows(s, paths, size); err != nil {
		e.tel.ExporterRunLakeFailed.Add(ctx, 1)
		e.log.Warn("A run could not be written into the lake; it is tried again", zap.String("run", name), zap.String("lake", e.cfg.Directory), zap.Error(err))
		return
	}
	e.tel.ExporterRunLakeWritten.Add(ctx, 1)
}

// rows makes the rows of a run from files of spans, size bytes in all, and writes the rows into the lake. The mark before says that rows are of a gateway, the
// mark behind says from how many bytes.
func (e *runLake) rows(s spool, paths []string, size int64) (err error) {
	unpacker, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostMessage))
	if err != nil {
		return err
	}
	defer unpacker.Close()
	tables := lake.New(e.cfg.Directory, func(path string) string { return path })
	defer func() { err = errors.Join(err, tables.Close()) }()
	tables.Labels(func(attribute string) bool {
		return spans.IsJobAttribute(attribute) || slices.Contains(e.cfg.Labels, attribute)
	})
	met := seen.Last(mostSeen)
	for _, path := range paths {
		err := each(path, unpacker, func(td ptrace.Traces) {
			removeKnown(td, &met)
			tables.Traces(td)
		})
		if err != nil {
			e.log.Warn("A file of spans is not whole", zap.String("file", path), zap.Error(err))
		}
	}
	if tables.Jobs(nil); tables.Rows(lake.RunsTable) == 0 { // nothing to write; the mark lets the run be due no more
		return s.write(size)
	}
	if s.written() < 0 {
		err = s.write(0)
	}
	if err == nil {
		err = lake.Write(e.cfg.Directory, tables)
	}
	if err == nil {
		err = s.write(size)
	}
	return err
}

// removeKnown removes the spans that are known, and makes all others known: a message that was not confirmed comes again, also to another gateway.
func removeKnown(td ptrace.Traces, met *seen.Seen) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			ss.Spans().RemoveIf(func(s ptrace.Span) bool { return met.Known(seen.ID(s.TraceID(), s.SpanID()), 0) })
		}
	}
}
