package trainperfprocessor

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/flops"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/hfconfig"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/peak"
	"github.com/trainbridge/trainbridge/spans"
)

// sourcePerfMonitor is the value of spans.AttrSource of FlagScale's perf_monitor.
const sourcePerfMonitor = "perf_monitor"

// stepOutcome says what could be said about a training step.
type stepOutcome uint8

const (
	stepMeasured stepOutcome = iota
	stepReported
	stepNoModel
	stepNoTime
	stepAlreadyMeasured
	stepUnsupported
	stepOutcomes
)

var stepOptions = func() (options [stepOutcomes]metric.AddOption) {
	for i, name := range [stepOutcomes]string{"measured", "reported", "no_model", "no_time", "already_measured", "unsupported"} {
		options[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", name)))
	}
	return options
}()

// train counts the FLOPs of training steps and judges them.
type train struct {
	cfg      TrainConfig
	logger   *zap.Logger
	series   *allSeries
	episodes *allEpisodes
	slow     *slowRanks
	// devices are shared with the metrics instance of the component.
	devices *devices

	mu     sync.Mutex
	peaks  *simplelru.LRU[string, float64] // {flop}/s by device name; 0: not known, and said so
	warned map[string]bool                 // why a model cannot be counted: at most maxWarned
}

func newTrain(cfg TrainConfig, logger *zap.Logger) *train {
	return &train{cfg: cfg, logger: logger, series: newAllSeries(), episodes: newAllEpisodes(), slow: newSlowRanks(), devices: newDevices(), peaks: newLRU[string, float64](), warned: map[string]bool{}}
}

var errHFConfig = errors.New("'train::model::hf_config' cannot be used: give the path of a Hugging Face config.json, or describe the model under 'train::model'")

// maxHFConfig bounds what is read of a config.json, By.
const maxHFConfig = 1 << 20

// start completes the model of the config with its config.json.
func (t *train) start() error {
	m := &t.cfg.Model
	if m.HFConfig != "" {
		file, err := os.Open(m.HFConfig)
		if err != nil {
			return fmt.Errorf("%w: %w", errHFConfig, err)
		}
		defer file.Close()
		raw, err := io.ReadAll(io.LimitReader(file, maxHFConfig))
		if err != nil {
			return fmt.Errorf("%w: %w", errHFConfig, err)
		}
		read, err := hfconfig.Parse(raw)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errHFConfig, m.HFConfig, err)
		}
		to := reflect.ValueOf(&read).Elem()
		for i := range to.NumField() {
			if f := reflect.ValueOf(m.Model).Field(i); to.Field(i).CanSet() && !f.IsZero() {
				to.Field(i).Set(f)
			}
		}
		m.Model = read
		if key := flops.Missing(&m.Model); key != "" {
			return fmt.Errorf("%w: 'train::model::%s' %w", errHFConfig, key, errModelMissing)
		}
		if reason := flops.Unsupported(&m.Model); reason != "" {
			return fmt.Errorf("%w: %w (%s)", errHFConfig, errModelUncounted, reason)
		}
	}
	switch m.Type {
	case "llama", "qwen", "mixtral", "deepseek":
		m.SwiGLU = true // by their architecture
	}
	return nil
}

// stepResource is what the steps of one resource share.
type stepResource struct {
	device      string
	host        string
	models      *models // of the GPUs that are known
	detected    string  // that of the host
	rank, world int64   // 0: not known (rank 0 is the same as none: nothing is told apart by it)
	model       spans.Model
	known       bool   // the model is
	unsupported string // what of the model cannot be counted
	sample      flops.Count
	other       flops.Count // by Megatron's formula with the other convention

	// The answers that the last step got, and what it asked.
	peak, dpsWorld float64
	peakDevice     string
	peakKnown      bool
	dps            []float64
}

// process handles the training steps of one resource.
func (t *train) process(attrs pcommon.Map, s *scratch) {
	res := t.resource(attrs)
	t.series.mu.Lock()
	defer t.series.mu.Unlock()
	t.episodes.mu.Lock()
	defer t.episodes.mu.Unlock()
	for _, span := range s.stepSpans {
		s.steps[t.step(span, &res, s)]++
	}
}

