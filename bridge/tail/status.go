package tail

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/internal/kernelfs"
	"github.com/trainbridge/trainbridge/internal/nonlog"
)

const (
	surveyEvery = time.Second
	rateSamples = 30              // surveys in a rate
	maxMute     = 3               // files named by Status
	muteLines   = 200             // lines without a record after which a file is mute
	muteAfter   = 2 * time.Second // or the time since its end was reached
)

// Status is a Tailer's state of the last second, for people: no code decides by it.
type Status struct {
	Looked bool // the files were looked for once
	Globs  []GlobStatus
	Files  int
	Newest string // the path met last
	// Resumed counts the files with a stored position; Finished counts the resumed files without unread bytes since the start.
	Resumed, Finished int
	Size, Lag         int64           // bytes in the files, and unread bytes
	LagSince          time.Time       // when the file furthest behind was last fully read; zero: no lag
	Rate              float64         // bytes a second
	Links             int             // matching symbolic links that are skipped
	Link              string          // path of one symbolic link
	PassedOver        nonlog.Tally    // non-logs excluded by name
	Kernel            kernelfs.Passed // kernel file systems within the globs
	Mute              []Mute          // some of the files with lines but no record
	MuteFiles         int
	MuteLines         int64
}

// GlobStatus is the result of a glob of Include, Document or IncludeByContent.
type GlobStatus struct {
	Pattern   string
	Matched   bool
	Directory string // the directory, if the glob names one
}

// Mute is a file with lines but no record.
type Mute struct {
	Path  string
	Lines int64
}

// ETA returns the estimated time for the unread bytes, at most 31 years (a Duration ends at 292); 0 without such bytes or a known rate.
func (s *Status) ETA() time.Duration {
	if s.Lag == 0 || s.Rate <= 0 {
		return 0
	}
	return time.Duration(min(float64(s.Lag)/s.Rate, 1e9) * float64(time.Second))
}

// Behind returns the time since which bytes have been unread; 0: all is read.
func (s *Status) Behind(now time.Time) time.Duration {
	if s.LagSince.IsZero() {
		return 0
	}
	return max(0, now.Sub(s.LagSince))
}

// Status returns the Tailer's state.
func (t *Tailer) Status() Status {
	t.statusMu.Lock()
	defer t.statusMu.Unlock()
	return t.status
}

// rateSample is how much had been read at a time.
type rateSample struct {
	at    time.Time
	bytes int64
}

// survey makes a new Status once a second. It takes no stream's lock, which a stream being read would hold: the figures of streams are atomics.
func (w *sweeper) survey(now time.Time) {
	if age := now.Sub(w.surveyed); age >= 0 && age < surveyEvery {
		return
	}
	w.surveyed = now
	// Files whose receiver is decided by their lines are counted once all were looked at a little.
	looked := len(w.shared.Globs) == 0 || w.t.set.Sorter.settled() && !w.t.hasNews()
	st := Status{Looked: looked, Files: len(w.streams), Newest: w.newest, Links: len(w.links), PassedOver: w.passed, Kernel: maps.Clone(w.kernel)}
	for i := range w.globs.Globs {
		g := &w.globs.Globs[i]
		st.Globs = append(st.Globs, GlobStatus{g.Pattern, w.sights[i].matched, w.sights[i].directory})
	}
	for path := range w.links {
		if st.Link == "" || path < st.Link {
			st.Link = path
		}
	}
	since := farFuture.UnixNano() // when the stream furthest behind was last fully read
	for _, s := range w.streams {
		lines, lag := s.linesRead.Load(), s.lag.Load()
		st.Size += s.size.Load()
		st.Lag += lag
		if lag > 0 {
			at := s.caughtUp.Load()
			if at <= 0 || at == farFuture.UnixNano() { // never read to the end; or, for farFuture, unreadable or still being compressed
				at = s.metAt.UnixNano()
			}
			since = min(since, at)
		}
		if s.resumed {
			st.Resumed++
			if lines == 0 && lag == 0 {
				st.Finished++
			}
		}
		withoutRecord := lines > 0 && s.recordsRead.Load() == 0
		readLongAgo := lag == 0 && now.Sub(s.activeAt) >= muteAfter
		if withoutRecord && (lines >= muteLines || readLongAgo) {
			st.MuteFiles++
			st.MuteLines += lines
			st.Mute = append(st.Mute, Mute{s.path, lines})
			if len(st.Mute) > maxMute { // those with the most lines stay
				slices.SortFunc(st.Mute, mostLines)
				st.Mute = st.Mute[:maxMute]
			}
		}
	}
	slices.SortFunc(st.Mute, mostLines)
	if st.Lag > 0 {
		st.LagSince = time.Unix(0, since)
	}
	w.rates = append(w.rates, rateSample{now, w.t.counts.bytesRead()})
	if n := len(w.rates); n > rateSamples {
		w.rates = slices.Delete(w.rates, 0, n-rateSamples)
	}
	first, last := w.rates[0], w.rates[len(w.rates)-1]
	if d := last.at.Sub(first.at); d > 0 {
		st.Rate = float64(last.bytes-first.bytes) / d.Seconds()
	}
	w.t.statusMu.Lock()
	w.t.status = st
	w.t.statusMu.Unlock()
}

