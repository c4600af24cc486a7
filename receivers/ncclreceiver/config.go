package ncclreceiver

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// Config is the configuration of nccl. Operations to AnomalyThreshold have the meaning of VCCL's NCCL_TELEMETRY_… variables (mission seed 003).
type Config struct {
	tail.Config               `mapstructure:",squash"`
	spans.RunConfig           `mapstructure:",squash"`
	clock.ZoneConfig          `mapstructure:",squash"`
	filereceiver.SeriesConfig `mapstructure:",squash"`
	// Redact says what of the texts is not passed on.
	Redact redact.Config `mapstructure:"redact"`
	// Format of the files: auto (default: by their first line), nccl_inspector, nccl_profiler, flight_recorder, vccl_json, vccl_csv, vccl_flow, vccl_packed,
	// vccl_mean or vccl_text.
	Format string `mapstructure:"format"`
	// Operations lists those to keep, such as [allreduce, broadcast]. Default: all.
	Operations []string `mapstructure:"operations"`
	// Ranks lists those to keep, as the log numbers them. Default: all.
	Ranks []int32 `mapstructure:"ranks"`
	// MinSize and MaxSize bound the message sizes to keep, in bytes. 0 (default): no bound.
	MinSize int64 `mapstructure:"min_size"`
	MaxSize int64 `mapstructure:"max_size"`
	// SampleRate is the share of collectives to send, 0..1, all ranks of one or none. Those with errors, retries or anything unusual are always sent. Default 1.
	SampleRate float64 `mapstructure:"sample_rate"`
	// WindowSize is how many collectives of a communicator scores and baselines look back on. 10..512, default 50.
	WindowSize int `mapstructure:"window_size"`
	// AnomalyDetection looks for slow ranks and low bandwidth. Default true.
	AnomalyDetection bool `mapstructure:"anomaly_detection"`
	// AnomalyThreshold is how many (robust) standard deviations below its baseline a bandwidth is an anomaly. Default 3.5.
	AnomalyThreshold float64 `mapstructure:"anomaly_threshold"`
	// HangTimeout is how long a collective waits for the records of its other ranks before it leaves without them. Default 5m.
	HangTimeout time.Duration `mapstructure:"hang_timeout"`
	// CorrectClock corrects the times of hosts by the offsets that were estimated. Default false: they are attributes.
	CorrectClock bool `mapstructure:"correct_clock"`
	// MaxStateBytes bounds what collectives that wait for their ranks take; beyond it the oldest leave as they are. Default 64 MiB.
	MaxStateBytes int64 `mapstructure:"max_state_bytes"`
}

// The values of Config.Format.
const (
	formatAuto      = "auto"
	formatInspector = "nccl_inspector"
	formatProfiler  = "nccl_profiler"
	formatRecorder  = "flight_recorder"
	formatJSON      = "vccl_json"
	formatCSV       = "vccl_csv"
	formatFlow      = "vccl_flow"
	formatPacked    = "vccl_packed"
	formatMean      = "vccl_mean"
	formatText      = "vccl_text"
)

var formats = []string{
	formatAuto, formatInspector, formatProfiler, formatRecorder, formatJSON, formatCSV, formatFlow, formatPacked, formatMean, formatText,
}

const (
	minWindow = 10
	maxWindow = 512
	minState  = 1 << 20
)

var (
	errFormat        = fmt.Errorf("'format' must be one of %s", strings.Join(formats, ", "))
	errRanks         = fmt.Errorf("'ranks' must be 0 to %d, such as [0, 1, 2, 3]", maxRank)
	errSize          = errors.New("'min_size' and 'max_size' must not be negative, and 'max_size' not below 'min_size': leave one out for no bound")
	errSampleRate    = errors.New("'sample_rate' must be 0 to 1, such as 0.1")
	errWindow        = fmt.Errorf("'window_size' must be %d to %d, 50 by default", minWindow, maxWindow)
	errThreshold     = errors.New("'anomaly_threshold' must be greater than zero: standard deviations, 3.5 by default")
	errHangTimeout   = errors.New("'hang_timeout' must be greater than zero, such as 5m")
	errMaxStateBytes = fmt.Errorf("'max_state_bytes' must be at least %d", minState)
	errOperation     = errors.New("'operations' has an empty name: list operations such as [allreduce, broadcast]")
)

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate says what is wrong, naming the keys.
func (c *Config) Validate() error {
	_, err := c.Location()
	errs := []error{c.Check(), err}
	check := func(ok bool, err error) {
		if !ok {
			errs = append(errs, err)
		}
	}
	check(slices.Contains(formats, c.Format), errFormat)
	check(!slices.ContainsFunc(c.Ranks, func(r int32) bool { return r < 0 || r > maxRank }), errRanks)
	check(c.MinSize >= 0 && c.MaxSize >= 0 && (c.MaxSize == 0 || c.MaxSize >= c.MinSize), errSize)
	check(c.SampleRate >= 0 && c.SampleRate <= 1, errSampleRate)
	check(c.WindowSize >= minWindow && c.WindowSize <= maxWindow, errWindow)
	check(c.AnomalyThreshold > 0, errThreshold)
	check(c.HangTimeout > 0, errHangTimeout)
	check(c.MaxStateBytes >= minState, errMaxStateBytes)
	check(!slices.ContainsFunc(c.Operations, func(name string) bool { return op.Canonical(name) == "" }), errOperation)
	return errors.Join(errs...)
}

// recorderPrefix begins the names of the files that PyTorch's Flight Recorder writes (TORCH_NCCL_DEBUG_INFO_TEMP_FILE).
const recorderPrefix = "nccl_trace_rank_"

// withDocuments adds to the documents what the include globs reach of Flight Recorder dumps: such a file is one object, written whole.
func (c *Config) withDocuments() tail.Config {
	out := c.Config
	out.Document = slices.Clone(c.Document)
	if c.Format == formatRecorder {
		out.Document = append(out.Document, c.Include...)
		return out
	}
	for _, g := range slices.Concat(c.Include, c.IncludeByContent) {
		dir, last := path.Split(filepath.ToSlash(filepath.Clean(g)))
		doc := dir + "*" + recorderPrefix + "*"
		switch reached, err := doublestar.Match(last, recorderPrefix+"0"); {
		case strings.Contains(last, recorderPrefix):
			doc = g
		case err != nil:
			continue
		case last == "**":
			doc = g + "/*" + recorderPrefix + "*"
		case !reached:
			if json, _ := doublestar.Match(last, recorderPrefix+"0.json"); !json {
				continue
			}
			doc = dir + "*" + recorderPrefix + "*.json"
		}
		if doublestar.ValidatePattern(doc) { // a glob may have a slash in braces
			out.Document = append(out.Document, doc)
		}
	}
	return out
}
