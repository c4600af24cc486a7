package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// duel is one kind of log, and the fields that peers read from a line.
type duel struct {
	name string
	logs string // the shipped configuration's variable for logs of this kind
	// gen are the arguments of `gen` for about the given number of lines; of several files written, the log is the one matching written.
	gen     func(lines int) []string
	written string
	// unit is the noun behind the number of records in the output of `gen`; each is how many spans a record becomes at least. Spans of runs and joins come beside.
	unit string
	each int64
	// regex parses a line for the peers; empty: lines are JSON.
	regex string
	// time is the field with the time stamp, layout its format for file_log; empty: none.
	time, layout string
	// ints and doubles are the fields converted to numbers by the typed peer; JSON already has numbers.
	ints, doubles []string
	// aims of the project: CPU per line and per item beside file_log, bytes per span. 0: none.
	perLine, perItem, perSpan float64
}

var duels = []duel{
	{
		name: "TQ", logs: "TRAINBRIDGE_TQ_LOGS", unit: "spans", each: 1, perLine: 8,
		regex: `^(?P<level>[A-Z]+):(?P<time>\S+ \S+?):\[(?P<kind>TQ-[A-Z]+)\] trace_id=(?P<trace_id>\S+) \| (?:func=(?P<func>\S+) \| )?(?:pid=(?P<pid>\d+) \| )?` +
			`stage=(?P<stage>[A-Z_]+)`,
		time: "time", layout: "2006-01-02 15:04:05,000", ints: []string{"pid"},
		gen: func(lines int) []string { // one process writes the log, as a worker does
			const perBatch = 4 * 3 * 15 // coroutines × functions × lines of a function
			return []string{"tq", "--prefix", "python", "--workers", "1", "--concurrency", "4", "--batches", strconv.Itoa(max(1, lines/perBatch))}
		},
	},
	{
		name: "JSONL", logs: "TRAINBRIDGE_TRAIN_LOGS", unit: "records", each: 1, perLine: 5, perSpan: 340,
		time: "timestamp", layout: "2006-01-02T15:04:05.000Z07:00",
		gen: func(lines int) []string { return []string{"jsonl", "--fields", "full", "--steps", strconv.Itoa(lines)} },
	},
	{
		name: "Megatron", logs: "TRAINBRIDGE_FLAGSCALE_LOGS", unit: "records", each: 1, perLine: 7, perSpan: 700,
		regex: `^ ?\[(?P<time>[^\]]+)\] iteration +(?P<iteration>\d+)/ *(?P<iterations>\d+) \| consumed samples: +(?P<samples>\d+) \|` +
			`.*elapsed time per iteration \(ms\): (?P<elapsed>[0-9.]+) \| throughput per GPU \(TFLOP/s/GPU\): (?P<tflops>[0-9.]+) \|` +
			`.*learning rate: (?P<lr>\S+) \|.*lm loss: (?P<loss>\S+) \|`,
		time: "time", layout: "2006-01-02 15:04:05.000000",
		ints: []string{"iteration", "iterations", "samples"}, doubles: []string{"elapsed", "tflops", "lr", "loss"},
		gen: func(lines int) []string {
			return []string{"megatron", "--log-interval", "1", "--eval-interval", "0", "--timers=false", "--prefix", "none", "--steps", strconv.Itoa(lines)}
		},
	},
	{
		name: "perf_monitor", logs: "TRAINBRIDGE_FLAGSCALE_LOGS", unit: "steps", each: 1, perLine: 5, perSpan: 400, written: "perf_metrics_*.log",
		regex: `^(?P<time>\S+ \S+) +(?P<step>\d+) +(?P<tflops_per_gpu>\S+) +(?P<tflops>\S+) +(?P<samples>\S+) +(?P<tokens>\S+) +(?P<time_ms>\S+) +(?P<memory_gb>\S+)`,
		time:  "time", layout: "2006-01-02 15:04:05",
		ints: []string{"step", "tokens"}, doubles: []string{"tflops_per_gpu", "tflops", "samples", "time_ms", "memory_gb"},
		gen: func(lines int) []string {
			return []string{"flagscale", "--interval", "1", "--steps", strconv.Itoa(lines)}
		},
	},
	{
		name: "ZeroMQ", logs: "TRAINBRIDGE_ZMQ_LOGS", unit: "calls", each: 5, perLine: 3, perItem: 15,
		regex: `^(?P<id>\d+) +(?P<method>\S+) +(?P<serialize_ms>\S+) +(?P<send_ms>\S+) +(?P<recv_ms>\S+) +(?P<deserialize_ms>\S+) +(?P<total_ms>\S+) +` +
			`(?P<sent_kb>\S+) +(?P<recv_kb>\S+) +(?P<throughput>\S+)`,
		ints: []string{"id"}, doubles: []string{"serialize_ms", "send_ms", "recv_ms", "deserialize_ms", "total_ms", "sent_kb", "recv_kb", "throughput"},
		gen: func(lines int) []string { return []string{"zmq", "--no-footer", "--lines", strconv.Itoa(lines)} },
	},
	{
		name: "NCCL", logs: "TRAINBRIDGE_NCCL_LOGS", unit: "collectives", each: 1 + 8, perLine: 8, written: "*-pid*.log",
		time: "metadata.dump_timestamp_us", layout: "us",
		// NCCL Inspector v4.0: one process with the 8 GPUs of a node writes one file.
		gen: func(lines int) []string {
			const ranks, collectives = 8, 4 // per step
			return []string{
				"nccl", "--ranks", strconv.Itoa(ranks), "--nodes", "1", "--ranks-per-file", strconv.Itoa(ranks),
				"--collectives-per-step", strconv.Itoa(collectives), "--steps", strconv.Itoa(max(1, lines/(ranks*collectives))),
			}
		},
	},
}

