package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const root = "../.."

// vocabulary is the registry by name.
type vocabulary struct {
	attributes map[string]*attribute
	prefixes   []string // of templates
	metrics    map[string]*group
	upstream   map[string]bool // metrics of the semantic conventions
	names      map[string]bool // of spans and events
	verdicts   map[string]member
	values     map[string]map[string]bool // of enums
}

func readVocabulary(t *testing.T) (*vocabulary, []*domain) {
	t.Helper()
	ds, err := read(filepath.Join(root, "spans/registry"))
	if err != nil {
		t.Fatal(err)
	}
	v := &vocabulary{map[string]*attribute{}, nil, map[string]*group{}, map[string]bool{}, map[string]bool{}, map[string]member{}, map[string]map[string]bool{}}
	for _, d := range ds {
		for _, m := range d.Imports.Metrics {
			v.upstream[m] = true
		}
		for _, g := range d.Groups {
			switch g.Type {
			case "metric":
				v.metrics[g.MetricName] = g
			case "span":
				v.names[g.Annotations.Name] = true
			case "event":
				v.names[g.Name] = true
			}
			for _, a := range g.Attributes {
				if strings.HasPrefix(a.Type.Name, "template[") {
					v.prefixes = append(v.prefixes, a.name())
				} else if a.ID != "" || v.attributes[a.Ref] == nil {
					v.attributes[a.name()] = a
				}
				for _, m := range a.Type.Members {
					if v.values[a.ID] == nil {
						v.values[a.ID] = map[string]bool{}
					}
					v.values[a.ID][m.Value] = true
				}
			}
		}
	}
	for _, m := range verdicts(ds) {
		v.verdicts[m.Value] = m
	}
	return v, ds
}

// template is the prefix of a dynamic name, "" of another name.
func (v *vocabulary) template(name string) string {
	for _, p := range v.prefixes {
		if strings.HasPrefix(name, p) && v.attributes[name] == nil {
			return p
		}
	}
	return ""
}

// knows reports whether name is a name, a value, or a common prefix of several names.
func (v *vocabulary) knows(name string) bool {
	if v.attributes[name] != nil || v.metrics[name] != nil || v.names[name] || v.template(name) != "" {
		return true
	}
	for _, values := range v.values {
		if values[name] {
			return true
		}
	}
	for m := range v.metrics {
		if strings.HasPrefix(m, name+".") {
			return true
		}
	}
	return false
}

// foreign reports whether foreign writers use the name, in files that our components read.
func foreign(name string) bool {
	return strings.HasPrefix(name, "megatron.training.") || name == "process.uptime"
}

// walker holds golden files against the registry.
type walker struct {
	*testing.T
	*vocabulary
	file string
	seen map[string]bool // attributes, prefixes, metrics, spans and events, and "attribute=value" of enums
}

type keyValue struct {
	Key   string         `yaml:"key"`
	Value map[string]any `yaml:"value"`
}

type keyValues []keyValue

func (kvs keyValues) strings(key string) []string {
	var out []string
	for _, kv := range kvs {
		if kv.Key != key {
			continue
		}
		if s, ok := kv.Value["stringValue"].(string); ok {
			out = append(out, s)
		}
		list, _ := kv.Value["arrayValue"].(map[string]any)
		items, _ := list["values"].([]any)
		for _, item := range items {
			s, _ := item.(map[string]any)["stringValue"].(string)
			out = append(out, s)
		}
	}
	return out
}

type entity struct {
	Attributes keyValues `yaml:"attributes"`
}

// golden is a file of traces or metrics, as written by plogtest and similar packages.
type golden struct {
	ResourceSpans []struct {
		Resource   entity `yaml:"resource"`
		ScopeSpans []struct {
			Scope entity `yaml:"scope"`
			Spans []struct {
				Name       string    `yaml:"name"`
				Attributes keyValues `yaml:"attributes"`
				Events     []struct {
					Name       string    `yaml:"name"`
					Attributes keyValues `yaml:"attributes"`
				} `yaml:"events"`
			} `yaml:"spans"`
		} `yaml:"scopeSpans"`
	} `yaml:"resourceSpans"`
	ResourceMetrics []struct {
		Resource     entity `yaml:"resource"`
		ScopeMetrics []struct {
			Metrics []goldenMetric `yaml:"metrics"`
		} `yaml:"scopeMetrics"`
	} `yaml:"resourceMetrics"`
}

type points struct {
	Monotonic  bool     `yaml:"isMonotonic"`
	DataPoints []entity `yaml:"dataPoints"`
}

