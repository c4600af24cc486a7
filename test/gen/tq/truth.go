package tq

import "github.com/trainbridge/trainbridge/internal/logfile"

// Run sums up a run of `gen tq`: the last line of its truth file, {"run": Run}, written when the generator stops. The lines before are a Function each, in the
// order of their ends.
type Run struct {
	Seed    uint64         `json:"seed"`
	Workers int            `json:"workers"`
	Batches int            `json:"batches"`
	Files   []logfile.File `json:"files"`
	// Lines are physical lines: Trace + Detail + Neighbours.
	Lines      int64 `json:"lines"`
	Trace      int64 `json:"trace_lines"`
	Detail     int64 `json:"detail_lines"`
	Neighbours int64 `json:"neighbour_lines"`
	// Storage are the reports of the storage unit, with Options.Costs.
	Storage   []StorageReport `json:"storage,omitempty"`
	Functions int64           `json:"functions"`
	Complete  int64           `json:"complete"`
	// TraceIDs counts the distinct ids but N/A.
	TraceIDs int64 `json:"trace_ids"`
	// Spans and OpenSpans are the sums over all functions.
	Spans     int64 `json:"spans"`
	OpenSpans int64 `json:"open_spans"`
	// StartUnixNano and EndUnixNano are the wall times of the first and the last line.
	StartUnixNano int64 `json:"start_unix_nano"`
	EndUnixNano   int64 `json:"end_unix_nano"`
}

// Outcomes of a function.
const (
	// Complete: FUNCTION_END was printed.
	Complete = "complete"
	// ComputeOnly: no output to put; the log of the function ends with COMPUTE_END.
	ComputeOnly = "compute_only"
	// Open: the process crashed inside the function, or the generator was stopped.
	Open = "open"
)

// Function is a call of a function. Texts are as printed; µs are integers of the printed decimals, to compare exactly with a reader of the text.
type Function struct {
	TraceID string `json:"trace_id"` // N/A where the log has none
	Batch   int    `json:"batch"`    // from 0
	Func    string `json:"func"`
	Worker  int    `json:"worker"`
	PID     int    `json:"pid"`
	IP      string `json:"ip,omitempty"` // empty: the driver's node
	Outcome string `json:"outcome"`
	// PerfStart is FUNCTION_START's timestamp; PerfEnd is the timestamp of the last line of the function, empty for a START.
	PerfStart string `json:"perf_start"`
	PerfEnd   string `json:"perf_end,omitempty"`
	// True wall times of the two clock readings.
	StartUnixNano int64 `json:"start_unix_nano"`
	EndUnixNano   int64 `json:"end_unix_nano,omitempty"`
	DurationUS    int64 `json:"duration_us,omitempty"` // total_duration
	BatchSize     int   `json:"batch_size"`
	// Stages are the stages that began: get, compute, put.
	Stages []Stage `json:"stages"`
	// Ratios of the printed durations; nil unless Complete.
	Ratios *Ratios `json:"ratios,omitempty"`
	// Spans is the function and every stage and client operation with a printed END; OpenSpans counts operations with a START only (the function itself is always
	// in Spans).
	Spans     int `json:"spans"`
	OpenSpans int `json:"open_spans,omitempty"`
	// GetCost and PutCost are the cost times as printed, s, with Options.Costs; empty if the function ended before.
	GetCost string `json:"get_cost,omitempty"`
	PutCost string `json:"put_cost,omitempty"`
}

// StorageReport is the activity of a storage unit since its last report. Texts are as printed: minutes, 1/min, s.
type StorageReport struct {
	Unit        string             `json:"unit"`
	EndUnixNano int64              `json:"end_unix_nano"` // of the stamp, in ms
	Minutes     string             `json:"minutes"`
	Requests    int                `json:"requests"`
	PerMinute   string             `json:"per_minute"`
	Average     string             `json:"average"`
	Operations  []StorageOperation `json:"operations"`
}

// StorageOperation is a kind of request in a report.
type StorageOperation struct {
	Name      string `json:"name"`
	Requests  int    `json:"requests"`
	PerMinute string `json:"per_minute"`
	Average   string `json:"average"`
	Max       string `json:"max"`
	Min       string `json:"min"`
}

// Stage is a stage of a function, or a client operation.
type Stage struct {
	Stage         string `json:"stage"`      // get, compute, put, client_get, client_put
	PerfStart     string `json:"perf_start"` // timestamp of the START line
	PerfEnd       string `json:"perf_end,omitempty"`
	StartUnixNano int64  `json:"start_unix_nano"`
	EndUnixNano   int64  `json:"end_unix_nano,omitempty"`
	DurationUS    int64  `json:"duration_us,omitempty"`
	Done          bool   `json:"done"`
	// Client is the TransferQueue operation inside get or put, when details are on.
	Client *Stage `json:"client,omitempty"`
	// Of client operations: the size as printed (MiB), the same text in bytes rounded to an integer, the true size,
	// and the throughput as printed (MiB/s; put only).
	DataSizeMB     string `json:"data_size_mb,omitempty"`
	DataSizeBytes  int64  `json:"data_size_bytes,omitempty"`
	TrueBytes      int64  `json:"true_bytes,omitempty"`
	ThroughputMBps string `json:"throughput_mbps,omitempty"`
}

// Ratios are shares of the function's printed duration.
type Ratios struct {
	Get      Ratio `json:"get"`
	Compute  Ratio `json:"compute"`
	Put      Ratio `json:"put"`
	Overhead Ratio `json:"overhead"` // get + put
}

// newRatios are the ratios of stages, in ns, to a function's total.
func newRatios(get, compute, put, total int64) *Ratios {
	den := logfile.Micros(total)
	ratio := func(num int64) Ratio { return Ratio{Num: num, Den: den, Value: float64(num) / float64(den)} }
	printed := func(ns int64) Ratio {
		r := ratio(logfile.Micros(ns))
		r.Printed = string(appendPercent(nil, ns, total))
		return r
	}
	return &Ratios{
		Get: printed(get), Compute: printed(compute), Put: printed(put), Overhead: ratio(logfile.Micros(get) + logfile.Micros(put)),
	}
}

// Ratio is Num µs of Den µs. Value is Num/Den; Printed is the log's text in percent.
type Ratio struct {
	Num     int64   `json:"num"`
	Den     int64   `json:"den"`
	Value   float64 `json:"value"`
	Printed string  `json:"printed,omitempty"`
}
