package train

import (
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// Number is a float64 for JSON: NaN and infinities are the texts "NaN", "+Inf" and "-Inf", as in span attributes.
type Number float64

// MarshalJSON writes the number, or its text.
func (n Number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.AppendQuote(nil, strconv.FormatFloat(v, 'g', -1, 64)), nil
	}
	return strconv.AppendFloat(nil, v, 'g', -1, 64), nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (n *Number) UnmarshalJSON(b []byte) error {
	text := string(b)
	if s, err := strconv.Unquote(text); err == nil {
		text = s
	}
	v, err := strconv.ParseFloat(text, 64)
	*n = Number(v)
	return err
}

// Kinds of a Record, by the names of their spans.
const (
	KindStep       = "train.step"
	KindEvaluation = "train.evaluation"
	KindSummary    = "train.summary"
)

// Record is a record of a log.
type Record struct {
	Kind string `json:"kind"`
	File string `json:"file"` // base name
	// Record is its ordinal among the records of its file, from 1.
	Record int64 `json:"record"`
	// Iteration is as printed; 0 where the record has none. Step is the true iteration.
	Iteration int64 `json:"iteration,omitempty"`
	Step      int64 `json:"step"`
	Session   int   `json:"session,omitempty"` // flagscale: from 1
	// EndUnixNano is the time of the printed stamp, at its precision; 0: no clock in the record. TrueEndUnixNano is the simulation's.
	EndUnixNano     int64 `json:"end_unix_nano,omitempty"`
	TrueEndUnixNano int64 `json:"true_end_unix_nano"`
	StepsCovered    int64 `json:"steps_covered,omitempty"`
	// TrueDuration is the duration of all the steps covered, s.
	TrueDuration float64 `json:"true_duration_s,omitempty"`
	Slow         bool    `json:"slow"`
	// Printed are texts by the log's name of the field.
	Printed map[string]string `json:"printed"`
	// Values are the numbers of the texts in base units, by the name of the span's attribute.
	Values map[string]Number `json:"values"`
	Stages []Stage           `json:"stages,omitempty"`
	// MFU of the printed step duration, by Megatron's formula; 0 where the record states no duration.
	MFU float64 `json:"mfu,omitempty"`
}

// Stage is a part of a step; of several ranks, the time of the slowest and of the fastest.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Min     float64 `json:"min_seconds,omitempty"`
}

// Run sums up a run of the generator: the last line of a truth file, {"run": Run}, written when the generator stops. The lines before are a Record each, in the
// order of the log.
type Run struct {
	Format string         `json:"format"`
	Seed   uint64         `json:"seed"`
	Steps  int64          `json:"steps"`
	Files  []logfile.File `json:"files"`
	// Lines are physical lines of all files: Records + Sides + Ignored + Rejected.
	Lines int64 `json:"lines"`
	logfile.LineCounts
	// Spans counts the records by kind, and their stages. A row in two files of perf_monitor counts once.
	Spans map[string]int64 `json:"spans"`
	// Model is the trained model, by the names of Megatron's arguments. FlopsMegatron and FlopsFlagScale are of one step of all devices; Peak is {flop}/s of one
	// device.
	Model          map[string]any `json:"model"`
	Device         string         `json:"device"`
	Peak           float64        `json:"peak"`
	FlopsMegatron  float64        `json:"flops_megatron"`
	FlopsFlagScale float64        `json:"flops_flagscale"`
	StartUnixNano  int64          `json:"start_unix_nano"`
	EndUnixNano    int64          `json:"end_unix_nano"`
}
