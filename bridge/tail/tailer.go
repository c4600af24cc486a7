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

// Settings are the settings that a receiver hands to its Tailer.
type Settings struct {
	ID        component.ID
	Kind      component.Kind
	Telemetry component.TelemetrySettings
	Clock     func() time.Time // nil: time.Now
	// HoldTimeout is how long a line may be held before Expire is called for it. 0: Config.PendingTimeout.
	HoldTimeout time.Duration
	// IsDocument says by its name whether a file that Config asks for is rewritten whole, like the files that Config.Document lists.
	// A file that only Config.IncludeByContent matches is then read by the receiver that says so. nil: no.
	IsDocument func(path string) bool
	// Joint says that lines of several streams may become one record (Stream.Lend).
	Joint bool
	// InTurn says that batches are sent one after the other, in the order in which they were cut: whoever gets them relies on the order of each log.
	InTurn bool
	// Sorter is shared by the Tailers that may read the same files; Detect makes the function that knows this one's lines. nil: Config.IncludeByContent is not
	// used.
	Sorter *Sorter
	Detect func(path string) Detect
	// DetectAll: Detect is fast, and asked of each line. Others are asked of the first lines of a shape alone.
	DetectAll bool
	// Watch is asked once for each file for a function that sees the file's lines with what became of them, and where in the file each begins; the text lives
	// until the function returns. nil: nobody watches.
	Watch func(path string) func(text []byte, begin int64, v Verdict, reason string)
	// Pace has several Once read at one pace. nil: each reads as fast as it can.
	Pace *Pace
	// Sample returns the part of an unreadable line, at most so many bytes, that the log may show. nil: its beginning.
	Sample func(line []byte, most int) string
	// Redact returns a refused line as DeadLetter may have it. nil: as it is.
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
	launch       func(*lineBatch) // sends a batch; the tests keep it
	final        bool             // ReadAll: the end of a file is its end for good
	noWatch      bool             // tests: as on a file system without inotify
	listed       func()           // tests: called just after a directory was listed, to change its files
	chunk        int
	maxHeld      int // lines of one stream
	maxHeldBytes int64
	maxKept      int   // lines that wait for shared ones
	maxAhead     int64 // bytes that a handler may read ahead in a turn
	bombBytes    int64 // below this, a file may decompress to any multiple of its size
	probeBytes   int64 // decompressed per sweep, of all compressed files that are compared

	statusMu lockorder.Mutex[leaf]
	status   Status

	sweepMu lockorder.Mutex[sweeping] // sweeper: the files and streams known, and when to look at them
	sweeper sweeper

	mu       lockorder.Mutex[leaf] // scheduler
	wakeup   *sync.Cond            // wakes the workers
	ready    []queued
	waiting  []queued  // for the budget
	kicked   []*Stream // to be looked at now
	catches  catches
	told     []news    // by the Sorter
	parked   []*Stream // of a Once: their next file is compressed, and as many are being read as may be
	inFlight int64
	// flyingRecords are the record lines in flight that no stream holds.
	flyingRecords int64
	swept         bool // the files were looked for once
	picked        int  // streams that were taken out of a queue
	stopping      bool

	wake    chan struct{} // wakes the sweeper
	early   chan struct{} // wakes the checkpoints: there is a file that no checkpoint knows
	halt    chan struct{} // closed by Shutdown: no more retries
	open    atomic.Int64  // files
	size    atomic.Int64  // bytes of the files of all streams
	lag     atomic.Int64  // of these, not read yet
	packed  atomic.Int64  // decoders
	watched atomic.Int64
	warned  map[string]time.Time
	warnMu  lockorder.Mutex[leaf]
	store   storage.Client
	storeMu lockorder.Mutex[storing]
	// settling is held for reading while the lines of a record are let go of, and for writing while the checkpoints of all streams are taken.
	settling  lockorder.RWMutex[freezing]
	nextStore time.Time // no checkpoint is stored before; under storeMu
	unstored  bool      // under storeMu: the storage failed last time
	// heldRecords are the record lines that streams hold.
	heldRecords atomic.Int64
	heldBytes   atomic.Int64             // memory of the lines that streams hold
	holders     atomic.Int64             // streams that hold some
	dirty       atomic.Bool              // there may be a stream whose stored checkpoint is not true
	shared      atomic.Int64             // lines that are lent to more than one batch
	sharing     lockorder.Mutex[sharing] // settling of batches while there are some
	kept        int                      // under sharing: lines that are kept for their sake
	watcher     *inotify.Listener        // nil: files are polled only
	batches     sync.Pool
	workers     sync.WaitGroup
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
		warned: map[string]time.Time{}, listed: func() {}, catches: catches{open: map[fingerprint.ID]bool{}},
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
	t.outbox.init(t.chunk / 4)
	t.launch = t.outbox.put
	t.life, t.kill = context.WithCancel(context.Background())
	t.sweeper.init(t)
	if set.Sorter != nil && set.Detect != nil {
		set.Sorter.join(t)
	}
	return t, nil
}

