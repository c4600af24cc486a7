package runlakeexporter

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/trainbridge/trainbridge/exporters/runlakeexporter/internal/metadata"
	"github.com/trainbridge/trainbridge/exporters/runlakeexporter/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

// gateway is a run_lake with a clock of the test's.
type gateway struct {
	*runLake
	tel *componenttest.Telemetry
	at  time.Time
}

var start = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func newGateway(t *testing.T, dir string, labels ...string) *gateway {
	t.Helper()
	cfg := defaultConfig()
	cfg.Directory, cfg.Labels = dir, labels
	g := &gateway{tel: componenttest.NewTelemetry(), at: start}
	set := exporter.Settings{ID: exportertest.NewNopSettings(metadata.Type).ID, TelemetrySettings: g.tel.NewTelemetrySettings()}
	var err error
	g.runLake, err = newRunLake(t.Context(), cfg, set, func() time.Time { return g.at })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.tel.Shutdown(context.Background())) })
	return g
}

// passes lets time pass, and looks at the runs before and after.
func (g *gateway) passes(d time.Duration) {
	g.look(context.Background())
	g.at = g.at.Add(d)
	g.look(context.Background())
}

func (g *gateway) takes(t *testing.T, td ptrace.Traces) {
	t.Helper()
	require.NoError(t, g.ConsumeTraces(t.Context(), td))
}

func (g *gateway) dropped(t *testing.T, want int64) {
	t.Helper()
	metadatatest.AssertEqualExporterRunLakeDropped(t, g.tel, []metricdata.DataPoint[int64]{{Value: want}}, metricdatatest.IgnoreTimestamp())
}

// steps are the spans of some training steps of a run, of 1 s each.
func steps(run string, from, to int) ptrace.Traces {
	batch := spans.NewBatch("test", "")
	for i := from; i < to; i++ {
		at := start.Add(time.Duration(i) * time.Second).UnixNano()
		m := batch.Add(spans.Resource{RunID: run}, spans.Span{
			Trace: pcommon.TraceID{1, byte(i >> 8), byte(i)}, ID: pcommon.SpanID{1, byte(i >> 8), byte(i)}, Name: "train.step",
			Is: spans.KindStep, Start: at, End: at + 1e9,
		}).Attributes()
		m.PutInt(spans.AttrIteration, int64(i))
		m.PutStr(spans.AttrSource, "jsonl")
	}
	return batch.Traces()
}

// rowsOf reads all rows of a table back, with parquet-go's reader: the cells by column.
func rowsOf(t *testing.T, lake, table string) (rows []map[string]string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(lake, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(path, filepath.Join(lake, table)+"/") {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
		require.NoError(t, err)
		for _, group := range file.RowGroups() {
			in := group.Rows()
			buf := make([]parquet.Row, 1)
			for n, _ := in.ReadRows(buf); n > 0; n, _ = in.ReadRows(buf) {
				row := make(map[string]string)
				for _, v := range buf[0] {
					if !v.IsNull() {
						row[file.Schema().Fields()[v.Column()].Name()] = v.String()
					}
				}
				rows = append(rows, row)
			}
			require.NoError(t, in.Close())
		}
		return nil
	}))
	return rows
}

// A run is written when no span came for as long as silence says, as a whole, each span once.
func TestSilentRun(t *testing.T) {
	lake := t.TempDir()
	g := newGateway(t, lake)
	g.takes(t, steps("a", 0, 20))
	g.takes(t, steps("a", 10, 30)) // ten come again
	g.passes(9 * time.Minute)
	assert.Empty(t, rowsOf(t, lake, "runs"))
	g.takes(t, steps("b", 0, 5))
	g.passes(time.Minute)
	runs := rowsOf(t, lake, "runs")
	require.Len(t, runs, 1)
	assert.Equal(t, "a", runs[0]["run"])
	assert.Equal(t, "30", runs[0]["steps"])
	assert.NotContains(t, runs[0], "conclusion")
	assert.NotContains(t, runs[0], "end_kind")
	assert.Len(t, rowsOf(t, lake, "steps"), 30)
	assert.FileExists(t, lake+"/runs/day=2026-11-24/run=a/part-0.parquet")
	g.dropped(t, 0)
}

