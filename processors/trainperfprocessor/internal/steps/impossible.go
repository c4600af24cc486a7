package steps

import (
	"math"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/peak"
)

// mfuLimit returns the upper bound of a possible MFU. Peaks are of BF16: FP8 is twice as fast, FP4 four times.
func (w *work) mfuLimit() float64 {
	switch {
	case w.res.model.FP4 != "":
		return 4
	case w.res.model.FP8 != "":
		return 2
	}
	return 1
}

// implausible is an MFU that even a slow run exceeds.
const implausible = 0.01

// plausible reports whether training reaches this MFU; a cause must lead to a plausible MFU.
func plausible(mfu float64) bool { return mfu > implausible && mfu <= 0.75 }

// cause is a possible reason for an impossible MFU.
type cause struct {
	*work
	configured bool // 'train::peak_flops' is configured

	// Of the candidate at hand, for its sentence:
	device string  // another device
	n      float64 // the number that the cause assumes
	would  float64 // the MFU under the cause
}

// candidates are the causes, the most frequent first. A candidate returns nil where the numbers contradict it.
var candidates = [...]func(c *cause) *verdict.Text[cause]{
	(*cause).ofDevice, (*cause).ofWorld, (*cause).ofUnit, (*cause).ofSteps, (*cause).ofPrecision,
	(*cause).ofFormula,
}

const wouldBe = "it would be {would:percent}"

var (
	anotherDevice = verdict.NewText("[configured?'train::peak_flops' is not that of the devices|the devices are not {device}]: of {another device} "+wouldBe,
		&causePlaces)
	moreDevices  = verdict.NewText("the job has more devices than {world}: with {n}, by the log's own FLOP/s per device, "+wouldBe, &causePlaces)
	manyDevices  = verdict.NewText("the job has more devices than {world} (at least {n}): set 'train::world_size'", &causePlaces)
	loggedUnit   = verdict.NewText("the log's number is in GFLOP/s, not TFLOP/s: "+wouldBe, &causePlaces)
	timeUnit     = verdict.NewText("the step's time or rate is a thousand times off (ms, not s): "+wouldBe, &causePlaces)
	otherSamples = verdict.NewText("the time is not that of {batch} samples: by samples/s × time they are {n}, with which "+wouldBe, &causePlaces)
	allSteps     = verdict.NewText("the time is that of all {covered} steps of the record, divided once too often: "+wouldBe, &causePlaces)
	lowPrecision = verdict.NewText("the GEMMs run in FP8 or FP4, and the peak is that of BF16", &causePlaces)
	loggedMore   = verdict.NewText("the log counts more than the model's FLOPs", &causePlaces)
	anotherModel = verdict.NewText("the model, its seq_length or the batch is not what runs", &causePlaces)
)

var causePlaces = verdict.Places[cause]{
	Numbers: map[string]func(*cause) float64{
		"would":   func(c *cause) float64 { return c.would },
		"n":       func(c *cause) float64 { return c.n },
		"world":   func(c *cause) float64 { return c.world },
		"batch":   func(c *cause) float64 { return c.batch },
		"covered": func(c *cause) float64 { return c.covered },
	},
	Texts: map[string]func([]byte, *cause) []byte{
		"device":         func(b []byte, c *cause) []byte { return append(b, c.deviceName...) },
		"another device": func(b []byte, c *cause) []byte { return append(b, c.device...) },
	},
	When: map[string]func(*cause) bool{
		"configured": func(c *cause) bool { return c.configured },
	},
}

// appendCauses writes the causes that fit the numbers, as a list: "1) the devices are not NVIDIA H100: of B200 it would be 45%; 2) …".
func appendCauses(b []byte, j *judge) []byte {
	c := cause{work: &j.work, configured: j.cfg.PeakFlops > 0}
	n := 0
	for _, candidate := range candidates {
		text := candidate(&c)
		if text == nil {
			continue
		}
		if n++; n > 1 {
			b = append(b, "; "...)
		}
		b = text.Append(append(strconv.AppendInt(b, int64(n), 10), ") "...), &c)
	}
	return b
}

// isPlausible reports whether the MFU under a cause is plausible, and keeps the MFU for the sentence.
func (c *cause) isPlausible(mfu float64) bool {
	c.would = mfu
	return plausible(mfu)
}

// usual are the devices of most jobs, the slowest first: of AMD (true), of NVIDIA (false).
var usual = map[bool][]string{false: {"A100", "H100", "B200"}, true: {"MI300X", "MI355X"}}

// ofDevice is the cause that the peak is of another device of the same maker; nil: no device makes the MFU plausible. The names of AMD's devices have MI.
func (c *cause) ofDevice() *verdict.Text[cause] {
	for _, c.device = range usual[strings.Contains(c.deviceName, "MI")] {
		if p, _, ok := peak.Of(c.device); ok && c.isPlausible(c.mfu*c.peak/p) {
			return anotherDevice
		}
	}
	return nil
}

// ofWorld is the cause that the FLOP/s of all devices were divided by too few; nil: nothing was divided (c.shared). Without logged FLOP/s of one device, or if
// these do not fit, only the least number of devices is known: that for an MFU of 0.75.
func (c *cause) ofWorld() *verdict.Text[cause] {
	if !c.shared {
		return nil
	}
	c.n = math.Round(c.total / c.DeviceFlopThroughputReported)
	if c.n > c.world && c.isPlausible(c.mfu*c.world/c.n) {
		return moreDevices
	}
	c.n = math.Ceil(c.mfu * c.world / 0.75)
	return manyDevices
}

// ofUnit is the cause that a number is a thousand times too large; nil: does not fit.
func (c *cause) ofUnit() *verdict.Text[cause] {
	switch {
	case !c.isPlausible(c.mfu / 1000):
		return nil
	case c.formula == formulaReported:
		return loggedUnit
	}
	return timeUnit
}

// ofSteps is the cause that the time is not of the counted samples, but of those that samples/s × time make, or of all steps of the record; nil: neither fits.
func (c *cause) ofSteps() *verdict.Text[cause] {
	if c.formula == formulaReported {
		return nil
	}
	c.n = c.SampleThroughput * c.seconds
	if c.n > 0 && c.isPlausible(c.mfu*c.n/c.batch) {
		return otherSamples
	}
	if c.covered > 1 && c.isPlausible(c.mfu/c.covered) {
		return allSteps
	}
	return nil
}

// ofPrecision is the cause that the run computes in FP8 or FP4, up to four times as fast, although the log does not say so and the peak is of BF16; nil: does
// not fit.
func (c *cause) ofPrecision() *verdict.Text[cause] {
	if c.mfu <= 4 && c.mfuLimit() == 1 {
		return lowPrecision
	}
	return nil
}

// ofFormula is the cause that the counted operations are not those executed; it always fits.
func (c *cause) ofFormula() *verdict.Text[cause] {
	if c.formula == formulaReported {
		return loggedMore
	}
	return anotherModel
}
