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

// lookAgain is how often NVML is started anew while a GPU is lost: it finds one that was reset only then.
const lookAgain = time.Minute

// library is NVML as go-nvml loads it, one for all receivers of the process: go-nvml keeps what it finds in the library in variables of its package.
var library = sync.OnceValue(func() nvml.Interface { return nvml.New() })

// gpus scrapes all GPUs of the host. Its methods but start, scrape and shutdown run in one goroutine at a time: the pass.
type gpus struct {
	cfg    *Config
	logger *zap.Logger
	lib    nvml.Interface
	clock  func() time.Time
	host   string
	mb     *metadata.MetricsBuilder

	// pass is the last pass while it has not been waited for to its end: the driver may not answer for long.
	pass  chan scraped
	stuck bool // that has been said

	connected bool
	away      string          // why there is no driver, as was said
	told      []string        // the devices, as was said
	missed    bool            // that some are missing was said
	driver    string          // its version
	symbols   map[string]bool // whether the driver has a function
	devices   []*device
	gone      map[string]*device // by UUID: what fell off the bus and was not seen since
	looked    time.Time          // when NVML was last started
	xids      xids

	// Of the pass.
	now    pcommon.Timestamp
	errs   scrapererror.ScrapeErrors
	broken nvml.Return // what says that NVML has to be started anew; SUCCESS: nothing
	asked  bool        // some device
	heard  bool        // one that answered
}

// scraped is what a pass ends with.
type scraped struct {
	metrics pmetric.Metrics
	err     error
}

func newScraper(cfg *Config, set receiver.Settings) (scraper.Metrics, error) {
	g := newGPUs(cfg, set, library())
	return scraper.NewMetrics(g.scrape, scraper.WithStart(g.start), scraper.WithShutdown(g.shutdown))
}

func newGPUs(cfg *Config, set receiver.Settings, lib nvml.Interface) *gpus {
	return &gpus{
		cfg: cfg, logger: set.Logger, lib: lib, clock: time.Now,
		mb: metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, set), gone: make(map[string]*device), xids: newXIDs(),
	}
}

// start fails without a driver only where the config says so.
func (g *gpus) start(context.Context, component.Host) error {
	g.host, _ = os.Hostname() // without a name the attribute is empty
	if err := g.connect(); err != nil {
		if g.cfg.ErrorMode == errorPropagate {
			return fmt.Errorf("%w ('error_mode: ignore' starts without GPUs)", err)
		}
		g.sayAway(err)
	}
	return nil
}

var errNoAnswer = errors.New("NVML does not answer: the driver or a GPU hangs. Look at dmesg for Xid errors")

// scrape makes a pass over the devices. It does not wait longer than ctx for a driver that hangs; the pass goes on, and what it finds leaves with a later scrape.
func (g *gpus) scrape(ctx context.Context) (pmetric.Metrics, error) {
	if g.pass == nil {
		g.pass = make(chan scraped, 1)
		go func(done chan<- scraped) {
			md, err := g.collect()
			done <- scraped{md, err}
		}(g.pass)
	}
	select {
	case s := <-g.pass:
		g.pass, g.stuck = nil, false
		return s.metrics, s.err
	case <-ctx.Done():
		if g.stuck { // said at the first time
			return pmetric.NewMetrics(), nil
		}
		g.stuck = true
		return pmetric.NewMetrics(), errNoAnswer
	}
}

// shutdown leaves NVML as it is while a call hangs in it.
func (g *gpus) shutdown(ctx context.Context) error {
	if g.pass != nil {
		select {
		case <-g.pass:
			g.pass = nil
		default:
			return nil
		}
	}
	g.disconnect()
	return nil
}

