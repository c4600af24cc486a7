package perfmonitor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// Summary reads the content of perf_summary_*.json.
type Summary struct {
	// Zone is the time zone of stamps without a zone.
	Zone *time.Location
	// Rows says whether the iteration logs become records. Where the table of the session is read too, the records would repeat it.
	Rows bool
	// Metric and Unit are the name and unit of the metric |recomputed − reported| / recomputed of a final statistic.
	Metric, Unit string
}

// document is perf_logger.py's JSON. Values stay as printed.
type document struct {
	session, statistics map[string]json.RawMessage
	rows                []json.RawMessage
	others              map[string]json.RawMessage // the other members, also one of the three above with a wrong type
}

// parse reads a summary. false: the text is no JSON object with any of the three keys session_info, final_statistics and iteration_logs.
func (d *document) parse(text []byte) bool {
	if json.Unmarshal(quoteNonFinite(bytes.TrimSpace(text)), &d.others) != nil {
		return false
	}
	found := false
	for _, part := range []struct {
		name string
		to   any
	}{{"session_info", &d.session}, {"final_statistics", &d.statistics}, {"iteration_logs", &d.rows}} {
		raw, ok := d.others[part.name]
		found = found || ok
		if ok && json.Unmarshal(raw, part.to) == nil {
			delete(d.others, part.name)
		}
	}
	return found
}

// Read reads a summary: its rows become records if wanted (Rows), then one record about the session has the session's times, the final statistics and their
// disagreement with the rows, and all other values. The result is false when the text is no summary.
func (s *Summary) Read(text []byte, out Out) bool {
	var doc document
	if !doc.parse(text) {
		return false
	}
	zone := s.zone(doc.session["end_time"])
	stamps := clock.NewStamps(zone)
	var seen totals
	odd := 0 // rows that are no objects
	for _, raw := range doc.rows {
		var row map[string]json.RawMessage
		if json.Unmarshal(raw, &row) != nil || row == nil {
			odd++
			continue
		}
		seen.add(row)
		if s.Rows {
			readRow(row, stamps, out)
		}
	}
	rec := out.Record()
	rec.Kind, rec.Source, rec.HasRank, rec.Dedup = record.Summary, Source, true, true
	start, end := plain(doc.session["start_time"]), plain(doc.session["end_time"])
	if ns, err := stamps.Parse(compact(start)); err == nil {
		rec.Start = ns
	}
	if ns, err := stamps.Parse(end); err == nil {
		rec.Unix, rec.RawUnix = ns, end
	} else { // without a time, the texts tell sessions apart
		rec.Key = append(slices.Clone(start), end...)
	}
	for _, name := range sortedKeys(doc.session) {
		if name != "start_time" && name != "end_time" {
			addExtra(rec, name, doc.session[name])
		}
	}
	for _, name := range sortedKeys(doc.statistics) {
		addExtra(rec, name, doc.statistics[name])
	}
	for _, name := range sortedKeys(doc.others) {
		addExtra(rec, name, doc.others[name])
	}
	if odd > 0 {
		rec.AddExtra(record.Extra{Name: []byte("iteration_logs_skipped"), Value: float64(odd)})
	}
	s.compare(rec, &seen, doc.statistics)
	out.Emit(rec)
	return true
}

// zone is the time zone of the whole summary: only its end, end_time, states an offset. Where the offset is that of Zone at the time, or none is stated, Zone
// is kept, because Zone knows of daylight saving time.
func (s *Summary) zone(end json.RawMessage) *time.Location {
	t, err := time.Parse(time.RFC3339Nano, string(plain(end)))
	if err != nil {
		return s.Zone
	}
	_, theirs := t.Zone()
	if _, ours := t.In(s.Zone).Zone(); ours == theirs {
		return s.Zone
	}
	return time.FixedZone("", theirs)
}

// rowFields are the keys of an iteration log.
var rowFields = map[string]field{
	"TFLOPS_per_GPU": {record.DeviceFlopThroughput, record.TeraFlopPerSecond}, "TFLOPS_total": {record.FlopThroughput, record.TeraFlopPerSecond},
	"samples_per_sec": {record.SampleThroughput, record.Base}, "tokens_per_sec": {record.TokenThroughput, record.Base},
	"step_time_ms": {record.Duration, record.Milliseconds}, "memory_GB": {record.MemoryUsage, record.Gibibytes},
	"peak_memory_GB": {record.MemoryPeak, record.Gibibytes},
}

// readRow emits the record of a row of the iteration logs, a JSON object with the keys timestamp, iteration and rowFields. Ids of a trace are taken, and all
// other values are kept as printed.
func readRow(row map[string]json.RawMessage, stamps *clock.Stamps, out Out) {
	rec := newRow(out)
	for _, name := range sortedKeys(row) {
		v, ok := number(row[name])
		to, known := rowFields[name]
		switch {
		case name == "timestamp":
			text := plain(row[name])
			if ns, err := stamps.Parse(text); err == nil {
				rec.Unix, rec.RawUnix = ns, text // the key is the text, as in the table
				continue
			}
			addExtra(rec, name, row[name])
		case name == "iteration" && ok && v >= 0 && v == math.Trunc(v):
			rec.Set(record.Iteration, v)
		case known && ok:
			set(rec, to, v)
		case !setID(rec, name, row[name]):
			addExtra(rec, name, row[name])
		}
	}
	// A trace with an id may have several rows of one second, and a row without a time has only its values for a key.
	if _, _, byID := spans.Carried("", &rec.IDs); byID || rec.Unix == 0 {
		for _, name := range sortedKeys(row) {
			rec.Key = append(append(rec.Key, row[name]...), ' ')
		}
	}
	if !rec.Empty() {
		out.Emit(rec)
	}
}

