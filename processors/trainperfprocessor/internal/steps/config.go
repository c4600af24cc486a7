package steps

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/flops"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/peak"
	"github.com/trainbridge/trainbridge/spans"
)

// Config says how FLOPs of training steps are counted, and when a step gets a verdict.
type Config struct {
	// Model describes the trained model. It has priority over a description that a receiver found in the log.
	Model ModelConfig `mapstructure:"model"`
	// Formula is the way to count FLOPs: megatron, flagscale (FlagScale's perf_monitor) or flagscale_douzi (the earlier branch, without SwiGLU in a mixture of
	// experts). Default megatron.
	Formula string `mapstructure:"formula"`
	// Attention is the counted part of the attention matrix in the formula megatron: causal (half, as in Megatron) or full (as in PaLM and torchtitan). Default
	// causal. The formulas of FlagScale always count the full matrix.
	Attention string `mapstructure:"attention"`
	// Recompute is the activation recomputation, for HFU: none, selective or full. Default: the model's recompute_granularity.
	Recompute string `mapstructure:"recompute"`
	// Device is the name of the devices, such as "NVIDIA H100 80GB HBM3", to look up their peak. Default: hw.model of the span or its resource, else the model
	// in nvml metrics of the host, seen by the same component.
	Device string `mapstructure:"device"`
	// PeakFlops is the dense peak of one device, {flop}/s, instead of the table's. Default 0: the table's.
	PeakFlops float64 `mapstructure:"peak_flops"`
	// WorldSize is the number of devices of the job. Default 0: the model's world_size, else the log's.
	WorldSize int64 `mapstructure:"world_size"`
	// FlopsDisagreement is the relative difference between logged and recomputed FLOP/s (or samples) above which a verdict is given. Default 0.05.
	FlopsDisagreement float64 `mapstructure:"flops_disagreement"`
	// MFULow: a step with a lower MFU gets a warning. 0..1, default 0.30; 0: never.
	MFULow float64 `mapstructure:"mfu_low"`
	// Window is how many of the last records of a run a record is compared with. 10..10000, default 100.
	Window int `mapstructure:"window"`
	// MinSamples is the least number of records for a comparison. 5..window, default 20.
	MinSamples int `mapstructure:"min_samples"`
	// ThroughputDrop is how far below the median a throughput must be, beside being below P10, to get a warning. 0..1, default 0.20.
	ThroughputDrop float64 `mapstructure:"throughput_drop"`
	// Slowdown is the relative increase of the step time over the run's best window above which a step counts as slowed down. Default 0.10.
	Slowdown float64 `mapstructure:"slowdown"`
	// LossSpike is how many robust standard deviations (1.4826 MAD) above the median a loss is a spike. Default 10.
	LossSpike float64 `mapstructure:"loss_spike"`
}

// maxWindow bounds the windows of a run.
const maxWindow = 10_000

// ModelConfig describes the model by the names of Megatron's arguments, by a config.json, or by both.
type ModelConfig struct {
	spans.Model `mapstructure:",squash"`
	// HFConfig is the path of a Hugging Face config.json, read at start. Keys set here come before keys of the file.
	HFConfig string `mapstructure:"hf_config"`
}

// The values of 'train::formula' and 'train::attention', also the values of spans.AttrFlopFormula and spans.AttrFlopConvention.
const (
	formulaMegatron  = "megatron"
	formulaFlagScale = "flagscale"
	formulaDouzi     = "flagscale_douzi"
	formulaReported  = "reported"
	attentionCausal  = "causal"
	attentionFull    = "full"
)

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Formula: formulaMegatron, Attention: attentionCausal, FlopsDisagreement: 0.05, MFULow: 0.30,
		Window: 100, MinSamples: 20, ThroughputDrop: 0.20, Slowdown: 0.10, LossSpike: 10,
	}
}

