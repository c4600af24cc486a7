//go:build linux && cgo

package nvmlreceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/scraper"
	"go.opentelemetry.io/collector/scraper/scrapererror"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver/internal/metadata"
)

// lookAgain is the interval of NVML restarts while a GPU is lost: NVML finds a reset GPU only after a restart. Also the pause of a failing field (retry).
const lookAgain = time.Minute

// library is NVML as go-nvml loads it, shared by all receivers of the process: go-nvml keeps the library's symbols in package variables.
var library = sync.OnceValue(func() nvml.Interface { return nvml.New() })

// loading guards go-nvml's count of users of the library.
var loading sync.Mutex

// gpus scrapes all GPUs of the host. All methods but start, scrape and shutdown run in one goroutine at a time, the pass.
type gpus struct {
	cfg    *Config
	logger *zap.Logger
	lib    nvml.Interface
	clock  func() time.Time
	host   string
	mb     *metadata.MetricsBuilder

	// pass is the pass under way, or ended with a result that no scrape has read yet: the driver may hang. nil: none.
	pass  chan scraped
	stuck bool // logged that the driver hangs

	connected bool               // NVML is started
	away      map[string]bool    // reasons for a missing driver, logged since the last time with a driver
	logged    []string           // the devices, as logged last
	missed    bool               // configured devices that do not exist were logged
	driver    string             // version
	symbols   map[string]bool    // whether the driver has a function
	devices   []*device          // all GPUs that are there, also unwanted ones
	gone      map[string]*device // by UUID: GPUs that fell off the bus and have not come back
	looked    time.Time          // when NVML was last started
	xids      xids

	// Of the pass.
	began    time.Time
	now      pcommon.Timestamp         // the same
	errs     scrapererror.ScrapeErrors // of single devices and fields
	broken   nvml.Return               // the answer that requires a restart of NVML, or SUCCESS
	refused  nvml.Return               // the last error of any field; SUCCESS: none
	answered bool                      // some field was read
}

// scraped is the result of a pass.
type scraped struct {
	metrics pmetric.Metrics
	err     error
}

func newScraper(cfg *Config, set receiver.Settings) (scraper.Metrics, error) {
	g := newGPUs(cfg, set, library())
	return scraper.NewMetrics(g.scrape, scraper.WithStart(g.start), scraper.WithShutdown(g.shutdown))
}

// newGPUs makes a scraper of the GPUs that lib knows, before start.
func newGPUs(cfg *Config, set receiver.Settings, lib nvml.Interface) *gpus {
	return &gpus{
		cfg: cfg, logger: set.Logger, lib: lib, clock: time.Now,
		mb: metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, set), away: make(map[string]bool), gone: make(map[string]*device), xids: newXIDs(),
	}
}

// start starts NVML only where error_mode is propagate, to fail without a driver; else the first scrape starts NVML. It waits no longer than a scrape would:
// the driver may hang.
func (g *gpus) start(ctx context.Context, _ component.Host) error {
	g.host, _ = os.Hostname() // without a name the attribute is empty
	if g.cfg.ErrorMode != errorPropagate {
		return nil
	}
	ctx, cancel := g.patience(ctx)
	defer cancel()
	if _, err := g.wait(ctx, func() (pmetric.Metrics, error) { return pmetric.NewMetrics(), g.connect(nil) }); err != nil {
		return fmt.Errorf("%w ('error_mode: ignore' starts without GPUs)", err)
	}
	return nil
}

var errNoAnswer = errors.New("NVML does not answer: the driver or a GPU hangs. Look at dmesg for Xid errors")

// scrape makes a pass over the devices.
func (g *gpus) scrape(ctx context.Context) (pmetric.Metrics, error) { return g.wait(ctx, g.collect) }