// setID takes a value whose name is that of an id. true: the value is a trace id written as a UUID, and nothing is to be kept beside; another id text is kept
// as a value, too.
func setID(rec *record.Record, name string, raw json.RawMessage) bool {
	f := logids.Named(strings.ToLower(name))
	if f == logids.None || raw[0] == '{' || raw[0] == '[' {
		return false
	}
	text := plain(raw)
	rec.IDs.Set(f, text)
	return f == logids.Trace && logids.IsUUID(text)
}

// addExtra keeps a value, as a number or as its plain text. null is no value.
func addExtra(rec *record.Record, name string, raw json.RawMessage) {
	e := record.Extra{Name: []byte(name)}
	if v, ok := number(raw); ok {
		e.Value = v
	} else if e.Text = plain(raw); string(raw) == "null" {
		return
	}
	rec.AddExtra(e)
}

// number reads a JSON number, or a text made by quoteNonFinite.
func number(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || raw[0] == '"' {
		switch string(raw) {
		case `"NaN"`, `"Infinity"`, `"-Infinity"`:
			return decimal.Float(raw[1 : len(raw)-1])
		}
		return 0, false
	}
	return decimal.Float(raw)
}

// plain is the text of a JSON string, or any other value unchanged.
func plain(raw json.RawMessage) []byte {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return []byte(s)
	}
	return raw
}

// compact makes "2026-06-12 10:30:00" of "20260612_103000"; anything else stays.
func compact(b []byte) []byte {
	if len(b) != 15 || b[8] != '_' {
		return b
	}
	return fmt.Appendf(nil, "%s-%s-%s %s:%s:%s", b[:4], b[4:6], b[6:8], b[9:11], b[11:13], b[13:])
}

// quoteNonFinite puts NaN, Infinity and -Infinity into quotes: Python writes them, JSON does not have them.
func quoteNonFinite(text []byte) []byte {
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quoted && i+1 < len(text): // an escaped quote ends no text
			out = append(out, c, text[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == 'N', c == 'I', c == '-':
			if word := nonFinite(text[i:]); word != "" {
				out = append(append(append(out, '"'), word...), '"')
				i += len(word) - 1
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// nonFinite is the non-finite number that a text begins with; empty: none.
func nonFinite(b []byte) string {
	for _, word := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return word
		}
	}
	return ""
}

// sortedKeys are the keys in order: what is made of a map must be the same each time.
func sortedKeys(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// totals are the totals of all rows, by column.
type totals struct{ columns map[string]*total }

// total is the number, sum, extremes and last of a column's values.
type total struct{ n, sum, least, most, last float64 }

// add adds the finite values of a row.
func (t *totals) add(row map[string]json.RawMessage) {
	if t.columns == nil {
		t.columns = make(map[string]*total)
	}
	for name, raw := range row {
		v, ok := number(raw)
		if _, known := rowFields[name]; !known || !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		c := t.columns[name]
		if c == nil {
			c = &total{least: v, most: v}
			t.columns[name] = c
		}
		c.n++
		c.sum += v
		c.least, c.most, c.last = min(c.least, v), max(c.most, v), v
	}
}

// recomputed is the value of a final statistic, computed from the rows; false: not known, or not compared. means: averages are means of the rows.
//
// In a normal run the averages are no means: the job passes the values of its next row, so the averages are compared with the last row, the nearest. Only
// without values from the job does perf_logger.py compute mean, minimum and maximum itself (_calculate_statistics), and then max_tflops_per_gpu is present.
// min_step_time_ms and max_step_time_ms are of single steps, but rows are medians: these two are not compared.
func (t *totals) recomputed(name string, means bool) (float64, bool) {
	// pick is a value of a column's total.
	pick := func(column string, f func(*total) float64) (float64, bool) {
		c := t.columns[column]
		if c == nil {
			return 0, false
		}
		return f(c), true
	}
	average := func(c *total) float64 { return c.last }
	if means {
		average = func(c *total) float64 { return c.sum / c.n }
	}
	switch name {
	case "avg_tflops_per_gpu":
		return pick("TFLOPS_per_GPU", average)
	case "avg_tflops_total":
		return pick("TFLOPS_total", average)
	case "avg_step_time_ms":
		return pick("step_time_ms", average)
	case "avg_throughput_tokens":
		return pick("tokens_per_sec", average)
	case "avg_memory_gb":
		return pick("memory_GB", average)
	case "min_tflops_per_gpu":
		return pick("TFLOPS_per_GPU", func(c *total) float64 { return c.least })
	case "max_tflops_per_gpu":
		return pick("TFLOPS_per_GPU", func(c *total) float64 { return c.most })
	case "peak_memory_gb":
		return pick("peak_memory_GB", func(c *total) float64 { return c.most })
	}
	return 0, false
}

// compare adds to the session's record, for each final statistic that can be computed from the rows, the relative difference between the two. A statistic
// that is 0 by the rows is left out.
func (s *Summary) compare(rec *record.Record, seen *totals, statistics map[string]json.RawMessage) {
	_, means := statistics["max_tflops_per_gpu"] // see recomputed
	for _, name := range sortedKeys(statistics) {
		reported, ok := number(statistics[name])
		if !ok {
			continue
		}
		v, ok := seen.recomputed(name, means)
		if !ok || v == 0 {
			continue
		}
		rec.AddExtra(record.Extra{
			Name: []byte(name + ".disagreement"), Value: math.Abs(v-reported) / math.Abs(v),
			Metric: s.Metric, Unit: s.Unit, Statistic: name,
		})
	}
}
