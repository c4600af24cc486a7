package trainperfprocessor

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/flops"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/peak"
	"github.com/trainbridge/trainbridge/spans"
)

// Config of the train_perf processor.
type Config struct {
	// VerdictStatus sets the status of a span with a bad verdict to Error, with its sentence: Jaeger and Tempo show and find it. Default true.
	VerdictStatus bool `mapstructure:"verdict_status"`
	// TQ holds the thresholds of the verdicts about TransferQueue functions.
	TQ TQConfig `mapstructure:"tq"`
	// Train says how FLOPs of training steps are counted, and when a step gets a verdict.
	Train TrainConfig `mapstructure:"train"`
	// ZMQ holds the thresholds of the verdicts about ZeroMQ RPCs.
	ZMQ ZMQConfig `mapstructure:"zmq"`
	// NCCL holds the thresholds of the verdicts about collectives.
	NCCL NCCLConfig `mapstructure:"nccl"`
}

// TrainConfig says how FLOPs of training steps are counted, and when a step gets a verdict.
type TrainConfig struct {
	// Model describes what is trained. It comes before a description that a receiver found in the log.
	Model ModelConfig `mapstructure:"model"`
	// Formula counts the FLOPs: megatron, flagscale (FlagScale's perf_monitor) or flagscale_douzi (that of the earlier branch, which leaves SwiGLU out
	// of a mixture of experts). Default megatron.
	Formula string `mapstructure:"formula"`
	// Attention says how much of the attention matrix counts in the formula megatron: causal (half, as Megatron does) or full
	// (as PaLM and torchtitan do). Default causal. The formulas of FlagScale always count all of it.
	Attention string `mapstructure:"attention"`
	// Recompute is what activation recomputation runs again, for HFU: none, selective or full. Default: the model's recompute_granularity.
	Recompute string `mapstructure:"recompute"`
	// Device is the name of the devices, such as "NVIDIA H100 80GB HBM3", to look up their peak. Default: hw.model of the span or its resource, else the
	// model that metrics of nvml, which pass the same component, show on its host.
	Device string `mapstructure:"device"`
	// PeakFlops is the dense peak of one device, {flop}/s, in place of the table's. Default 0: the table's.
	PeakFlops float64 `mapstructure:"peak_flops"`
	// WorldSize is how many devices the job has. Default 0: the model's world_size, else what the log says.
	WorldSize int64 `mapstructure:"world_size"`
	// FlopsDisagreement is how far the log's FLOP/s (or samples) may be from the recomputed ones before a verdict says so. Relative, default 0.05.
	FlopsDisagreement float64 `mapstructure:"flops_disagreement"`
	// MFULow: a step with a lower MFU gets a warning. 0..1, default 0.30; 0: never.
	MFULow float64 `mapstructure:"mfu_low"`
	// Window is how many of the last records of a run a record is compared with. 10..10000, default 100.
	Window int `mapstructure:"window"`
	// MinSamples is how many records it takes before anything is compared. 5..window, default 20.
	MinSamples int `mapstructure:"min_samples"`
	// ThroughputDrop is how far below the median a throughput must be, beside being below P10, to get a warning. 0..1, default 0.20.
	ThroughputDrop float64 `mapstructure:"throughput_drop"`
	// Slowdown is how much longer than in the run's best window a step takes when it counts as slowed down. Default 0.10.
	Slowdown float64 `mapstructure:"slowdown"`
	// LossSpike is how many robust standard deviations (1.4826 MAD) above the median a loss is a spike. Default 10.
	LossSpike float64 `mapstructure:"loss_spike"`
}

// ModelConfig describes the model by the names of Megatron's arguments, by a config.json, or by both.
type ModelConfig struct {
	spans.Model `mapstructure:",squash"`
	// HFConfig is the path of a Hugging Face config.json, read at start. Keys set here come before those of the file.
	HFConfig string `mapstructure:"hf_config"`
}

// The values of 'train::formula' and 'train::attention', which are those of spans.AttrFlopFormula and spans.AttrFlopConvention.
const (
	formulaMegatron  = "megatron"
	formulaFlagScale = "flagscale"
	formulaDouzi     = "flagscale_douzi"
	formulaReported  = "reported"
	attentionCausal  = "causal"
	attentionFull    = "full"
)