func (t *train) resource(attrs pcommon.Map) stepResource {
	res := stepResource{device: spans.AttrText(attrs, spans.AttrDeviceModel), dpsWorld: -1}
	if t.cfg.Device == "" && res.device == "" {
		res.host, res.models = spans.AttrText(attrs, spans.AttrHostName), t.devices.known.Load()
		res.detected = res.models.of(res.host)
	}
	if v, ok := attrs.Get(spans.AttrRank); ok {
		res.rank, _ = integerOf(v)
	}
	if v, ok := attrs.Get(spans.AttrWorldSize); ok {
		res.world, _ = integerOf(v)
	}
	config := &t.cfg.Model.Model
	found, ok := spans.ModelOf(attrs)
	res.model = found
	if describes(config) {
		res.model, ok = *config, true
	}
	fillRun(&res.model, config, &found)
	if !ok {
		return res // facts of the run at most
	}
	m := &res.model
	if key := flops.Missing(m); key != "" {
		t.warnOnce(key, "No FLOPs are counted: the description of the model lacks a key. Set it under 'train::model'.", zap.String("key", key))
		return res
	}
	if t.cfg.Formula == formulaMegatron {
		res.unsupported = flops.Unsupported(m)
	}
	if res.unsupported != "" {
		t.warnOnce(res.unsupported, "No FLOPs are counted: the model has what Megatron's formula leaves out. What the log reports is kept.", zap.String("unsupported", res.unsupported))
		return res
	}
	switch t.cfg.Formula {
	case formulaFlagScale:
		res.sample = flops.FlagScale(m, flops.Merged)
		res.other = res.sample
	case formulaDouzi:
		res.sample = flops.FlagScale(m, flops.Douzi)
		res.other = res.sample
	default:
		causal := t.cfg.Attention == attentionCausal
		res.sample, res.other = flops.Megatron(m, causal), flops.Megatron(m, !causal)
	}
	res.known = positive(res.sample.Model())
	return res
}

// maxWarned bounds how many different reasons are remembered to have been said.
const maxWarned = 100

func (t *train) warnOnce(reason, text string, field zap.Field) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.warned[reason] && len(t.warned) < maxWarned {
		t.warned[reason] = true
		t.logger.Warn(text, field)
	}
}

// step measures and judges one step.
func (t *train) step(span ptrace.Span, res *stepResource, s *scratch) stepOutcome {
	w := &s.step
	w.read(span)
	w.res, w.made = res, made{}
	if w.done {
		return stepAlreadyMeasured
	}
	s.verdicts, s.added = s.verdicts[:0], s.added[:0]
	t.beginRecord(w, s)
	w.world = t.worldSize(w)
	w.batch = w.batchSize
	if !positive(w.batch) && res.model.GlobalBatchSize > 0 {
		w.batch = float64(res.model.GlobalBatchSize)
	}
	w.seq = float64(max(res.model.SeqLength, 0))
	w.amounts(&s.added)
	outcome := t.flops(w, &s.added)
	w.impossible = w.mfu > w.mfuLimit()
	if w.source == sourcePerfMonitor {
		t.judgePerfMonitor(w, s)
	} else {
		t.judgeReport(w, s)
	}
	t.judge(w, s)
	t.judgeRank(span, s)
	others := 1 // the summary
	if len(s.verdicts) > 0 {
		others += 2
	}
	s.added.put(span.Attributes(), others)
	w.summarize(span, s)
	s.put(span)
	return outcome
}

// work is one step with what was found out about it so far. Numbers that are not known are 0 or NaN.
type work struct {
	stepSpan
	res   *stepResource
	world float64
	batch float64 // samples per step
	seq   float64 // tokens per sample
	made
}

// made is what is recomputed of a step.
type made struct {
	device       float64 // {flop}/s
	total        float64
	disagreement float64
	mfu, peak    float64
	formula      string
	impossible   bool   // the MFU is
	shared       bool   // device is total / world
	deviceName   string // what the peak is of; "": of the config
	detected     string // the model of the device, where nothing but metrics of GPUs says it
}

