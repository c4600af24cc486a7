package steps

import (
	"cmp"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/peak"
	"github.com/trainbridge/trainbridge/spans"
)

// work is one step with the results so far. Unknown numbers are 0 or NaN.
type work struct {
	view.Step
	id         pcommon.SpanID
	start, end uint64   // ns
	place      view.Int // iteration, or ordinal of the record
	covered    float64  // steps, at least 1
	// seconds is the time of one step; NaN where the log has only the time between two records, which includes evaluation and checkpoints.
	seconds float64
	res     *resource
	world   float64 // devices; 0: unknown
	batch   float64 // samples per step
	seq     float64 // tokens per sample
	results
}

// read reads the span of a step. For a record of several steps, seconds is the mean time of one.
func (w *work) read(span ptrace.Span, res *view.Resource) {
	w.Read(span, res)
	w.id, w.start = span.SpanID(), uint64(span.StartTimestamp())
	w.end = max(uint64(span.EndTimestamp()), w.start)
	w.place, w.covered, w.seconds = w.Place.Step(), w.Covered(), w.Duration
	if !(w.seconds >= 1e-9) || w.DurationKind == spans.DurationInterval { // 1 ns, the resolution of a span, stands for no duration
		w.seconds = math.NaN()
	}
}

// setSizes sets the samples of a step and the tokens of a sample.
func (w *work) setSizes() {
	w.batch = w.BatchSize
	if !positive(w.batch) && w.res.model.GlobalBatchSize > 0 {
		w.batch = float64(w.res.model.GlobalBatchSize)
	}
	w.seq = float64(max(w.res.model.SeqLength, 0))
}

// rank returns the rank of the step, else the local rank, else the rank of the resource; 0: unknown, or rank 0 (resource.rank).
func (w *work) rank() int64 {
	if rank := w.Rank.Or(w.LocalRank.N); rank != 0 {
		return rank
	}
	return w.res.rank
}

// results has the recomputed numbers of a step.
type results struct {
	device       float64 // {flop}/s of one device
	total        float64 // {flop}/s of all
	disagreement float64 // of the log's FLOP/s, as a share
	mfu, peak    float64
	formula      string
	impossible   bool   // the MFU is impossible
	shared       bool   // device is total / world
	deviceName   string // the device with the peak; "": the peak is configured
	detected     string // the model of the device, where only GPU metrics name it
}

// worldSize returns the number of devices; 0: unknown. In this order: the configured number, that of the model, of the step, of the resource, else the quotient
// of the logged FLOP/s of all devices and of one.
func (d *Domain) worldSize(w *work) float64 {
	for _, n := range [...]int64{d.cfg.WorldSize, w.res.model.WorldSize, w.WorldSize.N, w.res.world} {
		if n > 0 {
			return float64(n)
		}
	}
	// The quotient of the logged FLOP/s of all devices and of one device. perf_monitor rounds to 0.01 TFLOP/s: exactly one whole number must lie within the
	// rounding.
	const rounding = 0.005e12
	n := math.Round(w.FlopThroughputReported / w.DeviceFlopThroughputReported)
	// The total is rounded once, and the rate of a device n times; 0.001 is for floats.
	wholeNumber := math.Abs(w.FlopThroughputReported-n*w.DeviceFlopThroughputReported) <= (n+1.001)*rounding
	onlyOne := (n+1)*rounding < w.DeviceFlopThroughputReported/2
	if n >= 1 && wholeNumber && onlyOne {
		return n
	}
	return 0
}