type goldenMetric struct {
	Name        string  `yaml:"name"`
	Unit        string  `yaml:"unit"`
	Description string  `yaml:"description"`
	Gauge       *points `yaml:"gauge"`
	Sum         *points `yaml:"sum"`
	Histogram   *points `yaml:"histogram"`
	Exponential *points `yaml:"exponentialHistogram"`
}

func (m *goldenMetric) points() (string, *points) {
	switch {
	case m.Histogram != nil:
		return "histogram", m.Histogram
	case m.Exponential != nil:
		return "histogram", m.Exponential
	case m.Sum != nil && m.Sum.Monotonic:
		return "counter", m.Sum
	case m.Sum != nil:
		return "updowncounter", m.Sum
	}
	return "gauge", m.Gauge
}

func (w *walker) attributes(kvs keyValues) {
	for _, kv := range kvs {
		w.attribute(kv.Key)
		for _, s := range kvs.strings(kv.Key) {
			if known := w.values[kv.Key]; known != nil && s != "" {
				w.seen[kv.Key+"="+s] = true
				if !known[s] {
					w.Errorf("%s: %s has no value %q", w.file, kv.Key, s)
				}
			}
		}
	}
}

func (w *walker) attribute(key string) {
	p := w.template(key)
	w.seen[key], w.seen[p] = true, true
	if w.vocabulary.attributes[key] == nil && p == "" {
		w.Errorf("%s: the registry has no attribute %s", w.file, key)
	}
}

// verdictsOf compares the verdicts that a span lists with their explaining events.
func (w *walker) verdictsOf(span keyValues, events []keyValues) {
	names := span.strings("trainbridge.verdict")
	for _, name := range names {
		if _, ok := w.verdicts[name]; !ok {
			w.Errorf("%s: the registry has no verdict %s", w.file, name)
		}
		w.seen["trainbridge.verdict.name="+name] = true
	}
	var explained []string
	worst := ""
	for _, e := range events {
		said := func(key string) string { return strings.Join(e.strings(key), "") }
		name, cause, severity := said("trainbridge.verdict.name"), said("trainbridge.verdict.cause"), said("trainbridge.verdict.severity")
		explained = append(explained, name)
		if worst != "bad" {
			worst = severity
		}
		of := w.verdicts[name]
		if i := slices.IndexFunc(of.Annotations.Causes, func(m member) bool { return m.Value == cause }); i >= 0 {
			of = of.Annotations.Causes[i]
		} else if cause != "" {
			w.Errorf("%s: %s has no cause %q", w.file, name, cause)
		}
		if !slices.Contains(of.Annotations.Severity, severity) {
			w.Errorf("%s: %s %s is %q, and %v by the registry", w.file, name, cause, severity, of.Annotations.Severity)
		}
	}
	if slices.Sort(explained); len(events) == 0 && len(names) == 0 {
		return
	}
	slices.Sort(names)
	explained = slices.Compact(explained)
	if !slices.Equal(names, explained) {
		w.Errorf("%s: %v are explained of %v", w.file, explained, names)
	}
	if got := span.strings("trainbridge.verdict.severity"); !slices.Equal(got, []string{worst}) {
		w.Errorf("%s: %v are %v, not %s", w.file, names, got, worst)
	}
}

func (w *walker) metric(m goldenMetric) {
	instrument, ps := m.points()
	w.seen[m.Name] = true
	switch g := w.metrics[m.Name]; {
	case foreign(m.Name):
		return
	case g == nil && !w.upstream[m.Name]:
		w.Errorf("%s: the registry has no metric %s", w.file, m.Name)
	case g != nil && g.Instrument == "gauge" && instrument == "counter" && strings.HasSuffix(w.file, "/native_want.yaml"):
		// A metric counted by the job itself stays a counter.
	case g != nil && (g.Unit != m.Unit || g.Brief != m.Description || g.Instrument != instrument):
		w.Errorf("%s: %s is a %s, %s, %q; the registry has %s, %s, %q", w.file, m.Name, instrument, m.Unit, m.Description, g.Instrument, g.Unit, g.Brief)
	}
	if ps == nil {
		return
	}
	for _, p := range ps.DataPoints {
		w.attributes(p.Attributes)
		if g := w.metrics[m.Name]; g != nil {
			for _, kv := range p.Attributes {
				if !slices.ContainsFunc(g.Attributes, func(a *attribute) bool { return a.Ref == kv.Key }) {
					w.Errorf("%s: the registry's metric %s has no attribute %s", w.file, m.Name, kv.Key)
				}
			}
		}
	}
}

