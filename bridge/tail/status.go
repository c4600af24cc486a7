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
	rateSamples = 30              // a rate is taken over so many surveys
	maxMute     = 3               // files that Status names
	muteLines   = 200             // after so many lines without a record a file is mute
	muteAfter   = 2 * time.Second // or when it was read to its end so long ago
)

// Status says what a Tailer reads, as of the last second. It is for telling people: nothing is decided by it.
type Status struct {
	Looked bool // the files were looked for once
	Globs  []GlobStatus
	Files  int
	Newest string // the path that was met last
	// Resumed counts the files whose position was stored; Finished counts the resumed files that had nothing to read since the start.
	Resumed, Finished int
	Size, Lag         int64           // bytes in the files, and how many of them are not read yet
	LagSince          time.Time       // when the file that is furthest behind had nothing to read; zero: no lag
	Rate              float64         // bytes a second
	Links             int             // symbolic links that match and are passed over
	Link              string          // path of one symbolic link
	PassedOver        nonlog.Tally    // what is no log by its name
	Kernel            kernelfs.Passed // file systems of the kernel that the globs reach
	Mute              []Mute          // some of the files that have had lines and no record
	MuteFiles         int
	MuteLines         int64
}

// GlobStatus says what a glob of Include or Document has matched.
type GlobStatus struct {
	Pattern   string
	Matched   bool
	Directory string // the directory, where the glob names one
}

// Mute is a file that had lines and no record.
type Mute struct {
	Path  string
	Lines int64
}

// ETA is how long reading the bytes not yet read will take; 0 where there are none or no rate is known.
func (s *Status) ETA() time.Duration {
	if s.Lag == 0 || s.Rate <= 0 {
		return 0
	}
	return time.Duration(min(float64(s.Lag)/s.Rate, 1e9) * float64(time.Second))
}

// Behind is for how long there has been something to read.
func (s *Status) Behind(now time.Time) time.Duration {
	if s.LagSince.IsZero() {
		return 0
	}
	return max(0, now.Sub(s.LagSince))
}

// Status returns what the Tailer reads.
func (t *Tailer) Status() Status {
	t.statusMu.Lock()
	defer t.statusMu.Unlock()
	return t.status
}

// sample is how much had been read at a time.
type rateSample struct {
	at    time.Time
	bytes int64
}

// survey takes stock once a second. It asks no stream for its lock, which one that is being read would keep.
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
	since := farFuture.UnixNano()
	for _, s := range w.streams {
		lines, lag := s.linesRead.Load(), s.lag.Load()
		st.Size += s.size.Load()
		st.Lag += lag
		if lag > 0 {
			at := s.caught.Load()
			if at <= 0 || at == farFuture.UnixNano() { // never, or it grew just now
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
		if lines > 0 && s.recordsRead.Load() == 0 && (lines >= muteLines || lag == 0 && now.Sub(s.activeAt) >= muteAfter) {
			st.MuteFiles++
			st.MuteLines += lines
			st.Mute = append(st.Mute, Mute{s.path, lines})
			if len(st.Mute) > maxMute {
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

func mostLines(a, b Mute) int {
	return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Path, b.Path))
}

// noteMatch remembers which globs matched a file.
func (w *sweeper) noteMatch(path string) {
	for i := range w.globs.Matching(path) {
		w.sights[i].matched = true
	}
}

// noteDirectory remembers that a glob names a directory.
func (w *sweeper) noteDirectory(path string) {
	for i := range w.globs.Matching(path) {
		if s := &w.sights[i]; s.directory == "" && filepath.Base(w.globs.Globs[i].Pattern) != "**" {
			s.directory = path
		}
	}
}

// progress publishes how far reading is.
type progress struct {
	size, lag         metric.Int64ObservableUpDownCounter
	behind, rate, eta metric.Float64ObservableGauge
}

func newProgress(m metric.Meter) (p progress, err error) {
	if p.size, err = m.Int64ObservableUpDownCounter("trainbridge.tail.size", metric.WithUnit("By"),
		metric.WithDescription("Bytes in the files that are read.")); err != nil {
		return p, err
	}
	if p.lag, err = m.Int64ObservableUpDownCounter("trainbridge.tail.lag", metric.WithUnit("By"),
		metric.WithDescription("Bytes in the files that are not read yet.")); err != nil {
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
		if *g.to, err = m.Float64ObservableGauge(g.name, metric.WithUnit(g.unit), metric.WithDescription(g.desc)); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *progress) observe(o metric.Observer, self metric.ObserveOption, st *Status, now time.Time) {
	o.ObserveInt64(p.size, st.Size, self)
	o.ObserveInt64(p.lag, st.Lag, self)
	o.ObserveFloat64(p.behind, st.Behind(now).Seconds(), self)
	o.ObserveFloat64(p.rate, st.Rate, self)
	o.ObserveFloat64(p.eta, st.ETA().Seconds(), self)
}