func defaultTrainConfig() TrainConfig {
	return TrainConfig{
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
	errTrainWindow    = errors.New("'train::window' must be 10 to 10000, and 'train::min_samples' from 5 up to the window")
	errDrop           = errors.New("'train::throughput_drop' must be above 0 and below 1: write 0.20 for 20 %")
	errSlowdown       = errors.New("'train::slowdown' must be above 0: write 0.10 for 10 %")
	errLossSpike      = errors.New("'train::loss_spike' must be above 0: it is a number of standard deviations, 10 by default")
	errModelNegative  = errors.New("must not be below 0: leave it out where it is not known")
	errModelMissing   = errors.New("is missing: FLOPs cannot be counted without")
	errModelUncounted = errors.New("'train::model' cannot be counted: leave it out, and MFU is that of the log's own FLOP/s")
	errModelRecompute = errors.New("'train::model::recompute_granularity' must be full or selective, or left out")
)

func (c *TrainConfig) validate() []error {
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
	add(!(c.PeakFlops == 0 || c.PeakFlops >= 1e9 && above(c.PeakFlops)), errPeakFlops)
	add(c.WorldSize < 0, errWorldSize)
	add(!above(c.FlopsDisagreement), errDisagreement)
	add(!(c.MFULow >= 0 && c.MFULow < 1), errMFULow)
	add(c.Window < 10 || c.Window > maxWindow || c.MinSamples < 5 || c.MinSamples > c.Window, errTrainWindow)
	add(!(c.ThroughputDrop > 0 && c.ThroughputDrop < 1), errDrop)
	add(!above(c.Slowdown), errSlowdown)
	add(!above(c.LossSpike), errLossSpike)
	return append(errs, c.Model.validate()...)
}

var (
	formulas   = []string{formulaMegatron, formulaFlagScale, formulaDouzi}
	recomputes = []string{flops.RecomputeNone, flops.RecomputeSelective, flops.RecomputeFull}
)

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
	// What a config.json adds is known only at the start.
	if len(errs) == 0 && c.HFConfig == "" && describes(&c.Model) {
		if key := flops.Missing(&c.Model); key != "" {
			errs = append(errs, fmt.Errorf("'train::model::%s' %w", key, errModelMissing))
		} else if reason := flops.Unsupported(&c.Model); reason != "" {
			errs = append(errs, fmt.Errorf("%w (%s)", errModelUncounted, reason))
		}
	}
	return errs
}

// TQConfig holds the thresholds of the verdicts about TransferQueue functions. The defaults are those of verl's
// guide to TQ performance monitoring.
type TQConfig struct {
	// ComputeShareGood: a function that computes for more than this share of its time is good. 0..1, default 0.80.
	ComputeShareGood float64 `mapstructure:"compute_share_good"`
	// OverheadElevated: from this share of time spent in GET and PUT on, a warning. 0..1, default 0.20.
	OverheadElevated float64 `mapstructure:"overhead_elevated"`
	// OverheadHigh: above this share of time spent in GET and PUT, bad. 0..1, default 0.30.
	OverheadHigh float64 `mapstructure:"overhead_high"`
	// ThroughputGood: a client operation faster than this is good. MiB/s (the unit of the log's throughput_mbps), default 500.
	ThroughputGood float64 `mapstructure:"throughput_good_mibps"`
	// ThroughputLow: a client operation slower than this is bad. MiB/s, default 100.
	ThroughputLow float64 `mapstructure:"throughput_low_mibps"`
	// Fluctuation says when GET or PUT times count as unstable.
	Fluctuation FluctuationConfig `mapstructure:"fluctuation"`
}

// FluctuationConfig says when GET or PUT times count as unstable.
type FluctuationConfig struct {
	// Threshold is the coefficient of variation (standard deviation / mean) above which they do. Default 0.5.
	Threshold float64 `mapstructure:"threshold"`
	// Window is how many of the last operations of one function and stage are compared. 2..10000, default 100.
	Window int `mapstructure:"window"`
	// MinSamples is how many operations it takes before anything is said. 2..window, default 20.
	MinSamples int `mapstructure:"min_samples"`
}

// maxWindow keeps the exact sums of window.go within 128 bits.
const maxWindow = 10_000

func defaultTQConfig() TQConfig {
	return TQConfig{
		ComputeShareGood: 0.80, OverheadElevated: 0.20, OverheadHigh: 0.30,
		ThroughputGood: 500, ThroughputLow: 100,
		Fluctuation: FluctuationConfig{Threshold: 0.5, Window: 100, MinSamples: 20},
	}
}

var (
	errComputeShare     = errors.New("'tq::compute_share_good' must be above 0 and at most 1: it is a share of time, write 0.80 for 80 %")
	errOverhead         = errors.New("'tq::overhead_elevated' and 'tq::overhead_high' must be above 0 and at most 1: they are shares of time, write 0.30 for 30 %")
	errOverheadOrder    = errors.New("'tq::overhead_elevated' must not be above 'tq::overhead_high': the warning comes before the bad verdict")
	errThroughput       = errors.New("'tq::throughput_low_mibps' and 'tq::throughput_good_mibps' must be above 0 (MiB/s), and the low one not above the good one")
	errFluctuation      = errors.New("'tq::fluctuation::threshold' must be above 0: it is standard deviation over mean, 0.5 by default")
	errFluctuationCount = errors.New("'tq::fluctuation::window' must be 2 to 10000, and 'tq::fluctuation::min_samples' from 2 up to the window")
)

