package ncclreceiver

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

func config(globs ...string) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Include, cfg.RunID, cfg.Timezone, cfg.SpanLinks = globs, "run", "UTC", true
	cfg.Collector = "" // the only one
	return cfg
}

// read reads logs whole.
func read(tb testing.TB, cfg *Config) *filereceivertest.Result {
	tb.Helper()
	return filereceivertest.Read(tb, receivertest.NewNopSettings(metadata.Type), cfg, newParts)
}

var attr = filereceivertest.Attr

// tree draws each trace as text: name, µs after the root's start, duration in µs, some attributes.
func tree(r *filereceivertest.Result) string {
	children := make(map[pcommon.SpanID][]ptrace.Span)
	var roots []ptrace.Span
	known := make(map[pcommon.SpanID]bool)
	for _, s := range r.All("") {
		known[s.SpanID()] = true
	}
	for _, s := range r.All("") {
		switch {
		case s.Name() == spans.SpanRun:
		case s.ParentSpanID().IsEmpty() || !known[s.ParentSpanID()]:
			roots = append(roots, s)
		default:
			children[s.ParentSpanID()] = append(children[s.ParentSpanID()], s)
		}
	}
	var w strings.Builder
	var draw func(s ptrace.Span, indent string, zero pcommon.Timestamp)
	draw = func(s ptrace.Span, indent string, zero pcommon.Timestamp) {
		fmt.Fprintf(&w, "%s%s %.3f +%.3f", indent, s.Name(), float64(int64(s.StartTimestamp())-int64(zero))/1e3, float64(s.EndTimestamp()-s.StartTimestamp())/1e3)
		for _, name := range []string{
			spans.AttrNCCLSequence, spans.AttrNCCLCommRank, spans.AttrNCCLRanks, spans.AttrNCCLLate, spans.AttrNCCLLateRank, spans.AttrNCCLChannelID,
			spans.AttrNCCLPeerRank,
			spans.AttrNCCLBandwidthBus, spans.AttrNCCLRanksMissing, spans.AttrIncompleteReason, spans.AttrNCCLState,
		} {
			if v := attr(s, name); v != "" {
				fmt.Fprintf(&w, " %s=%s", strings.TrimPrefix(name, "nccl."), v)
			}
		}
		w.WriteByte('\n')
		list := children[s.SpanID()]
		slices.SortStableFunc(list, func(a, b ptrace.Span) int {
			return cmp.Or(cmp.Compare(a.StartTimestamp(), b.StartTimestamp()), cmp.Compare(attr(a, spans.AttrNCCLCommRank), attr(b, spans.AttrNCCLCommRank)))
		})
		for _, c := range list {
			draw(c, indent+"  ", zero)
		}
	}
	// The order depends on the first file read.
	slices.SortStableFunc(roots, func(a, b ptrace.Span) int {
		rank := cmp.Compare(attr(a, spans.AttrNCCLCommRank), attr(b, spans.AttrNCCLCommRank))
		return cmp.Or(cmp.Compare(a.StartTimestamp(), b.StartTimestamp()), cmp.Compare(a.Name(), b.Name()), rank)
	})
	for _, s := range roots {
		draw(s, "", s.StartTimestamp())
	}
	return w.String()
}

// Every real log is read, and its accounts hold.
func TestRealLogs(t *testing.T) {
	var files []string
	for _, dir := range []string{"vccl_flow", "nccl_inspector", "nccl_example_profiler", "pytorch_flight_recorder"} {
		list, err := filepath.Glob("../../../shared/logs/" + dir + "/*")
		require.NoError(t, err)
		files = append(files, list...)
	}
	for _, file := range files {
		if filepath.Base(file) == "SOURCE.txt" {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			r := read(t, config(filereceivertest.Copy(t, file)))
			assert.Positive(t, r.Counts.Lines)
			t.Logf("%+v", r.Counts)
			t.Log("\n" + tree(r))
			for _, md := range r.Metrics.AllMetrics() {
				t.Log(md.DataPointCount())
			}
		})
	}
}