// Start resolves the storage and begins to read in the background.
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
		t.set.Sorter.loaded(t)
	}
	loop, stop := context.WithCancel(context.Background())
	t.stop, t.started = stop, true
	for range runtime.GOMAXPROCS(0) {
		t.workers.Go(t.work)
	}
	n := senders
	if t.set.InTurn {
		n = 1
	}
	t.outbox.open(n, t.send)
	t.openWatcher()
	if t.watcher != nil {
		t.workers.Go(func() { t.watcher.Births(loop, t.catch) })
	}
	t.workers.Go(func() { t.run(loop) })
	t.workers.Go(func() { t.keep(loop) })
	return nil
}

func (t *Tailer) openCounts() (err error) {
	files := func() (open, watched int64) { return t.open.Load(), t.watched.Load() }
	status := func() (Status, time.Time) { return t.Status(), t.now() }
	t.counts, err = newCounts(t.set.Telemetry, t.set.ID, t.pending, files, status)
	return err
}

func (t *Tailer) openStorage(ctx context.Context, host component.Host) (err error) {
	t.store, err = storageclient.Open(ctx, host, t.cfg.Storage, t.set.Kind, t.set.ID, "tail")
	return err
}

// run is the sweeper: it looks for files and at files, and stores checkpoints.
func (t *Tailer) run(ctx context.Context) {
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
		t.begin()
		timer.Reset(max(time.Millisecond, next))
	}
}

// begin has the workers read, once all files that there are were found: where records are joint, a handler may count the streams that it has to wait for.
func (t *Tailer) begin() {
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

// Sample returns the part of a line that the log may show: its beginning, without secrets.
func (t *Tailer) Sample(text []byte) string { return t.sample(text) }

// Counts returns the accounts so far.
func (t *Tailer) Counts() Counts {
	if t.counts == nil {
		return Counts{}
	}
	return t.counts.snapshot()
}

// Shutdown stops reading, waits for the batches in flight until ctx ends (5 s when it has no end), and stores the position. Lines that were not accepted by
// then are read again after a restart, when there is a storage. It returns an error when a file system, a handler or the storage hangs for 5 s.
func (t *Tailer) Shutdown(ctx context.Context) error {
	t.shutOnce.Do(func() { t.shutErr = t.shutdown(ctx) })
	return t.shutErr
}

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
	if !t.idle() {
		// A goroutine that hangs holds its stream, so its state cannot be read: the checkpoints stay as they were stored last.
		t.outbox.end()
		t.counts.close()
		return errors.Join(errHangs, within(ctx, t.store.Close))
	}
	if t.cfg.Storage == nil {
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
	err := within(ctx, func(ctx context.Context) error { return errors.Join(t.storeAll(ctx, true), t.store.Close(ctx)) })
	t.closeFiles()
	t.counts.close()
	return err
}

// within asks the storage for something, for shutdownWait, also when ctx has ended. A storage whose disk hangs does not look at its context, so it is left
// behind.
func within(ctx context.Context, ask func(context.Context) error) error {
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

// pending counts the record lines that are held or in flight.
func (t *Tailer) pending() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.flyingRecords + t.heldRecords.Load()
}

// halted says whether Shutdown was called: looks at files end early then.
func (t *Tailer) halted() bool {
	select {
	case <-t.halt:
		return true
	default:
		return false
	}
}

// idle waits for the workers and the loops. A turn is short, so one that does not end hangs.
func (t *Tailer) idle() bool {
	done := make(chan struct{})
	go func() { t.workers.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(shutdownWait):
		return false
	}
}

// warn logs at most once a minute per key.
func (t *Tailer) warn(key, msg string, fields ...zap.Field) {
	if t.mayWarn(key) {
		t.log.Warn(msg, fields...)
	}
}

// mayWarn says true once a minute per key.
func (t *Tailer) mayWarn(key string) bool {
	now := t.now()
	t.warnMu.Lock()
	defer t.warnMu.Unlock()
	last, ok := t.warned[key]
	if ok && now.Sub(last) < warnEvery && now.After(last.Add(-warnEvery)) {
		return false
	}
	t.warned[key] = now
	return true
}

func (t *Tailer) warnRejected(reason, path string, text []byte) {
	if !t.mayWarn("rejected " + reason) { // a sample is not made for each bad line
		return
	}
	t.log.Warn("Lines cannot be read", zap.String("reason", reason), zap.String("path", path), zap.String("sample", t.sample(text)))
}

// sample returns the part of a line that the log may show.
func (t *Tailer) sample(text []byte) string {
	if t.set.Sample != nil {
		return t.set.Sample(text, sampleBytes)
	}
	return string(text[:min(len(text), sampleBytes)])
}

func (t *Tailer) readError(path string, err error) {
	t.counts.bump(&t.counts.readErrs, 1)
	t.warn("read", "A file cannot be read; it is tried again", zap.String("path", path), zap.Error(err))
}

// expireAll gives up everything that is held.
func (t *Tailer) expireAll() {
	t.eachStream(func(s *Stream) { s.expire(farFuture) })
}

func (t *Tailer) closeFiles() {
	t.sweepMu.Lock()
	t.sweeper.endProbes(farFuture)
	t.sweeper.takeCaught(t.now())
	for base := range t.sweeper.nets {
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

func (t *Tailer) eachStream(f func(*Stream)) {
	t.sweepMu.Lock()
	defer t.sweepMu.Unlock()
	for _, s := range t.sweeper.streams {
		s.mu.Lock()
		f(s)
		s.mu.Unlock()
	}
}
