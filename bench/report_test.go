package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestSchedstat(t *testing.T) {
	ran, err := schedstat([]byte("1500000 88501 2\n"))
	require.NoError(t, err)
	assert.Equal(t, 1500*time.Microsecond, ran)
	for _, bad := range []string{"", "1500000", "x 1 2"} {
		_, err := schedstat([]byte(bad))
		assert.Error(t, err, bad)
	}
}

func TestStatus(t *testing.T) {
	m, err := status([]byte("Name:\ttrainbridge\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\nRssAnon:\t   51200 kB\nRssFile:\t   40960 kB\nRssShmem:\t       0 kB\n"))
	require.NoError(t, err)
	assert.Equal(t, memory{anon: 50, file: 40, peak: 200}, m)
	_, err = status([]byte("Name:\tkthreadd\nThreads:\t1\n"))
	assert.ErrorContains(t, err, "/proc/PID/status")
}

// A contender that crashed has no CPU time, not the last one.
func TestEnded(t *testing.T) {
	if exec.Command("taskset", "-c", "0", "true").Run() != nil {
		t.Skip("no taskset, or no core 0")
	}
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, os.Mkdir(dir, 0o700))
	p, err := start(dir, []string{"echo", "ready"}, nil, "ready")
	require.NoError(t, err)
	<-p.ended
	_, err = p.cpu()
	require.ErrorContains(t, err, "has ended")
	p.stop()
}

// Two rounds of trainbridge and file_log over 1,000 lines.
func TestReport(t *testing.T) {
	tb := &table{
		duel: &duels[1], lines: 1000, size: 187_000, contenders: contenders("tb", "tb", "", "", "", "")[:3],
		samples: [][]sample{
			{{cpu: 0.003, memory: memory{60, 30, 90}, items: 1000, bytes: 300_000}, {cpu: 0.001, memory: memory{70, 30, 95}, items: 1000, bytes: 300_000}},
			{{cpu: 0.002, items: 1000, bytes: 300_000}, {cpu: 0.002, items: 1000, bytes: 300_000}},
			{{cpu: 0.010, memory: memory{120, 30, 140}, items: 500, bytes: 150_000}, {cpu: 0.014, items: 500, bytes: 150_000}},
		},
	}
	tb.contenders[2].name = peer
	tb.contenders, tb.samples = append(tb.contenders, contender{name: rotel}), append(tb.samples, nil)
	tb.short = map[string]string{rotel: "900 of 1000 items in round 1"}
	var b strings.Builder
	tb.print(&b)
	(&report{tables: []*table{tb}, size: 51e6}).print(&b)
	for _, line := range []string{
		"### JSONL: 1000 lines of 187 B",
		"| trainbridge | 2.00 (1.00–3.00) | 1.00× | 1.00× | 1.00 | 300 | 300 | 70 | 30 | 95 |",
		"| file_log | 12.00 (10.00–14.00) | 6.00× | 12.00× | 0.50 | 150 | 300 | 120 | 30 | 140 |",
		"| JSONL, 187 B | 500 | 1.00 | 6.0× / 12.0× | 300 | 70 + 30 | 120 + 30 |",
		"| JSONL, CPU per line of file_log beside trainbridge's | 6.0× | ≥ 5× |",
		"| shipped topology against exporter alone, median of the logs | 1.00 (worst: JSONL, 1.00) | ≤ 1.08 |",
		"| peak RSS of any log | 95 MiB (JSONL) | ≤ 100 MiB |",
		"rotel has no row: it delivered 900 of 1000 items in round 1.",
		"| binary | 51 MB | ≤ 55 MB |",
	} {
		assert.Contains(t, b.String(), line+"\n")
	}
	assert.NotContains(t, b.String(), "| rotel |")
}

// What a log becomes at least is counted by gen.
func TestWanted(t *testing.T) {
	d := duel{unit: "spans", each: 1, regex: `^\d`}
	n, err := d.spans("wrote 3600 lines to 1 file(s) at x: 240 functions (240 complete) in 20 batches, 1440 spans; truth: not written")
	require.NoError(t, err)
	assert.Equal(t, int64(1440), n)
	_, err = d.spans("wrote 3600 lines")
	require.ErrorContains(t, err, "no spans")
	assert.Equal(t, int64(2), d.fits([]byte("1 a\nhead\n2 b\n")))
	tb := table{lines: 3, fit: 2, spans: n}
	for _, c := range []struct {
		contender
		want int64
	}{{contender{}, 1440}, {contender{records: true}, 3}, {contender{records: true, drops: true}, 2}} {
		assert.Equal(t, c.want, tb.want(&c.contender))
	}
}

// The variables of the peer's configuration are YAML with the duel's meaning.
func TestPeerConfig(t *testing.T) {
	for i := range duels {
		var ops []map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(duels[i].operators(true)), &ops))
		require.Len(t, ops, 1)
		if duels[i].regex != "" {
			assert.Equal(t, duels[i].regex, ops[0]["regex"])
		}
		var statements []string
		require.NoError(t, yaml.Unmarshal([]byte(duels[i].statements()), &statements))
		assert.Len(t, statements, len(duels[i].ints)+len(duels[i].doubles))
	}
}

// Rows with and without Kafka.
func TestKafkaTable(t *testing.T) {
	var b strings.Builder
	kafkaTable{
		{name: "agent", records: 400_000, cpu: []float64{1, 0.8, 2}, bytes: 4_200_000, memory: memory{anon: 20, peak: 60}},
		{name: "one receiver", records: 400_000, cpu: []float64{2}},
	}.print(&b)
	assert.Contains(t, b.String(), "| agent | 400000 | 400 (200–500) | 10.5 | 20 | 60 |\n| one receiver | 400000 | 200 (200–200) | – | 0 | 0 |\n")
}