func (w *walker) yaml(text []byte) {
	var g golden
	if err := yaml.Unmarshal(text, &g); err != nil {
		w.Errorf("%s: %v", w.file, err)
	}
	for _, rs := range g.ResourceSpans {
		w.attributes(rs.Resource.Attributes)
		for _, ss := range rs.ScopeSpans {
			w.attributes(ss.Scope.Attributes)
			for _, s := range ss.Spans {
				w.seen[s.Name] = true
				if strings.HasPrefix(s.Name, "rank ") {
					w.seen["rank "] = true
				}
				w.attributes(s.Attributes)
				var verdicts []keyValues
				for _, e := range s.Events {
					w.seen[e.Name] = true
					w.attributes(e.Attributes)
					if e.Name == "trainbridge.verdict" {
						verdicts = append(verdicts, e.Attributes)
					}
				}
				w.verdictsOf(s.Attributes, verdicts)
			}
		}
	}
	for _, rm := range g.ResourceMetrics {
		w.attributes(rm.Resource.Attributes)
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				w.metric(m)
			}
		}
	}
}

// jaeger reads the answers of Jaeger's API in show's tests.
func (w *walker) jaeger(text []byte) {
	var answer struct {
		Data []struct {
			Spans []struct {
				OperationName string
				Tags          []struct{ Key string }
			}
		}
	}
	if json.Unmarshal(text, &answer) != nil {
		return // an answer of another kind
	}
	for _, t := range answer.Data {
		for _, s := range t.Spans {
			w.seen[s.OperationName] = true
			for _, tag := range s.Tags {
				if !slices.Contains(jaegerTags, tag.Key) {
					w.attribute(tag.Key)
				}
			}
		}
	}
}

// jaegerTags are the tags that Jaeger adds to a span.
var jaegerTags = []string{"span.kind", "otel.status_code", "otel.status_description", "otel.scope.name", "otel.scope.version", "error", "internal.span.format"}