// addAmounts adds amounts that the log lacks. Samples and tokens of the whole record are computed from the batch and seq_length, else from rates × time.
// Throughputs come from the batch; that of tokens first from the rate of a device or the logged tokens. perf_monitor's rates omit the data-parallel size, so
// they are not used for samples and tokens.
func (w *work) addAmounts(add *additions) {
	seconds := float64(w.end-w.start) / 1e9 // of the whole record
	samples := w.batch * w.covered
	switch {
	case samples > 0:
		add.whole(spans.AttrSamples, samples)
	case w.SampleThroughput > 0 && seconds > 0 && w.Format != formatPerfMonitor:
		samples = w.SampleThroughput * seconds
		add.finite(spans.AttrSamples, samples)
	}
	tokens := w.TokenThroughput // per second
	if !(tokens > 0) {
		tokens = w.DeviceTokenThroughput * w.world
	}
	switch {
	case w.Tokens > 0: // the log counts tokens
		if !(tokens > 0) {
			tokens = w.Tokens / (w.seconds * w.covered)
		}
	case w.batch > 0 && w.seq > 0:
		add.whole(spans.AttrTokens, w.batch*w.seq*w.covered)
	case tokens > 0 && seconds > 0 && w.Format != formatPerfMonitor:
		add.finite(spans.AttrTokens, tokens*seconds)
	case samples > 0 && w.seq > 0:
		add.finite(spans.AttrTokens, samples*w.seq)
	}
	if math.IsNaN(w.SampleThroughput) && w.batch > 0 && w.seconds > 0 {
		add.finite(spans.AttrSampleThroughput, w.batch/w.seconds)
	}
	if math.IsNaN(w.TokenThroughput) {
		switch {
		case tokens > 0:
			add.finite(spans.AttrTokenThroughput, tokens)
		case w.batch > 0 && w.seq > 0 && w.seconds > 0:
			add.finite(spans.AttrTokenThroughput, w.batch*w.seq/w.seconds)
		}
	}
}

// addFlops adds FLOPs, FLOP/s and their disagreement with the log's, MFU and HFU, and returns the outcome: measured if any FLOP/s could be recomputed, else
// noTime. If the model is unknown or unsupported, the MFU is of the logged FLOP/s, and the outcome is that of addReported, or unsupported.
func (d *Domain) addFlops(w *work, add *additions) int {
	if reason := w.res.unsupported; reason != "" {
		add.text(spans.AttrFlopUnsupported, reason)
		d.addReported(w, add)
		return unsupported
	}
	if !w.res.known {
		return d.addReported(w, add)
	}
	sample := w.res.sample.Model()
	if w.batch > 0 {
		add.finite(spans.AttrFlopCount, sample*w.batch)
		w.total = sample * w.batch / w.seconds
	}
	// Without a time or batch in the log, a rate will do, except perf_monitor's, which omits the data-parallel size.
	if !positive(w.total) && w.Format != formatPerfMonitor {
		switch {
		case w.SampleThroughput > 0:
			w.total = sample * w.SampleThroughput
		case w.TokenThroughput > 0: // without seq_length, 0, the quotient is infinite, which is not positive
			w.total = sample / w.seq * w.TokenThroughput
		case w.DeviceTokenThroughput > 0:
			w.device = sample / w.seq * w.DeviceTokenThroughput
			w.total = w.device * w.world
		}
	}
	if !positive(w.device) && w.world > 0 {
		w.device, w.shared = w.total/w.world, true
	}
	if !positive(w.total) && !positive(w.device) && !(w.batch > 0) {
		return noTime
	}
	recompute := d.addMethod(w, add)
	if positive(w.total) {
		add.finite(spans.AttrFlopThroughput, w.total)
	}
	if !positive(w.device) {
		w.addDisagreement(w.total, w.FlopThroughputReported, add)
		if positive(w.total) {
			return measured
		}
		return noTime
	}
	add.finite(spans.AttrDeviceFlopThroughput, w.device)
	if r := w.DeviceFlopThroughputReported; r > 0 {
		w.addDisagreement(w.device, r, add)
	} else {
		w.addDisagreement(w.total, w.FlopThroughputReported, add)
	}
	w.peak = d.peakOf(w)
	if w.peak > 0 {
		w.mfu = w.device / w.peak
		w.addPeak(add)
		if recompute != "" {
			add.finite(spans.AttrHFU, w.mfu*w.res.sample.Hardware(recompute)/sample)
		}
	}
	return measured
}

