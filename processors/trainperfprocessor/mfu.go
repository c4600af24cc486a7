package trainperfprocessor

import (
	"math"
	"strings"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/peak"
	"github.com/trainbridge/trainbridge/spans"
)

// mfuLimit is the MFU that no device gets above. Peaks are of BF16: FP8 is twice as fast, FP4 four times.
func (w *work) mfuLimit() float64 {
	switch {
	case w.res.model.FP4 != "":
		return 4
	case w.res.model.FP8 != "":
		return 2
	}
	return 1
}

// implausible is an MFU that training is hardly below.
const implausible = 0.01

// plausible is an MFU that training reaches: a cause has to bring it there.
func plausible(mfu float64) bool { return mfu > implausible && mfu <= 0.75 }

// judgeImpossible names what makes the MFU of a step more than any device does: what fits the numbers, in the order in which it mostly is the cause.
func (t *train) judgeImpossible(w *work, s *scratch) {
	limit := w.mfuLimit()
	s.sayOnce(verdict{name: spans.VerdictMFUImpossible, severity: bad, value: w.mfu, threshold: limit}, func(b []byte) []byte {
		b = append(b, "MFU is "...)
		b = appendPercent(b, w.mfu)
		b = append(b, ": "...)
		b = appendShort(b, w.mfu*w.peak/1e12)
		b = append(b, " of "...)
		b = appendShort(b, w.peak/1e12)
		b = append(b, " TFLOP/s per device"...)
		if w.formula == formulaReported {
			b = append(b, ", as reported by the log"...)
		}
		c := causes{b: append(b, ", more than it can do. Likely causes, in this order: "...)}
		c.device(w, t.cfg.PeakFlops > 0)
		c.world(w)
		c.unit(w)
		c.steps(w)
		c.formula(w)
		return append(c.b, '.')
	})
}

// causes is a numbered list of them.
type causes struct {
	b []byte
	n int
}

func (c *causes) begin(text string) {
	if c.n++; c.n > 1 {
		c.text("; ")
	}
	c.b = append(appendInt(c.b, c.n), ") "...)
	c.text(text)
}

func (c *causes) text(text string) { c.b = append(c.b, text...) }

func (c *causes) number(x float64) { c.b = appendShort(c.b, x) }

// mfu says what the MFU would be.
func (c *causes) mfu(x float64) {
	c.text("it would be ")
	c.b = appendPercent(c.b, x)
}

// usual are the devices that most jobs run on, the slowest first, by maker.
var usual = map[bool][]string{false: {"A100", "H100", "B200"}, true: {"MI300X", "MI355X"}}

// device: another device's peak makes the figure plausible.
func (c *causes) device(w *work, configured bool) {
	for _, name := range usual[strings.Contains(w.deviceName, "MI")] {
		p, _, ok := peak.Of(name)
		share := w.mfu * w.peak / p
		if !ok || !plausible(share) {
			continue
		}
		if configured {
			c.begin("'train::peak_flops' is not that of the devices")
		} else {
			c.begin("the devices are not ")
			c.text(w.deviceName)
		}
		c.text(": of ")
		c.text(name)
		c.text(" ")
		c.mfu(share)
		return
	}
}

// world: the FLOP/s of all devices were shared out to too few.
func (c *causes) world(w *work) {
	if !w.shared {
		return
	}
	c.begin("the job has more devices than ")
	c.number(w.world)
	if n := math.Round(w.total / w.deviceReported); n > w.world && plausible(w.mfu*w.world/n) {
		c.text(": with ")
		c.number(n)
		c.text(", by the log's own FLOP/s per device, ")
		c.mfu(w.mfu * w.world / n)
		return
	}
	c.text(" (at least ")
	c.number(math.Ceil(w.mfu * w.world / 0.75))
	c.text("): set 'train::world_size'")
}

// unit: a number is a thousand times what it was taken for.
func (c *causes) unit(w *work) {
	if !plausible(w.mfu / 1000) {
		return
	}
	if w.formula == formulaReported {
		c.begin("the log's number is in GFLOP/s, not TFLOP/s: ")
	} else {
		c.begin("the step's time or rate is a thousand times off (ms, not s): ")
	}
	c.mfu(w.mfu / 1000)
}

// steps: the time is not that of the samples that are counted.
func (c *causes) steps(w *work) {
	if w.formula == formulaReported {
		return
	}
	if seen := w.sampleThroughput * w.seconds; seen > 0 && plausible(w.mfu*seen/w.batch) {
		c.begin("the time is not that of ")
		c.number(w.batch)
		c.text(" samples: by samples/s × time they are ")
		c.number(seen)
		c.text(", with which ")
		c.mfu(w.mfu * seen / w.batch)
		return
	}
	if w.covered > 1 && plausible(w.mfu/w.covered) {
		c.begin("the time is that of all ")
		c.number(w.covered)
		c.text(" steps of the record, divided once too often: ")
		c.mfu(w.mfu / w.covered)
	}
}

// formula: what is counted is not what was done.
func (c *causes) formula(w *work) {
	if w.mfu <= 4 && w.mfuLimit() == 1 {
		c.begin("the GEMMs run in FP8 or FP4, and the peak is that of BF16")
	}
	if w.formula == formulaReported {
		c.begin("the log counts more than the model's FLOPs")
	} else {
		c.begin("the model, its seq_length or the batch is not what runs")
	}
}