// wait makes a pass, or waits for the one that is still under way, until ctx ends: a driver may hang, and a pass cannot be stopped. The pass then goes on, and
// a later scrape returns its metrics. The hang is an error once, then no metrics.
func (g *gpus) wait(ctx context.Context, pass func() (pmetric.Metrics, error)) (pmetric.Metrics, error) {
	if g.pass == nil {
		g.pass = make(chan scraped, 1)
		go func(done chan<- scraped) {
			md, err := pass()
			done <- scraped{md, err}
			close(done)
		}(g.pass)
	}
	select {
	case s := <-g.pass:
		g.pass, g.stuck = nil, false
		return s.metrics, s.err
	case <-ctx.Done():
		if g.stuck { // logged at the first time
			return pmetric.NewMetrics(), nil
		}
		g.stuck = true
		return pmetric.NewMetrics(), errNoAnswer
	}
}

// shutdown ends NVML, and waits no longer than a scrape would. NVML counts its users, so a driver that answers later still ends NVML.
func (g *gpus) shutdown(ctx context.Context) error {
	ctx, cancel := g.patience(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		if g.pass != nil {
			<-g.pass
		}
		g.disconnect()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return nil
}

// patience limits ctx to the timeout of a scrape.
func (g *gpus) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if g.cfg.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, g.cfg.Timeout)
}

// collect is a pass: it starts NVML if necessary, reads every field of every device once, and returns the metrics. NVML is started anew once a minute while a
// GPU is lost, and ended when it answers as if it no longer worked as a whole; the next pass then starts it.
func (g *gpus) collect() (pmetric.Metrics, error) {
	g.began = g.clock()
	g.now, g.errs = pcommon.NewTimestampFromTime(g.began), scrapererror.ScrapeErrors{}
	g.broken, g.refused, g.answered = nvml.SUCCESS, nvml.SUCCESS, false
	g.readXIDs()         // also before a restart of NVML, which loses the events
	var before []*device // devices known before a restart
	if g.connected && len(g.gone) > 0 && g.began.Sub(g.looked) >= lookAgain {
		before = g.devices
		g.disconnect()
	}
	if !g.connected {
		if err := g.connect(before); err != nil {
			return pmetric.NewMetrics(), g.sayAway(err)
		}
	}
	g.readAll()
	for _, d := range g.gone { // nothing else is known of them
		g.status(d, metadata.AttributeHwStateFailed)
	}
	g.recordXIDs()
	res := g.mb.NewResourceBuilder()
	res.SetHostName(g.host)
	md := g.mb.Emit(metadata.WithResource(res.Emit()))
	switch {
	case g.broken != nvml.SUCCESS: // then the answers of the devices mean nothing
		g.disconnect()
		return pmetric.NewMetrics(), g.sayAway(startError(g.broken))
	case g.refused != nvml.SUCCESS && !g.answered: // by all devices: all of them failed, or NVML did
		g.disconnect()
		return md, g.sayAway(startError(g.refused))
	case g.answered && len(g.away) > 0:
		clear(g.away)
		g.logger.Info("NVML is there again.")
	}
	return md, g.errs.Combine()
}