// worldSize is the number of devices, 0 when nothing tells.
func (t *train) worldSize(w *work) float64 {
	for _, n := range [...]int64{t.cfg.WorldSize, w.res.model.WorldSize, w.worldLogged, w.res.world} {
		if n > 0 {
			return float64(n)
		}
	}
	// Both FLOP/s of the log, of all devices and of one. perf_monitor rounds to 0.01 TFLOP/s: the quotient has to be a whole number within that,
	// and no other.
	const rounding = 0.005e12
	n := math.Round(w.flopReported / w.deviceReported)
	if n >= 1 && math.Abs(w.flopReported-n*w.deviceReported) <= (n+1.001)*rounding && (n+1)*rounding < w.deviceReported/2 {
		return n
	}
	return 0
}

// amounts adds the samples and tokens that the span covers, and the throughputs that the log left out.
func (w *work) amounts(add *additions) {
	seconds := float64(w.end-w.start) / 1e9
	samples := w.batch * w.covered
	switch {
	case samples > 0:
		add.whole(spans.AttrSamples, samples)
	case w.sampleThroughput > 0 && seconds > 0 && w.source != sourcePerfMonitor:
		samples = w.sampleThroughput * seconds
		add.finite(spans.AttrSamples, samples)
	}
	tokens := w.tokenThroughput
	if !(tokens > 0) {
		tokens = w.deviceTokenThroughput * w.world
	}
	switch {
	case w.tokens > 0: // the log counts them
		if !(tokens > 0) {
			tokens = w.tokens / (w.seconds * w.covered)
		}
	case w.batch > 0 && w.seq > 0:
		add.whole(spans.AttrTokens, w.batch*w.seq*w.covered)
	case tokens > 0 && seconds > 0 && w.source != sourcePerfMonitor:
		add.finite(spans.AttrTokens, tokens*seconds)
	case samples > 0 && w.seq > 0:
		add.finite(spans.AttrTokens, samples*w.seq)
	}
	if math.IsNaN(w.sampleThroughput) && w.batch > 0 && w.seconds > 0 {
		add.finite(spans.AttrSampleThroughput, w.batch/w.seconds)
	}
	if math.IsNaN(w.tokenThroughput) {
		switch {
		case tokens > 0:
			add.finite(spans.AttrTokenThroughput, tokens)
		case w.batch > 0 && w.seq > 0 && w.seconds > 0:
			add.finite(spans.AttrTokenThroughput, w.batch*w.seq/w.seconds)
		}
	}
}

// flops adds FLOPs, FLOP/s and utilization.
func (t *train) flops(w *work, add *additions) stepOutcome {
	if reason := w.res.unsupported; reason != "" {
		add.text(spans.AttrFlopUnsupported, reason)
		t.reported(w, add)
		return stepUnsupported
	}
	if !w.res.known {
		return t.reported(w, add)
	}
	sample := w.res.sample.Model()
	if w.batch > 0 {
		add.finite(spans.AttrFlopCount, sample*w.batch)
		w.total = sample * w.batch / w.seconds
	}
	// A rate will do where the log has no time or batch, but for perf_monitor's, which leaves out the data-parallel size.
	if !positive(w.total) && w.source != sourcePerfMonitor {
		switch {
		case w.sampleThroughput > 0:
			w.total = sample * w.sampleThroughput
		case w.tokenThroughput > 0:
			w.total = sample / w.seq * w.tokenThroughput
		case w.deviceTokenThroughput > 0:
			w.device = sample / w.seq * w.deviceTokenThroughput
			w.total = w.device * w.world
		}
	}
	if !positive(w.device) && w.world > 0 {
		w.device, w.shared = w.total/w.world, true
	}
	if !positive(w.total) && !positive(w.device) && !(w.batch > 0) {
		return stepNoTime
	}
	w.formula = t.cfg.Formula
	add.text(spans.AttrFlopFormula, w.formula)
	convention := t.cfg.Attention
	if w.formula != formulaMegatron {
		convention = attentionFull
	}
	add.text(spans.AttrFlopConvention, convention)
	recompute := t.cfg.Recompute
	if recompute == "" {
		recompute = w.res.model.Recompute
	}
	if recompute != "" {
		add.text(spans.AttrFlopRecompute, recompute)
	}
	if positive(w.total) {
		add.finite(spans.AttrFlopThroughput, w.total)
	}
	if !positive(w.device) {
		w.disagree(w.total, w.flopReported, add)
		if positive(w.total) {
			return stepMeasured
		}
		return stepNoTime
	}
	add.finite(spans.AttrDeviceFlopThroughput, w.device)
	if r := w.deviceReported; r > 0 {
		w.disagree(w.device, r, add)
	} else {
		w.disagree(w.total, w.flopReported, add)
	}
	if w.peak = t.peakOf(w); w.peak > 0 {
		w.mfu = w.device / w.peak
		w.addPeak(add)
		if recompute != "" {
			add.finite(spans.AttrHFU, w.mfu*w.res.sample.Hardware(recompute)/sample)
		}
	}
	return stepMeasured
}