// repository calls f for each file of the repository but build output.
func repository(t *testing.T, f func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bin" || d.Name() == ".git"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		switch filepath.Ext(path) {
		case ".go", ".yaml", ".yml", ".json", ".md", ".sh":
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			f(filepath.ToSlash(rel), text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGoldenFiles: names in a golden file are in the registry, and names of the registry are in a golden file, or at least written by code.
func TestGoldenFiles(t *testing.T) {
	v, ds := readVocabulary(t)
	w := &walker{T: t, vocabulary: v, seen: map[string]bool{}}
	var source strings.Builder
	files := 0
	repository(t, func(path string, text []byte) {
		w.file = path
		switch in := strings.Contains(path, "/testdata/"); {
		case in && strings.HasSuffix(path, ".yaml"):
			files++
			w.yaml(text)
		case strings.HasPrefix(path, "cmd/trainbridge/internal/show/testdata/"):
			files++
			w.jaeger(text)
		case !in && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "spans/generated_") && !strings.HasPrefix(path, "internal/traces/view/generated_") &&
			!strings.HasPrefix(path, "tools/"), strings.HasPrefix(path, "receivers/nvmlreceiver/metadata.yaml"):
			source.Write(text)
		}
	})
	if files < 100 {
		t.Fatalf("%d golden files", files)
	}
	code := source.String()
	written := map[string]bool{}
	for _, word := range regexp.MustCompile(`\b[A-Z]\w+\b`).FindAllString(code, -1) {
		written[word] = true
	}
	var byCode []string
	emitted := func(seen, name, value string) {
		switch {
		case w.seen[seen]:
		case written[name] && name != "" || strings.Contains(code, `"`+value+`"`) || strings.Contains(code, " "+value+":\n") || strings.Contains(code, "name_override: "+value+"\n"):
			byCode = append(byCode, seen)
		default:
			t.Errorf("nothing writes %s, which the registry has", seen)
		}
	}
	for _, d := range ds {
		for _, g := range d.Groups {
			switch g.Type {
			case "span":
				emitted(g.Annotations.Name, g.Annotations.Go, g.Annotations.Name)
			case "event":
				emitted(g.Name, g.Annotations.Go, g.Name)
			case "metric":
				emitted(g.MetricName, g.Annotations.Go, g.MetricName)
			default:
				for _, a := range g.Attributes {
					emitted(a.name(), a.Annotations.Go, a.name())
					for _, m := range a.Type.Members {
						emitted(a.ID+"="+m.Value, m.Annotations.Go, m.Value)
					}
				}
			}
		}
	}
	t.Logf("shown by none of %d golden files, but written by code: %s", files, strings.Join(byCode, " "))
}

// TestAdded: the attributes that train_perf adds to a span are in groups whose room the registry counts.
func TestAdded(t *testing.T) {
	_, ds := readVocabulary(t)
	known := map[string]bool{}
	for _, d := range ds {
		for _, g := range d.Groups {
			for _, a := range g.Attributes {
				known[a.name()] = known[a.name()] || g.Annotations.Room != ""
			}
		}
	}
	read := func(file string) []keyValues {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g golden
		if err := yaml.Unmarshal(text, &g); err != nil {
			t.Fatal(err)
		}
		var out []keyValues
		for _, rs := range g.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					out = append(out, s.Attributes)
				}
			}
		}
		return out
	}
	inputs, err := filepath.Glob(filepath.Join(root, "processors/trainperfprocessor/testdata/*in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	added := 0
	for _, file := range inputs {
		wanted := strings.TrimSuffix(file, "in.yaml") + "want.yaml"
		in, want := read(file), read(wanted)
		if len(in) != len(want) {
			t.Fatalf("%s has %d spans, %s %d", file, len(in), wanted, len(want))
		}
		for i, attrs := range want {
			for _, kv := range attrs {
				had := slices.ContainsFunc(in[i], func(old keyValue) bool { return old.Key == kv.Key })
				if had || strings.HasPrefix(kv.Key, "trainbridge.verdict.") {
					continue
				}
				if added++; !known[kv.Key] {
					t.Errorf("%s: train_perf adds %s, which stands in no group with room", wanted, kv.Key)
				}
			}
		}
	}
	if added < 50 {
		t.Errorf("train_perf adds %d attributes", added)
	}
}

// TestUnits: units are units known to Prometheus' exporter, shares, and counts in braces. A unit with a Go name is in use.
func TestUnits(t *testing.T) {
	_, ds := readVocabulary(t)
	used := units(ds)
	counted := regexp.MustCompile(`^\{[a-z_]+\}(/s)?$`)
	for _, u := range used {
		if u != "1" && prometheusUnits[u] == "" && !counted.MatchString(u) {
			t.Errorf("%q is no unit", u)
		}
	}
	named := 0
	for _, d := range ds {
		for _, g := range d.Groups {
			for name, u := range g.Annotations.Units {
				if named++; !slices.Contains(used, u) {
					t.Errorf("%s, %q, is the unit of nothing", name, u)
				}
			}
		}
	}
	if named == 0 {
		t.Error("no unit has a name")
	}
}

// TestVerdicts: most is as many names as somebody keeps in mind. A new one is mostly a cause of an existing one.
func TestVerdicts(t *testing.T) {
	const most = 24
	v, _ := readVocabulary(t)
	if n := len(v.verdicts); n > most {
		t.Errorf("%d verdicts, more than %d", n, most)
	}
	for name := range v.verdicts {
		if strings.HasSuffix(name, "_good") {
			t.Errorf("%s: what is good has no verdict", name)
		}
	}
}

var attributeRow = regexp.MustCompile("(?m)^\\| `([a-z_.]+)`")

// TestAttributes: docs/reference/attributes.md has 20 attributes, all in the registry, each with a query from the page, or with its place.
func TestAttributes(t *testing.T) {
	v, _ := readVocabulary(t)
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/attributes.md"))
	if err != nil {
		t.Fatal(err)
	}
	table, queries, _ := strings.Cut(string(text), "```")
	rows := attributeRow.FindAllStringSubmatch(table, -1)
	if len(rows) != 20 {
		t.Errorf("%d attributes", len(rows))
	}
	for _, m := range rows {
		switch {
		case !v.knows(m[1]) && v.attributes[m[1]] == nil:
			t.Errorf("the registry has no %s", m[1])
		case !strings.Contains(queries, m[1]) && !strings.Contains(queries, strings.ReplaceAll(m[1], ".", "_")):
			t.Errorf("no query asks for %s", m[1])
		}
	}
}

var dotted = regexp.MustCompile("`((?:tq|zeromq|nccl|rpc|ml\\.train|ml\\.step|trainbridge)(?:\\.[a-z0-9_]+)+)`")

// TestDocuments: names in a page are in the registry.
func TestDocuments(t *testing.T) {
	v, _ := readVocabulary(t)
	n := 0
	repository(t, func(path string, text []byte) {
		if !strings.HasSuffix(path, ".md") || path == "CHANGELOG.md" || strings.HasSuffix(path, "/documentation.md") ||
			path == "docs/reference/events.md" { // forms are no attributes
			return
		}
		for _, m := range dotted.FindAllStringSubmatch(string(text), -1) {
			n++
			if name := m[1]; !v.knows(name) && !strings.HasPrefix(name, "trainbridge.tail.") && !strings.HasSuffix(name, ".json") { // the collector's own; a file
				t.Errorf("%s: the registry has no %s", path, name)
			}
		}
	})
	if n < 500 {
		t.Errorf("%d names in all documents", n)
	}
}

// TestPrometheusNames compares the names in READMEs with some names of Prometheus.
func TestPrometheusNames(t *testing.T) {
	v, _ := readVocabulary(t)
	for metric, want := range map[string]string{
		"tq.function.time":                "`tq_function_time_seconds_total`",
		"tq.client.throughput":            "`tq_client_throughput_bytes_per_second`",
		"ml.train.flop.throughput":        "`ml_train_flop_throughput_per_second`",
		"ml.train.flop.utilization":       "`ml_train_flop_utilization_ratio`",
		"zeromq.throughput.disagreement":  "`zeromq_throughput_disagreement`",
		"nccl.collective.missing":         "`nccl_collective_missing_total`",
		"trainbridge.gpu.clock.frequency": "`trainbridge_gpu_clock_frequency_hertz`",
	} {
		if got := prometheus(v.metrics[metric]); got != want {
			t.Errorf("%s: %s, want %s", metric, got, want)
		}
	}
}

var (
	// prometheusName matches metrics in a query, a script or a rule: labels and names of receivers have different ends.
	prometheusName = regexp.MustCompile(`\b((?:tq|zeromq|nccl|rpc|ml|hw|trainbridge)_[a-z0-9_]+_(?:total|seconds|bytes|ratio|hertz|per_second|celsius|watts|joules)(?:_bucket|_sum|_count|_total)?|(?:otelcol|trainbridge_tail)_[a-z0-9_]*[a-z0-9])\b`)
	telemetryKey   = regexp.MustCompile(`(?m)^    ([a-z0-9_.]+):$`)
	dottedOn       = regexp.MustCompile(`^\.[a-z]`)
	literalName    = regexp.MustCompile(`"(trainbridge\.[a-z_.]+)"`)
)

// TestMetricNames: a metric in a page, a script, a rule or a dashboard exists, by its name in Prometheus.
func TestMetricNames(t *testing.T) {
	v, _ := readVocabulary(t)
	known := map[string]bool{}
	for _, m := range v.metrics {
		known[strings.Trim(prometheus(m), "`")] = true
	}
	// The registry imports metrics of the semantic conventions by name alone.
	upstream := func(name string) bool {
		for m := range v.upstream {
			if unit, ok := strings.CutPrefix(name, strings.ReplaceAll(m, ".", "_")); ok && (unit == "" || unit[0] == '_') {
				return true
			}
		}
		// Prefixes of the collector's own metrics, and of contrib's.
		for _, own := range []string{"otelcol_scraper_", "otelcol_process_", "otelcol_processor_incoming_items", "otelcol_kafka_receiver_"} {
			if strings.HasPrefix(name, own) {
				return true
			}
		}
		return false
	}
	asked := map[string]string{}
	repository(t, func(path string, text []byte) {
		switch base := filepath.Base(path); {
		case base == "metadata.yaml": // of the collector's own metrics
			_, own, _ := strings.Cut(string(text), "\ntelemetry:")
			for _, m := range telemetryKey.FindAllStringSubmatch(own, -1) {
				known["otelcol_"+strings.ReplaceAll(m[1], ".", "_")] = true
			}
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			for _, m := range literalName.FindAllStringSubmatch(string(text), -1) {
				known[strings.ReplaceAll(m[1], ".", "_")] = true
			}
		case path == "CHANGELOG.md" || strings.HasSuffix(path, "/documentation.md") || strings.Contains(path, "testdata") ||
			strings.HasPrefix(path, "docs/reference/adr/"):
		case strings.HasSuffix(path, ".go"):
		default:
			for _, at := range prometheusName.FindAllIndex(text, -1) {
				if !dottedOn.Match(text[at[1]:]) { // not OpenTelemetry's name
					asked[string(text[at[0]:at[1]])] = path
				}
			}
		}
	})
	for name, path := range asked {
		base := name
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, end)
		}
		if !known[name] && !known[base] && !upstream(base) {
			t.Errorf("%s: there is no metric %s", path, name)
		}
	}
	if len(asked) < 60 {
		t.Errorf("%d names", len(asked))
	}
}
