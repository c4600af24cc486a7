//go:build !linux || !cgo

package nvmlreceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/scraper"
)

var errBuild = errors.New("this collector was built without cgo or not for Linux, so it cannot load NVML: build it with CGO_ENABLED=1 on Linux " +
	"(ocb: dist::cgo_enabled), or take 'nvml' out of the pipeline")

func newScraper(cfg *Config, set receiver.Settings) (scraper.Metrics, error) {
	start := func(context.Context, component.Host) error {
		if cfg.ErrorMode == errorPropagate {
			return errBuild
		}
		set.Logger.Info("nvml is idle: " + errBuild.Error() + ".")
		return nil
	}
	return scraper.NewMetrics(func(context.Context) (pmetric.Metrics, error) { return pmetric.NewMetrics(), nil }, scraper.WithStart(start))
}
