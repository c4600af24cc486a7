package trainperfprocessor

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// stepSpan is what one pass over the attributes of a step finds. Numbers that are not there are NaN.
type stepSpan struct {
	id           pcommon.SpanID
	start, end   uint64
	done         bool // measured before: a retried batch
	source       string
	deviceModel  string
	host         string // where it is not the resource's
	iteration    int64
	hasIteration bool
	rank         int64
	worldLogged  int64
	covered      float64 // steps, at least 1
	// seconds is the time of one step; NaN where it is only the time between two records, in which evaluation and checkpoints are.
	seconds       float64
	loss          float64
	lossNotFinite string // "NaN", "+Inf", "-Inf" or empty

	batchSize, sampleThroughput            float64
	tokens                                 float64 // of all steps covered, where the log counts them
	tokenThroughput, deviceTokenThroughput float64
	flopReported, deviceReported           float64
	flopCountReported                      float64
}

// unknown is a step of which nothing is known.
var unknown = func() stepSpan {
	nan := math.NaN()
	return stepSpan{
		covered: 1, seconds: nan, loss: nan, batchSize: nan, sampleThroughput: nan, tokens: nan,
		tokenThroughput: nan, deviceTokenThroughput: nan, flopReported: nan, deviceReported: nan, flopCountReported: nan,
	}
}()

// read passes over the attributes once.
func (in *stepSpan) read(span ptrace.Span) {
	*in = unknown
	in.id, in.start = span.SpanID(), uint64(span.StartTimestamp())
	in.end = max(uint64(span.EndTimestamp()), in.start)
	interval, record := false, int64(0)
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrSamples, spans.AttrFlopFormula, spans.AttrFlopUnsupported, spans.AttrVerdict:
			in.done = true
		case spans.AttrTokens:
			in.tokens = spans.ValueNumber(v)
		case spans.AttrSource:
			in.source = spans.ValueText(v)
		case spans.AttrDeviceModel:
			in.deviceModel = spans.ValueText(v)
		case spans.AttrIteration:
			in.iteration, in.hasIteration = integerOf(v)
		case spans.AttrRecord:
			record, _ = integerOf(v)
		case spans.AttrRank, spans.AttrLocalRank:
			in.rank, _ = integerOf(v)
		case spans.AttrWorldSize:
			in.worldLogged, _ = integerOf(v)
		case spans.AttrStepsCovered:
			if n, ok := integerOf(v); ok {
				in.covered = max(float64(n), 1)
			}
		case spans.AttrHostName:
			in.host = spans.ValueText(v)
		case spans.AttrStepDuration:
			if x := spans.ValueNumber(v); x >= 1e-9 { // a span's resolution
				in.seconds = x
			}
		case spans.AttrStepDurationKind:
			interval = spans.ValueText(v) == spans.DurationInterval
		case spans.AttrLoss:
			in.readLoss(v)
		case spans.AttrBatchSize:
			in.batchSize = spans.ValueNumber(v)
		case spans.AttrSampleThroughput:
			in.sampleThroughput = spans.ValueNumber(v)
		case spans.AttrTokenThroughput:
			in.tokenThroughput = spans.ValueNumber(v)
		case spans.AttrDeviceTokenThroughput:
			in.deviceTokenThroughput = spans.ValueNumber(v)
		case spans.AttrFlopThroughputReported:
			in.flopReported = spans.ValueNumber(v)
		case spans.AttrDeviceFlopThroughputReported:
			in.deviceReported = spans.ValueNumber(v)
		case spans.AttrFlopCountReported:
			in.flopCountReported = spans.ValueNumber(v)
		}
	}
	if interval {
		in.seconds = math.NaN()
	}
	if !in.hasIteration && record > 0 {
		in.iteration, in.hasIteration = record, true
	}
}

// integerOf reads a whole number. Steps come over OTLP from services in any language, and some languages have doubles only.
func integerOf(v pcommon.Value) (n int64, ok bool) {
	if n = v.Int(); n != 0 {
		return n, true // most are; what follows is not inlined
	}
	return integerOfDouble(v)
}

func integerOfDouble(v pcommon.Value) (n int64, ok bool) {
	switch x := v.Double(); v.Type() {
	case pcommon.ValueTypeInt:
		return 0, true
	case pcommon.ValueTypeDouble:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int64(x), true
		}
	}
	return 0, false
}

// additions are the attributes to be added to a span: their number is known before the map has to grow.
type additions []addition

type addition struct {
	name string
	kind pcommon.ValueType
	x    float64
	text string
}

func (a *additions) text(name, text string) {
	*a = append(*a, addition{name: name, kind: pcommon.ValueTypeStr, text: text})
}

// finite: NaN, here that there is no such number, breaks backends that keep JSON.
func (a *additions) finite(name string, x float64) {
	if isFinite(x) {
		*a = append(*a, addition{name: name, kind: pcommon.ValueTypeDouble, x: x})
	}
}

// whole adds a count.
func (a *additions) whole(name string, x float64) {
	if x == math.Trunc(x) && x < 1<<53 {
		*a = append(*a, addition{name: name, kind: pcommon.ValueTypeInt, x: x})
	} else {
		a.finite(name, x)
	}
}

// put writes them, leaving room for others.
func (a additions) put(attrs pcommon.Map, others int) {
	attrs.EnsureCapacity(attrs.Len() + len(a) + others)
	for i := range a {
		switch v := &a[i]; v.kind {
		case pcommon.ValueTypeInt:
			attrs.PutInt(v.name, int64(v.x))
		case pcommon.ValueTypeDouble:
			attrs.PutDouble(v.name, v.x)
		default:
			attrs.PutStr(v.name, v.text)
		}
	}
}

// readLoss: numbers that are not finite are text on spans; those of others may be doubles.
func (in *stepSpan) readLoss(v pcommon.Value) {
	in.loss = spans.ValueNumber(v)
	if !math.IsNaN(in.loss) {
		return
	}
	switch text := strings.ToLower(v.AsString()); text {
	case "nan":
		in.lossNotFinite = "NaN"
	case "inf", "+inf", "infinity", "+infinity":
		in.lossNotFinite = "+Inf"
	case "-inf", "-infinity":
		in.lossNotFinite = "-Inf"
	}
}
