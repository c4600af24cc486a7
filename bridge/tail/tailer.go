package tail

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/inotify"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lockorder"
	"github.com/trainbridge/trainbridge/internal/storageclient"
)

const (
	maxIdlePoll   = 5 * time.Second
	fullScanEvery = 30 * time.Second
	checkpointGap = time.Second
	storeRetry    = 5 * time.Second // after an error: all is stored anew then
	warnEvery     = time.Minute
	maxRetryWait  = 5 * time.Second
	shutdownWait  = 5 * time.Second // for turns to end; for the storage; and for batches in flight, when Shutdown's context has no end
)

var (
	errHangs = errors.New("a file that is being read or 'storage' hangs, as on a network file system that is away: " +
		"what was read since the last stored position is read again")
	errStoreHangs = errors.New("'storage' hangs, as on a network file system that is away: positions could not be stored, and " +
		"what was read since the last stored ones is read again")
)

// Settings are the settings of a receiver for its Tailer.
type Settings struct {
	ID        component.ID
	Kind      component.Kind
	Telemetry component.TelemetrySettings
	Clock     func() time.Time // nil: time.Now
	// HoldTimeout is the time after which Expire is called for a held line. 0: Config.PendingTimeout.
	HoldTimeout time.Duration
	// IsDocument reports whether a file of Config is rewritten whole, by its name, like the files of Config.Document. A file only in Config.IncludeByContent is
	// then read by the receiver whose IsDocument accepts the name. nil: no.
	IsDocument func(path string) bool
	// Joint: lines of several streams may become one record (Stream.Lend).
	Joint bool
	// InTurn: batches are sent one after another, in the order of cutting, for consumers that rely on the order of each log. When a batch of a stream is sent,
	// the stream's batches before were accepted.
	InTurn bool
	// Sorter is shared by the Tailers with common files; Detect makes the detector of this Tailer's lines. nil: Config.IncludeByContent is not used.
	Sorter *Sorter
	Detect func(path string) Detect
	// DetectAll: Detect is fast, and asked of each line. Others are asked of the first lines of a shape alone.
	DetectAll bool
	// Watch is called once per file for a function that sees the file's lines with their verdicts and offsets; the text is valid until the function returns.
	// nil: none.
	Watch func(path string) func(text []byte, begin int64, v Verdict, reason string)
	// Pace keeps several Once at one pace. nil: each reads as fast as possible.
	Pace *Pace
	// Sample returns the loggable part of an unreadable line, at most most bytes. nil: its beginning.
	Sample func(line []byte, most int) string
	// Redact returns a refused line for DeadLetter. nil: unchanged.
	Redact func(line []byte) []byte
}

