package ncclreceiver

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// The largest dumps arrive whole, in messages within every backend's limit: at once if all ranks have a dump, and at the end of reading if a rank has none.
func TestLargestDump(t *testing.T) {
	collectives := 20_000
	if testing.Short() {
		collectives /= 8
	}
	entries := make([]string, collectives)
	for i := range entries {
		at := int64(epochUS+i*1000) * 1000
		entries[i] = fmt.Sprintf(`{"process_group": ["0", "default_pg"], "collective_seq_id": %d, "profiling_name": "nccl:all_reduce", "state": "completed",`+
			` "time_created_ns": %d, `+
			`"time_discovered_started_ns": %d, "time_discovered_completed_ns": %d}`, i+1, at, at, at+500_000)
	}
	dump := `{"pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": [` + strings.Join(entries, ",") + `]}`
	for name, c := range map[string]struct {
		ranks int
		read  func(*Config) *filereceivertest.Result
	}{
		"of all ranks": {2, func(cfg *Config) *filereceivertest.Result {
			return filereceivertest.Run(t, NewFactory(), cfg, func(r *filereceivertest.Result) bool { return r.Traces.SpanCount() > 3*collectives })
		}},
		"of one rank": {1, func(cfg *Config) *filereceivertest.Result { return read(t, cfg) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for rank := range c.ranks {
				filereceivertest.Put(t, dir, flightrecorder.Prefixes[0]+strconv.Itoa(rank), dump)
			}
			r := c.read(config(filepath.Join(dir, "*")))
			filereceivertest.Numbered(t, slices.Collect(maps.Values(roots(r))), spans.AttrNCCLSequence, collectives)
			assert.Len(t, rankSpans(r), c.ranks*collectives)
		})
	}
}

// Ranks of hosts with the longest names, given up together, arrive whole too, and so does the longest line.
func TestLargestLine(t *testing.T) {
	t.Run("hosts", func(t *testing.T) {
		const ranks, longest = 1900, 2048 // a record of NCCL Inspector has no longer names
		lines := make([]string, ranks)
		for i := range lines {
			lines[i] = record{host: fmt.Sprintf("%0*d", longest, i), rank: i + 1, of: ranks + 2, sn: 1, size: 4096, us: 9, start: 1}.String()
		}
		r := read(t, config(filereceivertest.Write(t, "all.log", lines...)))
		assert.Len(t, roots(r), 1)
		filereceivertest.Numbered(t, rankSpans(r), spans.AttrNCCLCommRank, ranks)
	})
	t.Run("channels", func(t *testing.T) {
		const channels = 8500
		line := record{of: 1, sn: 1, size: 4096, us: 9, start: 1}.String()
		event := line[strings.Index(line, `{"channel_id":0`):strings.LastIndex(line, "]")]
		line = strings.Replace(line, event, strings.Repeat(event+",", channels-1)+event, 1)
		assert.Greater(t, len(line), 1_000_000)
		r := filereceivertest.Run(t, NewFactory(), config(filereceivertest.Write(t, "all.log", line)),
			func(r *filereceivertest.Result) bool { return r.Traces.SpanCount() > 0 })
		for _, s := range r.All(spans.SpanNCCLChannel) {
			assert.Equal(t, strconv.Itoa(channels), attr(s, spans.AttrAggregateCount))
		}
		assert.Len(t, r.All(spans.SpanNCCLChannel), 1)
	})
}