var (
	errFormula        = errors.New("'train::formula' must be megatron, flagscale or flagscale_douzi")
	errAttention      = errors.New("'train::attention' must be causal or full")
	errRecompute      = errors.New("'train::recompute' must be none, selective or full, or left out")
	errDevice         = errors.New("is not in the table of peaks: write a name such as \"H100 SXM\", or set 'train::peak_flops'")
	errPeakFlops      = errors.New("'train::peak_flops' must be 0 (look the device up) or the dense peak of one device in FLOP/s, such as 989e12")
	errWorldSize      = errors.New("'train::world_size' must be 0 (not known) or the number of devices")
	errDisagreement   = errors.New("'train::flops_disagreement' must be above 0: it is relative, write 0.05 for 5 %")
	errMFULow         = errors.New("'train::mfu_low' must be from 0 to below 1: it is a share of the peak, write 0.30 for 30 %")
	errWindow         = errors.New("'train::window' must be 10 to 10000, and 'train::min_samples' from 5 up to the window")
	errDrop           = errors.New("'train::throughput_drop' must be above 0 and below 1: write 0.20 for 20 %")
	errSlowdown       = errors.New("'train::slowdown' must be above 0: write 0.10 for 10 %")
	errLossSpike      = errors.New("'train::loss_spike' must be above 0: it is a number of standard deviations, 10 by default")
	errModelNegative  = errors.New("must not be below 0: leave it out where it is not known")
	errModelMissing   = errors.New("is missing: FLOPs cannot be counted without")
	errModelUncounted = errors.New("'train::model' cannot be counted: leave it out, and MFU is that of the log's own FLOP/s")
	errModelRecompute = errors.New("'train::model::recompute_granularity' must be full or selective, or left out")
)

// Errors returns all errors of the config.
func (c *Config) Errors() []error {
	var errs []error
	add := func(bad bool, err error) {
		if bad {
			errs = append(errs, err)
		}
	}
	above := func(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
	add(!slices.Contains(formulas, c.Formula), errFormula)
	add(c.Attention != attentionCausal && c.Attention != attentionFull, errAttention)
	add(c.Recompute != "" && !slices.Contains(recomputes, c.Recompute), errRecompute)
	if c.Device != "" && c.PeakFlops == 0 {
		_, _, known := peak.Of(c.Device)
		add(!known, fmt.Errorf("'train::device': %q %w", c.Device, errDevice))
	}
	add(!(c.PeakFlops == 0 || c.PeakFlops >= 1e9 && above(c.PeakFlops)), errPeakFlops) // a number below 1e9 is in TFLOP/s
	add(c.WorldSize < 0, errWorldSize)
	add(!above(c.FlopsDisagreement), errDisagreement)
	add(!(c.MFULow >= 0 && c.MFULow < 1), errMFULow)
	add(c.Window < 10 || c.Window > maxWindow || c.MinSamples < 5 || c.MinSamples > c.Window, errWindow)
	add(!(c.ThroughputDrop > 0 && c.ThroughputDrop < 1), errDrop)
	add(!above(c.Slowdown), errSlowdown)
	add(!above(c.LossSpike), errLossSpike)
	return append(errs, c.Model.validate()...)
}

var (
	formulas   = []string{formulaMegatron, formulaFlagScale, formulaDouzi}
	recomputes = []string{flops.RecomputeNone, flops.RecomputeSelective, flops.RecomputeFull}
)

// validate returns the errors of the model's keys: negative numbers, an unknown recomputation, or a description that is incomplete or cannot be counted.
func (c *ModelConfig) validate() []error {
	var errs []error
	v := reflect.ValueOf(c.Model)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Int64 && f.Int() < 0 {
			errs = append(errs, fmt.Errorf("'train::model::%s' %w", v.Type().Field(i).Tag.Get("mapstructure"), errModelNegative))
		}
	}
	if r := c.Recompute; r != "" && r != flops.RecomputeSelective && r != flops.RecomputeFull {
		errs = append(errs, errModelRecompute)
	}
	// The keys of a config.json are known only at the start.
	if len(errs) == 0 && c.HFConfig == "" && hasArchitecture(&c.Model) {
		if key := flops.Missing(&c.Model); key != "" {
			errs = append(errs, fmt.Errorf("'train::model::%s' %w", key, errModelMissing))
		} else if reason := flops.Unsupported(&c.Model); reason != "" {
			errs = append(errs, fmt.Errorf("%w (%s)", errModelUncounted, reason))
		}
	}
	return errs
}