// Tailer reads the files of a Config.
type Tailer struct {
	cfg          Config
	set          Settings
	policy       policy
	log          *zap.Logger
	now          func() time.Time
	newHandler   NewHandler
	counts       *counts
	launch       func(*lineBatch) // sends a batch; overridden in tests
	final        bool             // ReadAll: the end of a file is final
	noWatch      bool             // tests: as on a file system without inotify
	listed       func()           // tests: called after a directory was listed, to change its files
	chunk        int              // budget of a batch, in the bytes of Config.MaxInFlightBytes
	maxHeld      int              // lines of one stream
	maxHeldBytes int64
	maxKept      int   // lines that wait for shared lines
	maxAhead     int64 // bytes that a handler may read ahead in a turn
	bombBytes    int64 // below this size, a file may decompress to any multiple of its size
	probeBytes   int64 // decompressed per sweep, of all compressed files being compared

	statusMu lockorder.Mutex[leaf]
	status   Status

	sweepMu lockorder.Mutex[sweeping] // sweeper: the known files and streams, and the times of their next looks
	sweeper sweeper

	mu       lockorder.Mutex[leaf] // scheduler
	wakeup   *sync.Cond            // wakes the workers
	ready    []queued
	waiting  []queued  // streams that mayRead had no budget for; see Stream.blocked and Stream.inWaiting
	kicked   []*Stream // to be looked at now
	captures captures
	news     []news    // by the Sorter
	parked   []*Stream // of a Once: their next file is compressed, and as many are being read as may be
	inFlight int64     // budget of all batches that are cut and not settled, in bytes
	// flyingRecords are the record lines in flight that no stream holds.
	flyingRecords int64
	swept         bool // the files were looked for once
	picked        int  // streams taken out of a queue
	stopping      bool

	wake    chan struct{}        // wakes the sweeper
	early   chan struct{}        // wakes the checkpoints: a new file is in no checkpoint
	halt    chan struct{}        // closed by Shutdown: no more retries
	open    atomic.Int64         // files
	size    atomic.Int64         // bytes of the files of all streams
	lag     atomic.Int64         // unread part of size
	packed  atomic.Int64         // decoders
	watched atomic.Int64         // streams
	warned  map[string]time.Time // the last warning of each key, see warn
	warnMu  lockorder.Mutex[leaf]
	store   storage.Client
	storeMu lockorder.Mutex[storing]
	// settling is held for reading while the lines of a record are released, and for writing while the checkpoints of all streams are taken.
	settling  lockorder.RWMutex[freezing]
	nextStore time.Time // no checkpoint is stored before; under storeMu
	unstored  bool      // under storeMu: the storage failed last time
	// heldRecords are the record lines held by streams.
	heldRecords atomic.Int64
	heldBytes   atomic.Int64             // memory of the lines held by streams
	holders     atomic.Int64             // streams with held lines
	dirty       atomic.Bool              // a stream may have an outdated checkpoint
	shared      atomic.Int64             // lines lent to several batches
	sharing     lockorder.Mutex[sharing] // settling of batches while shared is not 0
	kept        int                      // under sharing: lines kept for shared lines
	watcher     *inotify.Listener        // nil: files are polled only
	batches     sync.Pool                // empty batches, to be filled again
	workers     sync.WaitGroup           // the workers and the loops
	outbox      outbox
	dead        deadLetters
	descriptors *descriptors
	life        context.Context // context of deliveries
	kill        context.CancelFunc
	stop        context.CancelFunc // ends the loops
	started     bool
	shutOnce    sync.Once
	shutErr     error
}

// New makes a Tailer; nothing is opened before Start.
func New(cfg Config, set Settings, newHandler NewHandler) (*Tailer, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	t := &Tailer{
		cfg: cfg, set: set, policy: apart{}, log: set.Telemetry.Logger, now: set.Clock, newHandler: newHandler,
		descriptors: processDescriptors(), wake: make(chan struct{}, 1), early: make(chan struct{}, 1), halt: make(chan struct{}),
		warned: map[string]time.Time{}, listed: func() {}, captures: captures{open: map[fingerprint.ID]bool{}},
		maxHeld: maxHeld, maxHeldBytes: maxHeldBytes, maxKept: maxKept, bombBytes: bombBytes, probeBytes: probeBytes, maxAhead: maxAhead,
	}
	if set.Joint {
		t.policy = joint{}
	}
	if t.log == nil {
		t.log = zap.NewNop()
	}
	if t.now == nil {
		t.now = time.Now
	}
	t.wakeup = sync.NewCond(&t.mu)
	t.chunk = int(min(maxBatchCost, cfg.MaxInFlightBytes/4))
	t.dead.path = cfg.DeadLetter
	t.outbox.init(t.chunk / 2) // half of a full batch need not wait for more
	t.launch = t.outbox.put
	t.life, t.kill = context.WithCancel(context.Background())
	t.sweeper.init(t)
	if set.Sorter != nil && set.Detect != nil {
		set.Sorter.join(t)
	}
	return t, nil
}

