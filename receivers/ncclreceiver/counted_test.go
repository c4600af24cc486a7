package ncclreceiver

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

const epoch = 1781000000 // s

// message is a record of VCCL's schema: µs since the epoch, µs.
type message struct {
	rank, to   int
	name       string
	size       int64
	start, us  float64
	collective int // the index of the true collective
}

func (m message) String() string {
	return fmt.Sprintf(`{"timestamp": %.6f, "rank": %d, "operation": "%s", "algorithm": "ring", "message_size": %d, "duration_us": %.1f,`+
		` "bandwidth_gbps": %.3f, "src_rank": %d, "dst_rank": %d, `+
		`"channel_id": 0, "stream_id": 7, "error_count": 0, "retry_count": 0}`, epoch+m.start/1e6, m.rank, m.name, m.size, m.us, float64(m.size)/m.us/1e3*8,
		m.rank, m.to)
}

// healthy returns collectives of ranks that are all fast, at 20 to 25 GB/s: four in a row, then 80 ms of work.
func healthy(rnd *rand.Rand, ranks, n int) (out [][]message) {
	names, sizes := []string{"allreduce", "allgather", "reducescatter"}, []int64{4 << 20, 64 << 20, 16 << 20, 1 << 20}
	now := 0.
	for i := range n {
		size := sizes[i%len(sizes)]
		us := float64(size) / (20e3 + 5e3*rnd.Float64())
		if i%4 == 0 {
			now += 80_000
		}
		arrive, last := make([]float64, ranks), now
		for r := range arrive {
			arrive[r] = now + 300*rnd.Float64()
			last = max(last, arrive[r])
		}
		var of []message
		for r := range ranks {
			of = append(of, message{rank: r, to: (r + 1) % ranks, name: names[i%len(names)], size: size, start: arrive[r], us: last + us - arrive[r], collective: i})
		}
		now = last + us + 200
		out = append(out, of)
	}
	return out
}

// perFile writes the kept records of each rank into its file and returns the glob.
func perFile(t *testing.T, collectives [][]message, keep func(m message) bool) (glob string, kept []message) {
	t.Helper()
	files := make(map[int]*strings.Builder)
	for _, c := range collectives {
		for _, m := range c {
			if files[m.rank] == nil {
				files[m.rank] = new(strings.Builder)
			}
			if keep(m) {
				kept = append(kept, m)
				files[m.rank].WriteString(m.String() + "\n")
			}
		}
	}
	dir := t.TempDir()
	for rank, text := range files {
		filereceivertest.Put(t, dir, fmt.Sprintf("rank_%d.json", rank), text.String())
	}
	return filepath.Join(dir, "*.json"), kept
}

// accusations are the attributes of a root that make a verdict.
var accusations = []string{
	spans.AttrNCCLMismatch, spans.AttrNCCLStragglerRank, spans.AttrNCCLBandwidthDeviation, spans.AttrNCCLHang, spans.AttrNCCLRanksMissingCount,
	spans.AttrNCCLSequenceGap,
	spans.AttrIncomplete,
}

// mostLate is the largest lateness of a rank of healthy, s.
const mostLate = 300e-6

// accused returns the roots with an accusation, or with a false lateness, and the largest bandwidth of a root, By/s.
func accused(r *filereceivertest.Result) (bad []string, most float64) {
	for _, s := range r.All("") {
		if v, ok := s.Attributes().Get(spans.AttrNCCLBandwidthAlgorithm); ok {
			most = max(most, spans.ValueNumber(v))
		}
		if attr(s, spans.AttrNCCLRanks) == "" {
			continue
		}
		if v, ok := s.Attributes().Get(spans.AttrNCCLLateMax); ok && v.Double() > mostLate {
			bad = append(bad, fmt.Sprintf("%s %s: late by %f", s.Name(), attr(s, spans.AttrNCCLSequence), v.Double()))
		}
		for _, name := range accusations {
			if v := attr(s, name); v != "" {
				bad = append(bad, fmt.Sprintf("%s %s: %s=%s", s.Name(), attr(s, spans.AttrNCCLSequence), name, v))
				break
			}
		}
	}
	return bad, most
}

