package ncclreceiver

import (
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

// sample adds a point of a value that the log states, such as a bandwidth or a count of dropped records. A value without a time gets the file's modification
// time.
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
		p.At = h.words.timeOf(h, s.At)
	case p.At == 0:
		p.At = h.modTime
	}
	if s.Cumulative {
		p.Start = h.since(countKey{p.Host, p.Comm, p.Record, p.PID, p.Rank}, p.At)
		p.At = max(p.At, p.Start) // no point is older than its start
	}
	// A network card is known by its log only: the file becomes a label of the point.
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

// since returns the start time for the points of a count: the time of its first point, as the beginning of the count is not in the log. All points have the
// same start, because another start would mean that the count has begun anew; only beyond maxCounted counts all starts are forgotten.
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

// words finds the times of VCCL's packed words: a word counts ns from a time (base) that the log does not state. The newest word of a file was the last to be
// written, so that its time is taken to be the file's modification time.
type words struct {
	file   int   // of the stream: the following are about it
	base   int64 // the time from which words count, Unix ns
	known  bool  // base is
	newest int64 // greatest word read so far
}

// timeOf returns the time of a word, Unix ns. base is computed at the first word of a file, and at a word so much older than the newest that the writer has
// begun anew: timeOf then looks through the rest of the file (tail.Stream.Ahead) for the newest word, which was written at the file's modification time.
func (w *words) timeOf(h *handler, word int64) int64 {
	isRestart := word < w.newest-int64(maxBack)
	if !w.known || w.file != h.file || isRestart {
		newest := word
		h.stream.Ahead(func(text []byte) bool {
			if later, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
				newest = max(newest, int64(later&(1<<54-1))) // the lower 54 bits are the time
			}
			return true
		})
		*w = words{file: h.file, base: h.modTime - newest, known: true}
	}
	w.newest = max(w.newest, word)
	return w.base + word
}

// maxBack is how much older than the newest, ns, a word of the same writer may be: VCCL writes the words of the time around an anomaly.
const maxBack = 1_000_000_000