// Start loads the stored positions and begins to read in the background. It returns an error if the storage does not answer: without the positions, everything
// would be read twice.
func (t *Tailer) Start(ctx context.Context, host component.Host) error {
	if err := t.openCounts(); err != nil {
		return err
	}
	if err := t.openStorage(ctx, host); err != nil {
		return err
	}
	if err := t.load(ctx); err != nil {
		return errors.Join(err, t.store.Close(ctx))
	}
	if t.set.Sorter != nil {
		t.set.Sorter.doneLoading(t)
	}
	loop, stop := context.WithCancel(context.Background())
	t.stop, t.started = stop, true
	for range runtime.GOMAXPROCS(0) {
		t.workers.Go(t.work)
	}
	n := senders
	if t.set.InTurn {
		n, t.outbox.inTurn = 1, true
	}
	t.outbox.open(n, t.send)
	t.openWatcher()
	if t.watcher != nil {
		t.workers.Go(func() { t.watcher.Births(loop, t.capture) })
	}
	t.workers.Go(func() { t.sweepLoop(loop) })
	t.workers.Go(func() { t.storeLoop(loop) })
	return nil
}

// openCounts begins to publish the Tailer's metrics.
func (t *Tailer) openCounts() (err error) {
	files := func() (open, watched int64) { return t.open.Load(), t.watched.Load() }
	status := func() (Status, time.Time) { return t.Status(), t.now() }
	t.counts, err = newCounts(t.set.Telemetry, t.set.ID, t.pending, files, status)
	return err
}

// openStorage gets the Tailer's client of the storage extension; where Config.Storage is nil, a client that stores nothing.
func (t *Tailer) openStorage(ctx context.Context, host component.Host) (err error) {
	t.store, err = storageclient.Open(ctx, host, t.cfg.Storage, t.set.Kind, t.set.ID, "tail")
	return err
}

// sweepLoop looks for files and at files until ctx ends: when the next look is due, or an event or a worker wakes the sweeper.
func (t *Tailer) sweepLoop(ctx context.Context) {
	if len(t.sweeper.shared.Globs) > 0 {
		t.set.Sorter.await(ctx)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-t.wake:
		}
		next := t.sweep(t.now())
		t.letWorkersRead()
		timer.Reset(max(time.Millisecond, next))
	}
}

// letWorkersRead lets the workers begin, once all files present at the start were found. For joint records, files whose receiver is decided by their content
// must have been sniffed, too: a handler may count the streams to wait for.
func (t *Tailer) letWorkersRead() {
	t.mu.Lock()
	begun := t.swept
	t.mu.Unlock()
	sorts := t.set.Joint && len(t.sweeper.shared.Globs) > 0
	if begun || sorts && (!t.set.Sorter.settled() || t.hasNews()) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.swept = true
	t.wakeup.Broadcast()
}

// ID names the receiver.
func (t *Tailer) ID() component.ID { return t.set.ID }

// Sample returns the loggable part of a line, see Settings.Sample.
func (t *Tailer) Sample(text []byte) string { return t.sample(text) }

// Counts returns the accounts so far.
func (t *Tailer) Counts() Counts {
	if t.counts == nil {
		return Counts{}
	}
	return t.counts.snapshot()
}

// Shutdown stops reading, waits for the batches in flight until ctx ends (5 s if ctx has no deadline), and stores the positions. With a storage, unaccepted
// lines are read again after a restart. It returns an error if a file system, a handler or the storage hangs for 5 s, or the positions
// cannot be stored.
func (t *Tailer) Shutdown(ctx context.Context) error {
	t.shutOnce.Do(func() { t.shutErr = t.shutdown(ctx) })
	return t.shutErr
}

// shutdown ends, in this order, the loops and workers (within shutdownWait), the senders (until ctx ends), the storage and the open files. Each needs those
// that come later.
func (t *Tailer) shutdown(ctx context.Context) error {
	defer t.kill()
	if t.set.Sorter != nil {
		t.set.Sorter.leave(t)
	}
	if !t.started {
		if t.counts != nil {
			t.counts.close()
		}
		return nil
	}
	t.stop()
	if t.watcher != nil {
		t.watcher.Close()
	}
	close(t.halt)
	t.mu.Lock()
	t.stopping = true
	t.wakeup.Broadcast()
	t.mu.Unlock()
	if !t.awaitWorkers() {
		// A hanging goroutine holds its stream, whose state then cannot be read: the last stored checkpoints stay.
		t.outbox.end()
		t.counts.close()
		return errors.Join(errHangs, callStorage(ctx, t.store.Close))
	}
	if t.cfg.Storage == nil { // held lines cannot be read again after a restart
		t.expireAll()
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, shutdownWait)
		defer cancel()
	}
	stopKill := context.AfterFunc(ctx, t.kill)
	defer stopKill()
	t.outbox.close()
	err := callStorage(ctx, func(ctx context.Context) error { return errors.Join(t.storeAll(ctx, true), t.store.Close(ctx)) })
	t.closeFiles()
	t.counts.close()
	return err
}

