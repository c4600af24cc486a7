package ncclreceiver

import (
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

// sample takes a logged value.
func (h *handler) sample(s *parse.Sample) {
	p := collectives.Point{
		Metric: s.Metric, Run: h.from.Run, PID: s.PID, At: s.At, Value: s.Value, Statistic: s.Statistic, Record: s.Record,
		Rank: s.Rank, Source: s.Source, Destination: s.Destination,
	}
	p.Host, p.Comm = h.names.Text(s.Host), h.names.Text(s.Comm)
	if s.HasKind {
		p.Operation = s.Kind.String()
	}
	switch {
	case s.FromEnd:
		p.At = h.words.at(h, s.At)
	case p.At == 0:
		p.At = h.modTime
	}
	if s.Cumulative {
		p.Start = h.since(countKey{p.Host, p.Comm, p.Record, p.PID, p.Rank}, p.At)
		p.At = max(p.At, p.Start)
	}
	if s.Metric == spans.MetricNCCLDeviceBandwidth || s.Metric == spans.MetricNCCLDeviceAbnormal {
		p.File = h.stream.Path()
	}
	h.batch.points = append(h.batch.points, p)
}

// countKey identifies a logged count.
type countKey struct {
	host, comm, record string
	pid                int64
	rank               int32
}

// since is the first time of a count: its beginning is not in the log, and a new start time would mean a restarted count.
func (h *handler) since(key countKey, at int64) int64 {
	first, ok := h.counted[key]
	if !ok {
		if h.counted == nil || len(h.counted) >= maxCounted {
			h.counted = make(map[countKey]int64)
		}
		first = at
		h.counted[key] = at
	}
	return first
}

// maxCounted bounds the counts of a file: communicators × kinds of records.
const maxCounted = 4096

// words finds the times of VCCL's packed words: they count from a base missing from the log, and the newest word is as old as the file.
type words struct {
	file   int
	base   int64
	known  bool
	newest int64
}

func (w *words) at(h *handler, word int64) int64 {
	if !w.known || w.file != h.file || word < w.newest-int64(maxBack) {
		last := word
		h.stream.Ahead(func(text []byte) bool {
			if word, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
				last = max(last, int64(word&(1<<54-1)))
			}
			return true
		})
		*w = words{file: h.file, base: h.modTime - last, known: true}
	}
	w.newest = max(w.newest, word)
	return w.base + word
}

// maxBack bounds the age of other words relative to the newest: VCCL writes the words of the time around an anomaly.
const maxBack = 1_000_000_000
