package lake

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/exporters/runlakeexporter"
	layout "github.com/trainbridge/trainbridge/internal/lake"
)

// reportAlone are the columns of runs that only the logs tell.
var reportAlone = []string{"severity", "conclusion", "end_kind", "end_reason", "end_ranks", "end_hosts"}

// The lake of a gateway has the rows that `report` has of the same logs, but for what logs alone tell.
func TestGatewayEqualsReport(t *testing.T) {
	var jobs []string
	for seed := range 2 {
		opt := gen.DefaultOptions()
		opt.Out, opt.Faults, opt.Seed, opt.NCCL = t.TempDir(), gen.Faults(), uint64(seed), gen.NCCLInspector
		opt.Start = time.Date(2026, 11, 24+seed, 23, 59, 0, 0, time.UTC)
		_, err := gen.Generate(t.Context(), opt)
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(opt.Out, "truth.json")))
		jobs = append(jobs, opt.Out)
	}
	reported, exported := t.TempDir(), t.TempDir()
	require.NoError(t, report(t, reported, jobs...))

	f := runlakeexporter.NewFactory()
	cfg := f.CreateDefaultConfig().(*runlakeexporter.Config)
	cfg.Directory = exported
	e, err := f.CreateTraces(t.Context(), exportertest.NewNopSettings(f.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	in, err := offline.Open(jobs, strings.NewReader(""))
	require.NoError(t, err)
	defer in.Close()
	_, err = offline.Read(t.Context(), in, offline.Options{Positions: true}, offline.Sink{Traces: e})
	require.NoError(t, err)
	require.NoError(t, e.Shutdown(t.Context()))

	want := filesOf(t, reported)
	assert.NotEmpty(t, want)
	for _, path := range want {
		name := path[len(reported):]
		names, rows := rowsOf(t, path)
		_, got := rowsOf(t, exported+name)
		require.Len(t, got, len(rows), name)
		for i := range rows {
			for k, column := range names {
				if strings.HasPrefix(name, "/"+layout.RunsTable+"/") && slices.Contains(reportAlone, column) {
					assert.Empty(t, got[i][k], column)
					continue
				}
				same(t, rows[i][k], got[i][k], name+" "+column)
			}
		}
	}
	ofReport, _, _, err := History(reported, "", 0)
	require.NoError(t, err)
	ofGateway, before, left, err := History(exported, "", 0)
	require.NoError(t, err)
	assert.Equal(t, ofReport.Run, ofGateway.Run)
	assert.Len(t, before, 1)
	assert.Empty(t, left)
}

// same compares cells; sums differ in their last digits with the order of spans.
func same(t *testing.T, want, got, what string) {
	t.Helper()
	x, err := strconv.ParseFloat(want, 64)
	y, err2 := strconv.ParseFloat(got, 64)
	switch {
	case err == nil && err2 == nil:
		assert.InDelta(t, x, y, 1e-9*max(1, x, -x), what)
	case strings.HasPrefix(want, "{"): // an id such as 6164737795e28375 is JSON, too
		assert.JSONEq(t, want, got, what)
	default:
		assert.Equal(t, want, got, what)
	}
}