// addMethod adds how the FLOPs are counted: the formula, the part of the attention matrix, and the recomputation of activations, which it returns; empty:
// unknown, so HFU is unknown.
func (d *Domain) addMethod(w *work, add *additions) (recompute string) {
	w.formula = d.cfg.Formula
	add.text(spans.AttrFlopFormula, w.formula)
	convention := d.cfg.Attention
	if w.formula != formulaMegatron {
		convention = attentionFull
	}
	add.text(spans.AttrFlopConvention, convention)
	recompute = cmp.Or(d.cfg.Recompute, w.res.model.Recompute)
	if recompute != "" {
		add.text(spans.AttrFlopRecompute, recompute)
	}
	return recompute
}

// addDisagreement adds by which share the logged FLOP/s differ from the recomputed ones, if both are known.
func (w *work) addDisagreement(recomputed, reported float64, add *additions) {
	if positive(recomputed) && reported >= 0 {
		w.disagreement = math.Abs(recomputed-reported) / recomputed
		add.finite(spans.AttrFlopDisagreement, w.disagreement)
	}
}

// addReported computes an MFU from the logged FLOP/s, where the FLOPs of the model cannot be counted, and returns the outcome: reported, or noModel without
// such FLOP/s or a peak.
func (d *Domain) addReported(w *work, add *additions) int {
	r := w.DeviceFlopThroughputReported
	if !(r > 0) && w.world > 0 {
		r, w.shared = w.FlopThroughputReported/w.world, true
	}
	if !(r > 0) {
		return noModel
	}
	w.peak = d.peakOf(w)
	if !(w.peak > 0) {
		return noModel
	}
	w.mfu, w.formula = r/w.peak, formulaReported
	add.text(spans.AttrFlopFormula, w.formula)
	w.addPeak(add)
	return reported
}

// addPeak adds the MFU and its peak.
func (w *work) addPeak(add *additions) {
	if w.detected != "" {
		add.text(spans.AttrDeviceModel, w.detected)
	}
	add.finite(spans.AttrFlopPeak, w.peak)
	add.finite(spans.AttrMFU, w.mfu)
}

// peakOf returns the peak of one device, {flop}/s; 0: unknown, which is logged once per name. The configured peak comes first, then that of the first device
// named: by the config, the step, the resource, or the GPU metrics of the host (w.detected).
func (d *Domain) peakOf(w *work) float64 {
	if d.cfg.PeakFlops > 0 {
		return d.cfg.PeakFlops
	}
	device := d.cfg.Device
	if device == "" {
		device = w.DeviceModel
	}
	if device == "" {
		device = w.res.device
	}
	if device == "" {
		device = w.res.detected
		if w.Host != "" && w.Host != w.res.host {
			device = w.res.models.Of(w.Host)
		}
		w.detected = device
	}
	w.deviceName = device
	if r := w.res; !r.peakKnown || r.peakDevice != device {
		r.peak, r.peakDevice, r.peakKnown = d.lookUpPeak(device), device, true
	}
	return w.res.peak
}

// lookUpPeak returns the peak of a device by its name, {flop}/s; 0: unknown, which is logged.
func (d *Domain) lookUpPeak(device string) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, ok := d.peaks.Get(device); ok {
		return p
	}
	p, _, ok := peak.Of(device)
	switch {
	case ok:
	case device == "": // nobody asked for MFU
		d.logger.Info("No device is known, so there is no MFU. Set 'train::device' (H100 SXM, say) or 'train::peak_flops', or let metrics of nvml pass this " +
			"component too.")
	default:
		d.logger.Warn("The peak of this device is not known, so there is no MFU. Set 'train::peak_flops', or 'train::device' to a device of the table.",
			zap.String("device", device))
	}
	d.peaks.Add(strings.Clone(device), p)
	return p
}