// truth checks that only records of one collective were joined, and that each record is there once.
func truth(t *testing.T, r *filereceivertest.Result, kept []message) (joined int) {
	t.Helper()
	of := make(map[string]int)
	for _, m := range kept {
		of[fmt.Sprintf("%d %.6f %.1f", m.rank, epoch+m.start/1e6, m.us)] = m.collective
	}
	byTrace := make(map[string][]int)
	transfers := make(map[pcommon.SpanID]ptrace.Span)
	for _, s := range r.All(spans.SpanNCCLTransfer) {
		transfers[s.ParentSpanID()] = s
	}
	add := func(s ptrace.Span) {
		if v, ok := transfers[s.SpanID()]; ok && attr(s, spans.AttrNCCLLast) != "" { // drawn from the first arrival on
			s.SetStartTimestamp(v.StartTimestamp())
			s.SetEndTimestamp(v.EndTimestamp())
		}
		at := s.StartTimestamp() / 1e3
		key := fmt.Sprintf("%s %d.%06d %.1f", attr(s, spans.AttrNCCLCommRank), at/1e6, at%1e6, float64(s.EndTimestamp()-s.StartTimestamp())/1e3)
		c, ok := of[key]
		require.True(t, ok, key)
		delete(of, key)
		byTrace[s.TraceID().String()] = append(byTrace[s.TraceID().String()], c)
	}
	for _, s := range r.All("") {
		if attr(s, spans.AttrNCCLCommRank) != "" {
			add(s)
		}
	}
	assert.Empty(t, of, "each record is there")
	for _, list := range byTrace {
		for _, c := range list {
			assert.Equal(t, list[0], c, "what is joined is one collective")
		}
		if len(list) > 1 {
			joined++
		}
	}
	return joined
}

// VCCL's document recommends NCCL_TELEMETRY_SAMPLE_RATE=0.1, and each rank samples independently: the n-th records of two ranks are of collectives seconds
// apart. Regression: joined by number, 300 of 303 healthy collectives were "bad", some with a multiple of the possible bandwidth.
func TestSampledPerRank(t *testing.T) {
	for _, ranks := range []int{2, 4, 16} {
		t.Run(strconv.Itoa(ranks), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(14, 1))
			glob, kept := perFile(t, healthy(rnd, ranks, 303), func(message) bool { return rnd.Float64() < 0.1 })
			set := receivertest.NewNopSettings(metadata.Type)
			core, logged := observer.New(zap.WarnLevel)
			set.Logger = zap.New(core)
			r := filereceivertest.Read(t, set, config(glob), newParts)
			sound(t, r)
			assert.Equal(t, 1, logged.FilterMessageSnippet("do not pair up").Len(), "it is said once")
			bad, most := accused(r)
			assert.Empty(t, bad, "%d", len(bad))
			assert.LessOrEqual(t, most, 25e9)
			several, of := 0, make(map[int]int)
			for _, m := range kept {
				if of[m.collective]++; of[m.collective] == 2 {
					several++
				}
			}
			assert.Equal(t, several, truth(t, r, kept), "what two ranks have kept is found again")
		})
	}
}

// One lost line shifts all later records of its rank.
func TestOneLostLine(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 2))
	glob, kept := perFile(t, healthy(rnd, 8, 303), func(m message) bool { return m.rank != 3 || m.collective != 41 })
	r := read(t, config(glob))
	sound(t, r)
	truth(t, r, kept)
	bad, most := accused(r)
	assert.Empty(t, bad)
	assert.LessOrEqual(t, most, 25e9)
	late := 0
	for _, s := range r.All("") {
		if attr(s, spans.AttrNCCLLateMax) != "" {
			late++
		}
	}
	assert.GreaterOrEqual(t, late, 270, "of all but those around the loss it is known who was late")
}

// Process groups are not in the log: collectives of all ranks and collectives of pairs of ranks are mixed.
func TestTwoGroupsInOneLog(t *testing.T) {
	const ranks = 8
	rnd := rand.New(rand.NewPCG(14, 3))
	collectives := healthy(rnd, ranks, 303)
	for i := range collectives {
		if i%3 == 1 { // each pair of ranks communicates at its own time; the last pair only now and then
			for r := range collectives[i] {
				m := &collectives[i][r]
				m.to, m.collective = r^1, 1000*i+r/2
				m.start += float64(r/2) * 700
			}
			a := collectives[i]
			for r := 0; r < ranks; r += 2 {
				end := max(a[r].start, a[r+1].start) + float64(a[r].size)/22e3
				a[r].us, a[r+1].us = end-a[r].start, end-a[r+1].start
			}
			if i%2 == 0 {
				collectives[i] = a[:6]
			}
		}
	}
	glob, kept := perFile(t, collectives, func(message) bool { return true })
	r := read(t, config(glob))
	sound(t, r)
	truth(t, r, kept)
	bad, most := accused(r)
	assert.Empty(t, bad)
	assert.LessOrEqual(t, most, 25e9)
}
