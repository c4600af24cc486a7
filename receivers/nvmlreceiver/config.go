package nvmlreceiver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver/internal/metadata"
)

// Config of the nvml receiver.
type Config struct {
	// ControllerConfig has collection_interval (default 10s), initial_delay (1s) and timeout (5s): how long a scrape waits for a driver that does not answer.
	scraperhelper.ControllerConfig `mapstructure:",squash"`
	// MetricsBuilderConfig switches metrics, their attributes and the resource's attributes on and off.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
	// Devices to sample: each an index, the beginning of a UUID (GPU-…, MIG-…), or a part of the model's name (H100). Default: all.
	Devices []Device `mapstructure:"devices"`
	// ErrorMode is the behaviour without a driver: ignore (one line, then idle until a driver is loaded) or propagate (the collector does not start). Default
	// ignore.
	ErrorMode string `mapstructure:"error_mode"`
}

// The values of 'error_mode'.
const (
	errorIgnore    = "ignore"
	errorPropagate = "propagate"
)

var (
	errErrorMode = errors.New("'error_mode' must be ignore (idle without a driver) or propagate (do not start without one)")
	errDevice    = errors.New("is empty: write an index (0), the beginning of a UUID (GPU-8f3c…) or a part of the model's name (H100)")
)

// Unmarshal lets an index in 'devices' be a number (devices: [0]), by making it a text, and refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if list, ok := conf.Get("devices").([]any); ok {
		texts := make([]any, len(list))
		for i, d := range list {
			texts[i] = d
			if n, ok := d.(int); ok {
				texts[i] = strconv.Itoa(n)
			}
		}
		if err := conf.Merge(confmap.NewFromStringMap(map[string]any{"devices": texts})); err != nil {
			return err
		}
	}
	return duration.Unmarshal(conf, c)
}

// Validate names the YAML key of each error.
func (c *Config) Validate() error {
	var errs []error
	if c.ErrorMode != errorIgnore && c.ErrorMode != errorPropagate {
		errs = append(errs, fmt.Errorf("%w, not %q", errErrorMode, c.ErrorMode))
	}
	for i, d := range c.Devices {
		if strings.TrimSpace(string(d)) == "" {
			errs = append(errs, fmt.Errorf("'devices::%d' %w", i, errDevice))
		}
	}
	return errors.Join(errs...)
}

// Device selects GPUs, see Config.
type Device string

// matches says whether a GPU or MIG device is meant, in capital or small letters. index is the index of the GPU. A number alone is an index, never a part of a
// model.
func (d Device) matches(index int, uuid, model string) bool {
	text := strings.ToLower(strings.TrimSpace(string(d)))
	if n, err := strconv.Atoi(text); err == nil {
		return n == index
	}
	if strings.HasPrefix(text, "gpu-") || strings.HasPrefix(text, "mig-") {
		return strings.HasPrefix(strings.ToLower(uuid), text)
	}
	return strings.Contains(strings.ToLower(model), text)
}