// connect starts NVML and finds the devices. before are the devices known until a restart for a lost GPU, else none: a device found again, by its UUID, keeps
// what is known of it (unsupported fields, counters). A lost GPU has no UUID, and is taken for the one of before that had the same index and was not found
// again. An error means that NVML as a whole does not work, and leaves NVML ended.
func (g *gpus) connect(before []*device) error {
	g.looked = g.clock()
	loading.Lock()
	ret := g.lib.Init()
	loading.Unlock()
	if ret != nvml.SUCCESS {
		return startError(ret)
	}
	g.connected, g.symbols = true, make(map[string]bool)
	count, ret := g.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		g.disconnect()
		return startError(ret)
	}
	g.driver, _ = g.lib.SystemGetDriverVersion() // "" without a version
	if g.cfg.Metrics.HwErrors.Enabled && g.has("nvmlEventSetCreate") {
		g.xids.watch(g.lib)
	}
	matched := make([]bool, len(g.cfg.Devices)) // of the configured devices
	refused := make(map[*device]nvml.Return)    // the devices that answer with an error
	for i := range count {
		d, known, ret := g.identify(i, before)
		d.wanted = g.wanted(i, d.uuid, d.model, matched)
		if !d.nameless { // before the loop of refused devices below: lose looks at the indices
			g.placed(d, known)
		}
		switch ret {
		case nvml.SUCCESS:
			g.devices = append(g.devices, d)
			g.xids.register(d)
		case nvml.ERROR_NO_PERMISSION: // a GPU outside this container
			g.logger.Debug("A GPU may not be read.", zap.String("gpu", d.name))
		default:
			refused[d] = ret
		}
	}
	for _, ret := range refused {
		noneAnswers := len(g.devices) == 0 && !lost(ret)
		if noneAnswers || broken(ret) { // NVML as a whole failed, not only one GPU
			g.disconnect()
			return startError(ret)
		}
	}
	for d, ret := range refused {
		// A GPU of before, by its index.
		if i := slices.IndexFunc(before, func(b *device) bool { return d.nameless && b.index == d.index && !slices.Contains(g.devices, b) }); i >= 0 {
			d = before[i]
		}
		g.lose(d, ret)
	}
	if !g.missed {
		g.sayMissing(matched)
	}
	if names := g.names(); !slices.Equal(names, g.logged) {
		g.logged = names
		g.logger.Info("NVML samples GPUs.", zap.Strings("gpus", names), zap.String("driver", g.driver))
	}
	return nil
}

// startError explains an error of NVML as a whole, with the remedy.
func startError(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return errNoDriver
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return errors.New("the driver was replaced while its library was loaded: restart the collector")
	}
	return fmt.Errorf("NVML does not work: %w (nvmlReturn %d)", ret, int(ret))
}

// disconnect ends NVML, and forgets its devices. What is known of lost GPUs and XID errors stays.
func (g *gpus) disconnect() {
	if !g.connected {
		return
	}
	g.connected, g.devices = false, nil
	g.xids.free()
	loading.Lock()
	defer loading.Unlock()
	_ = g.lib.Shutdown() // the answer helps no one: the driver may be gone
}

var errNoDriver = errors.New("no NVIDIA driver: libnvidia-ml.so.1 was not found (in a container: is the NVIDIA runtime set, with the capability 'utility'?)")

// sayAway logs each reason for a missing driver once. The result is an error where error_mode is propagate.
func (g *gpus) sayAway(err error) error {
	if g.cfg.ErrorMode == errorPropagate {
		return err
	}
	if text := err.Error(); !g.away[text] {
		g.away[text] = true
		level := zap.WarnLevel
		if errors.Is(err, errNoDriver) {
			level = zap.InfoLevel // most likely a host without a GPU
		}
		g.logger.Log(level, fmt.Sprintf("nvml is idle until there is a driver: %v", err))
	}
	return nil
}

// sayMissing logs once the configured devices that do not exist; matched has those that do. With a GPU in MIG mode nothing is logged: MIG devices may come
// later.
func (g *gpus) sayMissing(matched []bool) {
	mig := slices.ContainsFunc(g.devices, func(d *device) bool { return d.mig })
	for i, yes := range matched {
		if !yes && !mig {
			g.missed = true
			g.logger.Warn("No GPU is what 'devices' asks for.", zap.String("devices", string(g.cfg.Devices[i])), zap.Int("gpus", len(g.devices)))
		}
	}
}

// wanted says whether the configuration asks for a device, or for all; the settings that match are marked in matched, unless nil. index is the GPU's.
func (g *gpus) wanted(index int, uuid, model string, matched []bool) bool {
	wanted := len(g.cfg.Devices) == 0
	for i, d := range g.cfg.Devices {
		if d.matches(index, uuid, model) {
			wanted = true
			if matched != nil {
				matched[i] = true
			}
		}
	}
	return wanted
}

// names are the wanted devices for the log: index, model and UUID of each.
func (g *gpus) names() []string {
	names := make([]string, 0, len(g.devices))
	for _, d := range g.devices {
		if d.wanted {
			names = append(names, d.name+" "+d.model+" "+d.uuid)
		}
	}
	return names
}