// mostLines orders mute files by their lines, most first.
func mostLines(a, b Mute) int {
	return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Path, b.Path))
}

// noteMatch records the globs that match a file.
func (w *sweeper) noteMatch(path string) {
	for i := range w.globs.Matching(path) {
		w.sights[i].matched = true
	}
}

// noteDirectory records the globs that name a directory: their user may have meant the files in the directory. A pattern that ends in ** names directories as
// well, on purpose.
func (w *sweeper) noteDirectory(path string) {
	for i := range w.globs.Matching(path) {
		if s := &w.sights[i]; s.directory == "" && filepath.Base(w.globs.Globs[i].Pattern) != "**" {
			s.directory = path
		}
	}
}

// progress has the metrics of how far reading is.
type progress struct {
	size, lag         metric.Int64ObservableUpDownCounter
	behind, rate, eta metric.Float64ObservableGauge
}

// newProgress makes the instruments.
func newProgress(m metric.Meter) (p progress, err error) {
	p.size, err = m.Int64ObservableUpDownCounter("trainbridge.tail.size", metric.WithUnit("By"),
		metric.WithDescription("Bytes in the files that are read."))
	if err != nil {
		return p, err
	}
	p.lag, err = m.Int64ObservableUpDownCounter("trainbridge.tail.lag", metric.WithUnit("By"),
		metric.WithDescription("Bytes in the files that are not read yet."))
	if err != nil {
		return p, err
	}
	for _, g := range []struct {
		to               *metric.Float64ObservableGauge
		name, unit, desc string
	}{
		{&p.behind, "trainbridge.tail.lag.time", "s", "How long ago the file that is furthest behind was read to its end, or was met. 0: all is read."},
		{&p.rate, "trainbridge.tail.rate", "By/s", "Bytes read a second, in the last 30 s."},
		{&p.eta, "trainbridge.tail.eta", "s", "How long reading the rest will take at that rate. 0: all is read, or nothing was read lately."},
	} {
		*g.to, err = m.Float64ObservableGauge(g.name, metric.WithUnit(g.unit), metric.WithDescription(g.desc))
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// observe publishes the figures of a Status for the receiver that self names.
func (p *progress) observe(o metric.Observer, self metric.ObserveOption, st *Status, now time.Time) {
	o.ObserveInt64(p.size, st.Size, self)
	o.ObserveInt64(p.lag, st.Lag, self)
	o.ObserveFloat64(p.behind, st.Behind(now).Seconds(), self)
	o.ObserveFloat64(p.rate, st.Rate, self)
	o.ObserveFloat64(p.eta, st.ETA().Seconds(), self)
}