// spans is how many spans a log becomes at least, by what `gen` says to have written.
func (d *duel) spans(said string) (int64, error) {
	found := regexp.MustCompile(`(\d+) ` + d.unit + `\b`).FindStringSubmatch(said)
	if found == nil {
		return 0, fmt.Errorf("gen counts no %s: %s", d.unit, said)
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	return n * d.each, err
}

// fits counts the lines of a log that the expression for the peers fits; of JSON all lines.
func (d *duel) fits(log []byte) (n int64) {
	if d.regex == "" {
		return int64(bytes.Count(log, []byte("\n")))
	}
	fit := regexp.MustCompile(d.regex)
	for line := range bytes.Lines(log) {
		if fit.Match(bytes.TrimSuffix(line, []byte("\n"))) {
			n++
		}
	}
	return n
}

// operators are file_log's, as YAML: a parser of the line, with the time stamp if the line has one. typed: whole numbers of JSON become integers.
func (d *duel) operators(typed bool) string {
	op := map[string]any{"type": "regex_parser", "regex": d.regex, "on_error": "send_quiet"}
	if d.regex == "" {
		op = map[string]any{"type": "json_parser", "parse_ints": typed, "on_error": "send_quiet"}
	}
	if d.time != "" {
		kind := "gotime"
		if d.layout == "us" {
			kind = "epoch"
		}
		op["timestamp"] = map[string]any{"parse_from": "attributes." + d.time, "layout_type": kind, "layout": d.layout}
	}
	return asYAML([]any{op})
}

// statements are the transform processor's, to convert texts to numbers.
func (d *duel) statements() string {
	list := []string{}
	for convert, fields := range map[string][]string{"Int": d.ints, "Double": d.doubles} {
		for _, f := range fields {
			list = append(list, fmt.Sprintf(`set(log.attributes[%q], %s(log.attributes[%q]))`, f, convert, f))
		}
	}
	return asYAML(list)
}

// asYAML writes JSON, a subset of YAML.
func asYAML(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // v is maps and texts of ours
	}
	return strings.TrimSpace(b.String())
}
