package document

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write docs/reference/report.schema.json anew")

// TestSchema holds the published schema to the types.
func TestSchema(t *testing.T) {
	g := generator{defs: map[string]any{}}
	root := g.object(reflect.TypeFor[Document]())
	properties := root["properties"].(map[string]any)
	properties["verdicts"] = map[string]any{
		"type": "array", "items": g.of(reflect.TypeFor[Verdict]()), "description": "Every verdict, by run, time, trace and span.",
	}
	root["required"] = append(root["required"].([]string), "verdicts")
	properties["format"].(map[string]any)["const"] = "trainbridge.report"
	properties["version"].(map[string]any)["const"] = Version
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "urn:trainbridge:report:1"
	root["title"] = "trainbridge report --format json"
	root["$defs"] = g.defs
	want, err := json.MarshalIndent(root, "", "  ")
	require.NoError(t, err)
	want = append(want, '\n')
	if *update {
		require.NoError(t, os.WriteFile("../../../../../docs/reference/report.schema.json", want, 0o600))
		return
	}
	assert.Equal(t, string(want), trainbridge.ReportSchema, "go test ./cmd/trainbridge/internal/report/document -run TestSchema -update")
}

// The document for people names all figures.
func TestFiguresAreTold(t *testing.T) {
	text, err := os.ReadFile("../../../../../docs/reference/report.md")
	require.NoError(t, err)
	for _, name := range figures {
		assert.NotEmpty(t, name)
		assert.Contains(t, string(text), "`"+name+"`")
	}
}

// generator makes a schema of types: the names in JSON, and the doc tags.
type generator struct{ defs map[string]any }

func (g *generator) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[number]():
		return map[string]any{"type": []string{"number", "null"}}
	case t.Kind() == reflect.Pointer:
		return g.of(t.Elem())
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": g.of(t.Elem())}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.of(t.Elem())}
	case t.Kind() == reflect.Struct:
		if _, ok := g.defs[t.Name()]; !ok {
			g.defs[t.Name()] = nil
			g.defs[t.Name()] = g.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case t.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	}
	return map[string]any{"type": "integer"}
}

func (g *generator) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	g.fields(t, properties, &required)
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func (g *generator) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for f := range t.Fields() {
		if f.Anonymous {
			g.fields(f.Type, properties, required)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		is := g.of(f.Type)
		if doc := f.Tag.Get("doc"); doc != "" {
			is["description"] = doc
		}
		properties[name] = is
		if rest != "omitempty" {
			*required = append(*required, name)
		}
	}
}

const receivers = "../../../../../receivers/"

// report makes the document of logs, and has a foreign validator hold the document to the schema.
func report(t *testing.T, paths ...string) (doc struct {
	Document
	Verdicts []Verdict `json:"verdicts"`
},
) {
	t.Helper()
	in, err := offline.Open(paths, strings.NewReader(""))
	require.NoError(t, err)
	defer in.Close()
	var out bytes.Buffer
	w := Open(format.Request{
		Out: &out, In: in, Temporary: t.TempDir(),
		Conclude: func(*digest.Job, *offline.Reading) format.Conclusion {
			return format.Conclusion{Headline: "As it is.", Severity: "good"}
		},
	})
	read, err := offline.Read(t.Context(), in, offline.Options{Positions: true}, w.Sink())
	require.NoError(t, err)
	require.NoError(t, w.Finish(t.Context(), read))
	require.NoError(t, w.(*writer).Close())

	valid(t, out.Bytes())
	require.NoError(t, json.Unmarshal(out.Bytes(), &doc), out.String())
	return doc
}

func valid(t *testing.T, text []byte) {
	t.Helper()
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(trainbridge.ReportSchema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("report.schema.json", schema))
	compiled, err := c.Compile("report.schema.json")
	require.NoError(t, err)
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, compiled.Validate(instance))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (n *number) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*float64)(n)) }

// The document of every fixture of every receiver is valid, and has the fate of the lines of every file.
func TestFixturesAreValid(t *testing.T) {
	for _, receiver := range []string{"flagscale", "nccl", "tqtrace", "trainlog", "zmqrpc"} {
		doc := report(t, receivers+receiver+"receiver/testdata")
		records := int64(0)
		for _, f := range doc.Files {
			lines := f.Records
			for _, why := range f.Ignored {
				lines += why.Lines
			}
			for _, why := range f.Rejected {
				lines += why.Lines
			}
			if f.Receiver != "" {
				assert.Equal(t, f.Lines, lines, f.File)
			}
			records += f.Records
		}
		assert.Positive(t, records)
		assert.NotEmpty(t, doc.Jobs)
		findings := int64(0)
		for _, j := range doc.Jobs {
			assert.NotEmpty(t, j.Files)
			for _, f := range j.Findings {
				if f.Severity != "good" {
					findings += f.Count
				}
			}
		}
		assert.Equal(t, findings, int64(len(doc.Verdicts)), receiver)
		for _, v := range doc.Verdicts {
			assert.NotEmpty(t, v.Reason)
			assert.NotEmpty(t, v.Run)
		}
	}
}

// The figures are the log's: the guide's own example, by hand.
func TestFigures(t *testing.T) {
	log := filepath.Join(t.TempDir(), "zmq_performance.log")
	require.NoError(t, os.WriteFile(log, []byte("ZeroMQ Performance Log - Transport: IPC\n"+
		"ID    Method               Serialize(ms)   Send(ms)     Recv(ms)     Deserialize(ms)   Total(ms)    Sent(KB)     Recv(KB)     Throughput(MB/s)\n"+
		"1     Init                 0.123           0.045        0.234        0.089             0.491        0.15         125.34       255.23\n"+
		"2     Embedding            1.234           0.123        0.456        0.234             2.047        32.50        8192.00      4012.45\n"+
		"3     \"<=Batch>            2.345           0.234        0.567        0.345             3.491        8192.00      24576.00     9378.12\n"), 0o600))
	doc := report(t, log)
	require.Len(t, doc.Jobs, 1)
	all := doc.Jobs[0].RPC.Calls
	assert.Equal(t, int64(3), all.Duration.Count)
	assert.InDelta(t, 6.029e-3, float64(all.Duration.Sum), 1e-12)
	assert.InDelta(t, 3.702e-3, float64(all.Stages["serialize"].Sum), 1e-12)
	assert.InDelta(t, 2.047e-3, float64(all.Duration.P50), 1e-12)
	assert.InDelta(t, 8224.65*1024, float64(all.Sent.Sum), 1)
	require.Len(t, all.Slowest, 3)
	slowest := all.Slowest[0]
	assert.Equal(t, `"<=Batch>`, slowest.Method)
	assert.Equal(t, log, slowest.File)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text[*slowest.Offset:]), "3 "))
	assert.Len(t, slowest.TraceID, 32)
}

// Verdicts come in the order of run and time, whatever the order of reading.
func TestSameEachTime(t *testing.T) {
	var before []Verdict
	for range 3 {
		doc := report(t, receivers+"tqtracereceiver/testdata")
		if before != nil {
			require.Equal(t, before, doc.Verdicts)
		}
		before = doc.Verdicts
	}
	assert.NotEmpty(t, before)
}