// callStorage calls ask and returns its error, or errStoreHangs after shutdownWait: a storage with a hanging disk ignores the context. The time is granted even
// if ctx has ended.
func callStorage(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWait)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- ask(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errStoreHangs
	}
}

// pending returns the number of record lines that are held or in flight.
func (t *Tailer) pending() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.flyingRecords + t.heldRecords.Load()
}

// halted reports whether Shutdown was called: looks at files end early then.
func (t *Tailer) halted() bool {
	select {
	case <-t.halt:
		return true
	default:
		return false
	}
}

// awaitWorkers waits for the workers and the loops to end. It returns false if one has not ended after shutdownWait: a turn is short, so the goroutine hangs.
func (t *Tailer) awaitWorkers() bool {
	done := make(chan struct{})
	go func() { t.workers.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(shutdownWait):
		return false
	}
}

// warn logs a warning, at most once a minute per key.
func (t *Tailer) warn(key, msg string, fields ...zap.Field) {
	if t.mayWarn(key) {
		t.log.Warn(msg, fields...)
	}
}

// mayWarn reports whether a warning with a key may be logged now: none was logged yet, or the last one is a minute or more ago (warnEvery). If so, the call
// counts as the last warning from now on. A last warning that is a minute or more in the future does not count, as the clock was set back.
func (t *Tailer) mayWarn(key string) bool {
	now := t.now()
	t.warnMu.Lock()
	defer t.warnMu.Unlock()
	last, ok := t.warned[key]
	clockWasSetBack := !now.After(last.Add(-warnEvery))
	warnedLately := ok && now.Sub(last) < warnEvery && !clockWasSetBack
	if warnedLately {
		return false
	}
	t.warned[key] = now
	return true
}

// warnRejected logs that a receiver could not read a line, with a sample, at most once a minute for a reason.
func (t *Tailer) warnRejected(reason, path string, text []byte) {
	if !t.mayWarn("rejected " + reason) { // a sample is not made for each bad line
		return
	}
	t.log.Warn("Lines cannot be read", zap.String("reason", reason), zap.String("path", path), zap.String("sample", t.sample(text)))
}

// sample returns the loggable part of a line.
func (t *Tailer) sample(text []byte) string {
	if t.set.Sample != nil {
		return t.set.Sample(text, sampleBytes)
	}
	return string(text[:min(len(text), sampleBytes)])
}

// readError counts an error of opening or reading a file, and warns.
func (t *Tailer) readError(path string, err error) {
	t.counts.bump(&t.counts.readErrs, 1)
	t.warn("read", "A file cannot be read; it is tried again", zap.String("path", path), zap.Error(err))
}

// expireAll gives up all held lines.
func (t *Tailer) expireAll() {
	t.eachStream(func(s *Stream) { s.expire(farFuture) })
}

// closeFiles closes all files at the end, with those of probes and captures, and counts files as lost that have no name any more and were not read to their
// end.
func (t *Tailer) closeFiles() {
	t.sweepMu.Lock()
	t.sweeper.endProbes(farFuture)
	t.sweeper.takeCaptures(t.now())
	for base := range t.sweeper.captured {
		t.sweeper.dropCaught(base)
	}
	t.sweepMu.Unlock()
	t.eachStream(func(s *Stream) {
		for _, f := range s.files {
			if t.isGone(f) {
				t.sweeper.lost(f, true)
			}
			t.close(f)
		}
	})
}

// eachStream calls f with each stream, whose lock is held. The caller holds no lock.
func (t *Tailer) eachStream(f func(*Stream)) {
	t.sweepMu.Lock()
	defer t.sweepMu.Unlock()
	for _, s := range t.sweeper.streams {
		s.mu.Lock()
		f(s)
		s.mu.Unlock()
	}
}