func (w *work) disagree(recomputed, reported float64, add *additions) {
	if positive(recomputed) && reported >= 0 {
		w.disagreement = math.Abs(recomputed-reported) / recomputed
		add.finite(spans.AttrFlopDisagreement, w.disagreement)
	}
}

// reported makes an MFU of the log's own FLOP/s, where no model is known.
func (t *train) reported(w *work, add *additions) stepOutcome {
	r := w.deviceReported
	if !(r > 0) && w.world > 0 {
		r, w.shared = w.flopReported/w.world, true
	}
	if !(r > 0) {
		return stepNoModel
	}
	if w.peak = t.peakOf(w); !(w.peak > 0) {
		return stepNoModel
	}
	w.mfu, w.formula = r/w.peak, formulaReported
	add.text(spans.AttrFlopFormula, w.formula)
	w.addPeak(add)
	return stepReported
}

// addPeak adds the MFU, and what it is a share of.
func (w *work) addPeak(add *additions) {
	if w.detected != "" {
		add.text(spans.AttrDeviceModel, w.detected)
	}
	add.finite(spans.AttrFlopPeak, w.peak)
	add.finite(spans.AttrMFU, w.mfu)
}

// peakOf is the peak of the devices, {flop}/s; 0 when it is not known, which is said once per name.
func (t *train) peakOf(w *work) float64 {
	if t.cfg.PeakFlops > 0 {
		return t.cfg.PeakFlops
	}
	device := t.cfg.Device
	if device == "" {
		device = w.deviceModel
	}
	if device == "" {
		device = w.res.device
	}
	if device == "" {
		device = w.res.detected
		if w.host != "" && w.host != w.res.host {
			device = w.res.models.of(w.host)
		}
		w.detected = device
	}
	w.deviceName = device
	if r := w.res; !r.peakKnown || r.peakDevice != device {
		r.peak, r.peakDevice, r.peakKnown = t.lookUpPeak(device), device, true
	}
	return w.res.peak
}

func (t *train) lookUpPeak(device string) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.peaks.Get(device); ok {
		return p
	}
	p, _, ok := peak.Of(device)
	switch {
	case ok:
	case device == "": // nobody asked for MFU
		t.logger.Info("No device is known, so there is no MFU. Set 'train::device' (H100 SXM, say) or 'train::peak_flops', or let metrics of nvml pass this component too.")
	default:
		t.logger.Warn("The peak of this device is not known, so there is no MFU. Set 'train::peak_flops', or 'train::device' to a device of the table.",
			zap.String("device", device))
	}
	t.peaks.Add(strings.Clone(device), p)
	return p
}

// describes says whether a model has an architecture, beside facts of the run.
func describes(m *spans.Model) bool {
	a := *m
	a.Type, a.SeqLength, a.GlobalBatchSize, a.WorldSize, a.DataParallelSize, a.PipelineParallel, a.Recompute, a.FP8, a.FP4 = "", 0, 0, 0, 0, 0, "", "", ""
	return a != spans.Model{}
}

// fillRun takes facts of the run from the second description where the first leaves them out.
func fillRun(m, first, second *spans.Model) {
	m.Type = or(first.Type, second.Type)
	m.SeqLength = or(first.SeqLength, second.SeqLength)
	m.GlobalBatchSize = or(first.GlobalBatchSize, second.GlobalBatchSize)
	m.WorldSize = or(first.WorldSize, second.WorldSize)
	m.DataParallelSize = or(first.DataParallelSize, second.DataParallelSize)
	m.PipelineParallel = or(first.PipelineParallel, second.PipelineParallel)
	m.Recompute = or(first.Recompute, second.Recompute)
	m.FP8, m.FP4 = or(first.FP8, second.FP8), or(first.FP4, second.FP4)
}

func or[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