// collect reads every field of every device once.
func (g *gpus) collect() (pmetric.Metrics, error) {
	now := g.clock()
	g.now, g.errs, g.broken = pcommon.NewTimestampFromTime(now), scrapererror.ScrapeErrors{}, nvml.SUCCESS
	g.asked, g.heard = false, false
	if g.connected && len(g.gone) > 0 && now.Sub(g.looked) >= lookAgain {
		g.disconnect()
	}
	if !g.connected {
		if err := g.connect(); err != nil {
			g.sayAway(err)
			return pmetric.NewMetrics(), g.passOn(err)
		}
	}
	g.readXIDs()
	g.readAll()
	for _, d := range g.gone {
		g.status(d, metadata.AttributeHwStateFailed)
	}
	g.recordXIDs()
	if g.broken == nvml.SUCCESS && g.asked && !g.heard && len(g.devices) > 0 {
		g.broken = nvml.ERROR_UNKNOWN
	}
	if g.broken != nvml.SUCCESS { // what the devices said means nothing then
		g.disconnect()
		g.errs = scrapererror.ScrapeErrors{}
		err := startError(g.broken)
		g.sayAway(err)
		if err = g.passOn(err); err != nil {
			g.errs.AddPartial(1, err)
		}
	}
	if g.heard && g.broken == nvml.SUCCESS && g.away != "" {
		g.away = ""
		g.logger.Info("NVML is there again.")
	}
	res := g.mb.NewResourceBuilder()
	res.SetHostName(g.host)
	return g.mb.Emit(metadata.WithResource(res.Emit())), g.errs.Combine()
}

// connect starts NVML and finds the devices.
func (g *gpus) connect() error {
	g.looked = g.clock()
	if ret := g.lib.Init(); ret != nvml.SUCCESS {
		return startError(ret)
	}
	g.connected, g.symbols = true, make(map[string]bool)
	count, ret := g.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		g.disconnect()
		return startError(ret)
	}
	g.driver, _ = g.lib.SystemGetDriverVersion() // "" where it does not tell
	g.xids.watch(g.lib)
	matched := make([]bool, len(g.cfg.Devices))
	refused := make(map[*device]nvml.Return)
	for i := range count {
		d, ret := g.identify(i)
		d.wanted = g.wanted(i, d.uuid, d.model, matched)
		switch ret {
		case nvml.SUCCESS:
			g.devices = append(g.devices, d)
			g.xids.register(d)
			g.found(d)
		case nvml.ERROR_NO_PERMISSION: // a GPU that this container was not given
			g.logger.Debug("A GPU may not be read.", zap.String("gpu", d.name))
		default:
			refused[d] = ret
		}
	}
	for _, ret := range refused {
		if len(g.devices) == 0 && !lost(ret) || broken(ret) { // nothing works, rather than that GPU
			g.disconnect()
			return startError(ret)
		}
	}
	for d, ret := range refused {
		g.lose(d, ret)
	}
	if !g.missed {
		g.sayMissing(matched)
	}
	if names := g.names(); !slices.Equal(names, g.told) {
		g.told = names
		g.logger.Info("NVML samples GPUs.", zap.Strings("gpus", names), zap.String("driver", g.driver))
	}
	return nil
}

// startError says what an answer of NVML as a whole means, and what helps.
func startError(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return errors.New("no NVIDIA driver: libnvidia-ml.so.1 was not found (in a container: is the NVIDIA runtime set, with the capability 'utility'?)")
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return errors.New("the driver was replaced while its library was loaded: restart the collector")
	}
	return fmt.Errorf("NVML does not work: %w (nvmlReturn %d)", ret, int(ret))
}

func (g *gpus) disconnect() {
	if !g.connected {
		return
	}
	g.xids.free()
	_ = g.lib.Shutdown() // what it says helps no one: the driver may be away
	g.connected, g.devices = false, nil
}

// sayAway says once that there is no driver, and why.
func (g *gpus) sayAway(err error) {
	if g.away == err.Error() {
		return
	}
	g.away = err.Error()
	g.logger.Warn("nvml is idle until there is a driver; it looks at every scrape. On hosts without a GPU, take 'nvml' out of the pipeline.", zap.Error(err))
}

// passOn is the error for those who do not want to go on without a driver.
func (g *gpus) passOn(err error) error {
	if g.cfg.ErrorMode == errorPropagate {
		return err
	}
	return nil
}

// sayMissing says once which of the devices that are asked for do not exist. MIG devices may come later.
func (g *gpus) sayMissing(matched []bool) {
	mig := slices.ContainsFunc(g.devices, func(d *device) bool { return d.mig })
	for i, yes := range matched {
		if !yes && !mig {
			g.missed = true
			g.logger.Warn("No GPU is what 'devices' asks for.", zap.String("devices", string(g.cfg.Devices[i])), zap.Int("gpus", len(g.devices)))
		}
	}
}

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

func (g *gpus) names() []string {
	names := make([]string, 0, len(g.devices))
	for _, d := range g.devices {
		if d.wanted {
			names = append(names, d.name+" "+d.model+" "+d.uuid)
		}
	}
	return names
}