// A run that goes on within keep is written anew as a whole. Spans that come later are counted.
func TestRunComesBack(t *testing.T) {
	lake := t.TempDir()
	g := newGateway(t, lake)
	g.takes(t, steps("a", 0, 10))
	g.passes(time.Hour)
	g.takes(t, steps("a", 10, 15))
	g.passes(time.Hour)
	assert.Len(t, rowsOf(t, lake, "steps"), 15)
	g.passes(8 * 24 * time.Hour)
	assert.NoDirExists(t, filepath.Join(lake, spansDir, "run=a"))
	g.takes(t, steps("a", 15, 17))
	g.passes(time.Hour)
	assert.Len(t, rowsOf(t, lake, "steps"), 15)
	assert.Len(t, rowsOf(t, lake, "runs"), 1)
	g.dropped(t, 2)
}

// Two gateways with parts of a run, and a killed one: the rows are of all spans, whoever writes.
func TestPartsOfRun(t *testing.T) {
	lake := t.TempDir()
	killed, a, b := newGateway(t, lake), newGateway(t, lake), newGateway(t, lake)
	killed.takes(t, steps("a", 0, 10))
	half, err := os.OpenFile(spoolOf(lake, "run=a", killed.writer).file, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = half.WriteString("half a message")
	require.NoError(t, err)
	require.NoError(t, half.Close())
	a.takes(t, steps("a", 8, 20))
	b.takes(t, steps("a", 20, 30))
	a.passes(9 * time.Minute)
	b.takes(t, steps("a", 30, 40))
	a.passes(9 * time.Minute) // silent for a, while b goes on
	assert.Empty(t, rowsOf(t, lake, "runs"))
	require.NoError(t, b.Start(t.Context(), nil))
	require.NoError(t, b.Shutdown(t.Context()))
	for range 2 {
		assert.Len(t, rowsOf(t, lake, "steps"), 40)
		runs := rowsOf(t, lake, "runs")
		require.Len(t, runs, 1)
		assert.Equal(t, "40", runs[0]["steps"])
		a.passes(time.Hour)
	}
	metadatatest.AssertEqualExporterRunLakeFailed(t, a.tel, []metricdata.DataPoint[int64]{{}}, metricdatatest.IgnoreTimestamp())
}

// Rows without a gateway's mark are of `report`: they stay.
func TestRowsOfReport(t *testing.T) {
	lake := t.TempDir()
	g := newGateway(t, lake)
	g.takes(t, steps("a", 0, 10))
	g.passes(time.Hour)
	require.NoError(t, os.RemoveAll(filepath.Join(lake, spansDir)))
	_, err := spoolOf(lake, "run=a", "w").add(g.packer, steps("a", 0, 3))
	require.NoError(t, err)
	other := newGateway(t, lake)
	other.passes(time.Hour)
	assert.Len(t, rowsOf(t, lake, "steps"), 10)
	other.passes(8 * 24 * time.Hour)
	assert.NoDirExists(t, filepath.Join(lake, spansDir, "run=a"))
}

// A run without room is left out as a whole, also by the next process, and all of its spans are counted. Other runs are written.
func TestNoRoom(t *testing.T) {
	lake := t.TempDir()
	g := newGateway(t, lake)
	g.takes(t, steps("a", 0, 10))
	g.takes(t, steps("b", 0, 10))
	g.cfg.MaxBytes = 1
	g.takes(t, steps("b", 10, 20))
	g.cfg.MaxBytes = 1 << 30
	g.takes(t, steps("b", 20, 30))
	g.passes(time.Hour)
	runs := rowsOf(t, lake, "runs")
	require.Len(t, runs, 1)
	assert.Equal(t, "a", runs[0]["run"])
	g.dropped(t, 30)
	again := newGateway(t, lake)
	again.takes(t, steps("b", 30, 40))
	again.passes(time.Hour)
	assert.Len(t, rowsOf(t, lake, "runs"), 1)
	again.dropped(t, 10)
}

// A run that another gateway leaves out is left out by all, with its spans counted, and is removed in time.
func TestNoRoomElsewhere(t *testing.T) {
	lake := t.TempDir()
	g, other := newGateway(t, lake), newGateway(t, lake)
	g.takes(t, steps("a", 0, 10))
	other.cfg.MaxBytes = 1
	other.passes(0)
	other.takes(t, steps("a", 10, 20))
	other.dropped(t, 10)
	g.passes(time.Minute)
	g.dropped(t, 10)
	g.takes(t, steps("a", 20, 30))
	g.dropped(t, 20)
	g.passes(g.cfg.Keep)
	assert.NoDirExists(t, filepath.Join(lake, spansDir, "run=a"))
}

// Spans of more runs than are known at a time are counted, and spans without a run.
func TestManyRuns(t *testing.T) {
	lake := t.TempDir()
	g := newGateway(t, lake)
	for i := range mostRuns {
		g.runs[fmt.Sprintf("run=x%d", i)] = new(run)
	}
	batch := steps("", 0, 3)
	for i := range 50_000 {
		steps(fmt.Sprintf("r%d", i), 0, 1).ResourceSpans().MoveAndAppendTo(batch.ResourceSpans())
	}
	g.takes(t, batch)
	g.takes(t, batch)
	g.dropped(t, 100_006)
	assert.Len(t, g.refused, 50_000)
	assert.NoDirExists(t, filepath.Join(lake, spansDir))
}

// Whatever spans hold, each makes a row or is counted.
func TestHostileSpans(t *testing.T) {
	lake := t.TempDir()
	g := newGateway(t, lake, "team")
	td := steps("../../=x", 0, 3)
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("team", "a\x00b\xff")
	list := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	list.At(0).Attributes().PutDouble(spans.AttrLoss, math.NaN())
	list.At(1).SetStartTimestamp(math.MaxUint64)
	list.At(1).SetEndTimestamp(0)
	list.At(2).Attributes().PutEmptyMap(spans.AttrIteration)
	td.ResourceSpans().AppendEmpty() // no resource
	g.takes(t, td)
	g.takes(t, ptrace.NewTraces())
	g.passes(time.Hour)
	runs := rowsOf(t, lake, "runs")
	require.Len(t, runs, 1)
	assert.Equal(t, "../../=x", runs[0]["run"])
	assert.Contains(t, runs[0]["labels"], `"team"`)
	assert.Len(t, rowsOf(t, lake, "steps"), 3)
}

// A lake that cannot be written does not hold up traces: the run is tried again.
func TestUnwritable(t *testing.T) {
	lake := t.TempDir()
	g := newGateway(t, lake)
	require.NoError(t, os.WriteFile(filepath.Join(lake, "runs"), nil, 0o600))
	g.takes(t, steps("a", 0, 3))
	g.passes(time.Hour)
	metadatatest.AssertEqualExporterRunLakeFailed(t, g.tel, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, os.Remove(filepath.Join(lake, "runs")))
	g.passes(time.Minute)
	assert.Len(t, rowsOf(t, lake, "runs"), 1)
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	for want, edit := range map[string]func(*Config){
		"":                         func(*Config) {},
		"'directory' is missing":   func(c *Config) { c.Directory = "" },
		"make the directory":       func(c *Config) { c.Directory = dir + "/none" },
		"'silence' must be":        func(c *Config) { c.Silence = 0 },
		"'keep' must not be":       func(c *Config) { c.Keep = time.Minute },
		"'max_bytes' must be at l": func(c *Config) { c.MaxBytes = 5 },
	} {
		cfg := defaultConfig()
		cfg.Directory = dir
		edit(cfg)
		if err := cfg.Validate(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}