// ZMQConfig holds the thresholds of the verdicts about ZeroMQ RPCs. The defaults are those of TSQP's guide to ZeroMQ performance monitoring.
type ZMQConfig struct {
	// SerializeHigh: a group of calls that serializes for more than this share of their time gets a warning. 0..1, default 0.30; 0: never.
	SerializeHigh float64 `mapstructure:"serialize_high"`
	// TransportHigh: a group of calls that sends and receives for more than this share of their time gets a warning; the server's compute is
	// left out where the log has it. 0..1, default 0.30; 0: never.
	TransportHigh float64 `mapstructure:"transport_high"`
	// CallsHigh: a pass of more calls gets a warning. Default 50; 0: never.
	CallsHigh int `mapstructure:"calls_high"`
	// ExpectedTransport: with ipc, calls over TCP get a warning. ipc, tcp, or empty for either. Default ipc.
	ExpectedTransport string `mapstructure:"expected_transport"`
}

// The values of 'zmq::expected_transport', beside none.
const (
	expectIPC = "ipc"
	expectTCP = "tcp"
)

func defaultZMQConfig() ZMQConfig {
	return ZMQConfig{SerializeHigh: 0.30, TransportHigh: 0.30, CallsHigh: 50, ExpectedTransport: expectIPC}
}

var (
	errZMQShare     = errors.New("'zmq::serialize_high' and 'zmq::transport_high' must be from 0 (never) to 1: they are shares of time, write 0.30 for 30 %")
	errZMQCalls     = errors.New("'zmq::calls_high' must not be below 0: it is a number of calls per pass, 0 for never")
	errZMQTransport = errors.New("'zmq::expected_transport' must be ipc or tcp, or empty for either")
)

func (c *ZMQConfig) validate() []error {
	var errs []error
	share := func(x float64) bool { return x >= 0 && x <= 1 } // NaN is none
	if !share(c.SerializeHigh) || !share(c.TransportHigh) {
		errs = append(errs, errZMQShare)
	}
	if c.CallsHigh < 0 {
		errs = append(errs, errZMQCalls)
	}
	if c.ExpectedTransport != expectIPC && c.ExpectedTransport != expectTCP && c.ExpectedTransport != "" {
		errs = append(errs, errZMQTransport)
	}
	return errs
}

// NCCLConfig holds the thresholds of the verdicts about collectives. Those that a window is needed for are the nccl receiver's.
type NCCLConfig struct {
	// LateTransfers: a collective whose last rank came later than the transfer took, times this, gets a warning. Default 1; 0: never.
	LateTransfers float64 `mapstructure:"late_transfers"`
	// LateMin: no rank is late that came at most this long after the first. Default 1ms.
	LateMin time.Duration `mapstructure:"late_min"`
	// BandwidthDisagreement is how far the log's bandwidth may be from the recomputed one before a verdict says so. Relative, default 0.05; 0: never.
	BandwidthDisagreement float64 `mapstructure:"bandwidth_disagreement"`
}

func defaultNCCLConfig() NCCLConfig {
	return NCCLConfig{LateTransfers: 1, LateMin: time.Millisecond, BandwidthDisagreement: 0.05}
}

var (
	errNCCLTransfers    = errors.New("'nccl::late_transfers' must be 0 (never) or above: it is relative to the time of the transfer, 1 by default")
	errNCCLLateMin      = errors.New("'nccl::late_min' must not be below 0: it is a duration, 1ms by default")
	errNCCLDisagreement = errors.New("'nccl::bandwidth_disagreement' must be 0 (never) or above: it is relative, write 0.05 for 5 %")
)

func (c *NCCLConfig) validate() []error {
	var errs []error
	if !(c.LateTransfers >= 0 && isFinite(c.LateTransfers)) {
		errs = append(errs, errNCCLTransfers)
	}
	if c.LateMin < 0 {
		errs = append(errs, errNCCLLateMin)
	}
	if !(c.BandwidthDisagreement >= 0 && isFinite(c.BandwidthDisagreement)) {
		errs = append(errs, errNCCLDisagreement)
	}
	return errs
}

var _ component.Config = (*Config)(nil)

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate returns every error of the config, joined.
func (c *Config) Validate() error {
	var errs []error
	t := &c.TQ
	// Written so that NaN fails too.
	share := func(x float64) bool { return x > 0 && x <= 1 }
	if !share(t.ComputeShareGood) {
		errs = append(errs, errComputeShare)
	}
	if !share(t.OverheadElevated) || !share(t.OverheadHigh) {
		errs = append(errs, errOverhead)
	} else if t.OverheadElevated > t.OverheadHigh {
		errs = append(errs, errOverheadOrder)
	}
	if !(t.ThroughputLow > 0 && t.ThroughputGood >= t.ThroughputLow) {
		errs = append(errs, errThroughput)
	}
	f := &t.Fluctuation
	if !(f.Threshold > 0) {
		errs = append(errs, errFluctuation)
	}
	if f.Window < 2 || f.Window > maxWindow || f.MinSamples < 2 || f.MinSamples > f.Window {
		errs = append(errs, errFluctuationCount)
	}
	errs = append(errs, c.Train.validate()...)
	errs = append(errs, c.ZMQ.validate()...)
	return errors.Join(append(errs, c.NCCL.validate()...)...)
}
