package offline

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Zone is the zone of the stamps of some logs.
type Zone struct {
	Log  string // a path, a glob, or the name of a file in any directory
	Name string // an IANA name, or an offset such as +08:00
}

// ParseZone parses LOG=ZONE.
func ParseZone(text string) (Zone, error) {
	log, name, ok := strings.Cut(text, "=")
	if !ok || log == "" || name == "" {
		return Zone{}, fmt.Errorf("%q: write LOG=ZONE, such as 'train.log=Asia/Shanghai' or '**/*.log=+08:00'", text)
	}
	if !doublestar.ValidatePathPattern(log) {
		return Zone{}, fmt.Errorf("%q: %q is no glob", text, log)
	}
	if _, err := (clock.ZoneConfig{Timezone: name}).Location(); err != nil {
		return Zone{}, fmt.Errorf("%q: %q is no zone: use an IANA name such as Asia/Shanghai, or an offset such as +08:00", text, name)
	}
	return Zone{Log: log, Name: name}, nil
}

// Of reports whether the zone is given for a file (an absolute path without links). A Log without a slash is the name of a file, or a glob of names, in any
// directory; otherwise a path or a glob of paths.
func (z *Zone) Of(file string) bool {
	if !strings.ContainsRune(z.Log, filepath.Separator) {
		ok, _ := doublestar.PathMatch(z.Log, filepath.Base(file))
		return ok || z.Log == filepath.Base(file)
	}
	path, err := resolve(z.Log)
	if err != nil { // no file has the path: a glob
		path, err = filepath.Abs(z.Log)
		if err != nil {
			return false
		}
	}
	if path == file {
		return true
	}
	ok, _ := doublestar.PathMatch(path, file)
	return ok
}

// zoneName returns the zone given for a file, the last of several matches; "": none.
func (o *Options) zoneName(file string) (name string) {
	for i := range o.Zones {
		if o.Zones[i].Of(file) {
			name = o.Zones[i].Name
		}
	}
	return name
}

// byZone groups files by the zone given for them; "" has those without.
func (o *Options) byZone(files []string) map[string][]string {
	by := make(map[string][]string)
	for _, f := range files {
		zone := o.zoneName(f)
		by[zone] = append(by[zone], f)
	}
	return by
}

// Shift is a log whose stamps, without a zone, are of a different zone from the one assumed.
type Shift struct {
	Run   string
	Files []*File // one or more, whose times are shifted alike: all of the run with the same lead
	// Ahead is the lead of their times over the rest of the run's logs: a multiple of a quarter of an hour.
	Ahead time.Duration
	Other string // the name of one log of the rest, which the first of Files was compared with
	Zone  string // the right offset of the stamps, such as +08:00
}

// extent is the time from the first to the last span of some files.
type extent struct {
	scope       string // of the spans: identifies the receiver
	file        string // one of the files
	first, last int64  // ns since 1970, of the first span's start and the last span's end
	longest     int64  // ns, the longest of the spans checked
}

// extents are the extents of the training logs, file by file, and of the logs of each other receiver, together. findShifts compares them to find logs with
// stamps of a different zone from the one assumed.
type extents struct {
	mu sync.Mutex
	by map[extentKey]*extent
}

// extentKey is a receiver's scope, and of training logs the file.
type extentKey struct{ scope, file string }

// before returns a consumer that records the extents of spans and passes the spans on to next; nil if next is nil.
func (e *extents) before(next consumer.Traces) consumer.Traces {
	if next == nil {
		return nil
	}
	e.by = make(map[extentKey]*extent)
	out, _ := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		e.noteExtents(td)
		return next.ConsumeTraces(ctx, td)
	}, consumer.WithCapabilities(next.Capabilities()))
	return out
}

// noteExtents records the times of the first and the last span of each list: spans are nearly in order of time.
func (e *extents) noteExtents(td ptrace.Traces) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, rs := range td.ResourceSpans().All() {
		made := !hasOwnTimes(rs.Resource().Attributes(), true)
		for _, ss := range rs.ScopeSpans().All() {
			list := ss.Spans()
			if made || list.Len() == 0 {
				continue
			}
			e.widen(ss.Scope().Name(), list.At(0))
			e.widen(ss.Scope().Name(), list.At(list.Len()-1))
		}
	}
}

// hasOwnTimes reports whether the times of a resource or a span are from the log, neither synthetic nor observed, by an attribute; otherwise is returned if the
// attribute is missing.
func hasOwnTimes(m pcommon.Map, otherwise bool) bool {
	v, ok := m.Get(spans.AttrTimeSource)
	if !ok {
		return otherwise
	}
	of := spans.TimeSource(v.Str())
	return of != spans.TimeSynthetic && of != spans.TimeObserved
}

// widen adds the time of a span to the extent of its file or scope. Spans of runs, parts of steps, and spans marked as synthetic or observed have no times of
// the log and are skipped. Called with e.mu held.
func (e *extents) widen(scope string, s ptrace.Span) {
	k := extentKey{scope: scope}
	kind := view.KindOf(s)
	if kind == view.KindRun || kind == view.KindPart || !hasOwnTimes(s.Attributes(), true) {
		return
	}
	file := spans.AttrText(s.Attributes(), spans.AttrLogFile)
	if kind == view.KindStep || kind == view.KindEvaluation {
		k.file = file
	}
	start, end := int64(s.StartTimestamp()), int64(s.EndTimestamp())
	x := e.by[k]
	if x == nil {
		k = extentKey{strings.Clone(scope), strings.Clone(k.file)} // texts of the span may be parts of a whole batch's memory
		x = &extent{scope: k.scope, first: start, last: end}
		e.by[k] = x
	}
	if x.file == "" {
		x.file = strings.Clone(file)
	}
	x.first, x.last, x.longest = min(x.first, start), max(x.last, end), max(x.longest, end-start)
}

const (
	quarter       = int64(15 * time.Minute) // all zones are whole quarters of an hour apart
	halfHour      = 2 * quarter
	hour          = 4 * quarter
	mostShifted   = 104 * quarter           // from UTC-12 to UTC+14
	mostApart     = int64(10 * time.Minute) // logs of a job begin within this time of each other, if they end together
	mostUnaligned = int64(10 * time.Second) // beyond a step, the largest distance of the first and the last records of two logs of a job
)

// zoneLead returns the lead of log a over log b, ns, if their stamps are certainly of different zones; 0 otherwise. A lead is a whole number of quarters of an
// hour. The leads tried are those that make the two logs end together, or begin together. With a shifted back by the lead, the shorter log must lie within the
// longer, and a coincidence must be unlikely.
func zoneLead(a, b *extent) int64 {
	near := mostUnaligned + max(a.longest, b.longest) // two beginnings, or two ends, this far apart count as the same
	short := min(a.last-a.first, b.last-b.first)
	common := func(lead int64) int64 { return min(a.last-lead, b.last) - max(a.first-lead, b.first) } // ns that both cover, negative for a gap
	round := func(ns int64) int64 { return int64(math.Round(float64(ns)/float64(quarter))) * quarter }
	for _, lead := range [...]int64{round(a.last - b.last), round(a.first - b.first)} {
		begins, ends := abs(a.first-b.first-lead), abs(a.last-b.last-lead) // how far apart the beginnings and the ends are after the shift
		// Nine tenths of the shorter log, less near, must lie within the longer.
		within := common(lead) >= short*9/10-near
		if lead == 0 || abs(lead) > mostShifted || !within {
			continue
		}
		switch {
		// Both begin and end together, and as stamped the two hardly overlap.
		case begins <= near && ends <= near && !a.overlaps(b):
			return lead
		// As stamped the two do not overlap at all: beginnings or ends are enough, for zones of whole and half hours.
		case common(0) < 0 && (begins <= near || ends <= near) && lead%halfHour == 0:
			return lead
		// The two overlap in part, as logs of a long job do: the ends must agree, the beginnings nearly, for zones of whole hours.
		case ends <= near && begins <= mostApart && lead%hour == 0:
			return lead
		}
	}
	return 0
}

// overlaps reports whether, as stamped, more than half of the shorter of two logs lies within the longer.
func (x *extent) overlaps(b *extent) bool {
	return min(x.last, b.last)-max(x.first, b.first) > min(x.last-x.first, b.last-b.first)/2
}

// abs returns the absolute value.
func abs(ns int64) int64 { return max(ns, -ns) }

// findShifts finds the logs of a run whose stamps have no zone and are of a different zone from the one assumed, and adds them to r.Shifts. Each log without a
// zone, a, is compared with the others, b.
func (r *Reading) findShifts(run string, seen *extents, opt Options) {
	zoneless := make(map[*extent]bool) // logs with stamps without a zone
	var all []*extent
	for _, x := range seen.by {
		if r.File(x.file) != nil {
			all = append(all, x)
			zoneless[x] = hasNoZone(x.file)
		}
	}
	slices.SortFunc(all, func(a, b *extent) int { return strings.Compare(a.file, b.file) })
	for _, zoned := range [...]bool{true, false} { // first logs with a zone are the measure, then logs without
		for _, b := range all {
			if zoneless[b] == zoned {
				continue
			}
			// A log b that overlaps a log without a zone, as stamped, is no measure: those two fit, and logs hours away may be of another attempt.
			if slices.ContainsFunc(all, func(a *extent) bool { return a != b && zoneless[a] && a.overlaps(b) }) {
				continue
			}
			for _, a := range all {
				if a == b || !zoneless[a] || r.isShifted(a.file) || r.isShifted(b.file) {
					continue
				}
				if !zoned && a.scope == b.scope { // two logs of the same kind of writer have the same zone
					continue
				}
				if by := zoneLead(a, b); by != 0 {
					r.addShift(run, a, b, time.Duration(by), opt)
				}
			}
		}
	}
}

// isShifted reports whether a file is already in r.Shifts.
func (r *Reading) isShifted(file string) bool {
	return slices.ContainsFunc(r.Shifts, func(s Shift) bool { return slices.Contains(s.Files, r.File(file)) })
}

// addShift adds to r.Shifts that the times of log a are ahead of those of log b: to the Shift of the run with the same lead, or to a new one with the zone that
// the stamps of a must have. A zone that does not exist is not added.
func (r *Reading) addShift(run string, a, b *extent, ahead time.Duration, opt Options) {
	file := r.File(a.file)
	for i := range r.Shifts {
		if s := &r.Shifts[i]; s.Run == run && s.Ahead == ahead {
			s.Files = append(s.Files, file)
			return
		}
	}
	_, assumed := time.Unix(0, a.first).In(opt.zoneOf(file)).Zone() // s east of UTC
	right := assumed + int(ahead/time.Second)
	if right < -12*3600 || right > 14*3600 {
		return // no place on earth has the offset
	}
	name := time.Unix(0, 0).In(time.FixedZone("", right)).Format("-07:00")
	r.Shifts = append(r.Shifts, Shift{Run: run, Files: []*File{file}, Ahead: ahead, Other: r.Name(b.file), Zone: name})
}

// zoneOf returns the zone assumed for the stamps of a file: the one given for the file, else the timezone of its receiver, else that of this host.
func (o *Options) zoneOf(f *File) *time.Location {
	name := o.zoneName(f.Path)
	for _, r := range o.Receivers {
		if zone, ok := r.Conf["timezone"].(string); ok && name == "" && r.ID.String() == f.Receiver {
			name = zone
		}
	}
	loc, err := clock.ZoneConfig{Timezone: name}.Location()
	if err != nil {
		return time.Local
	}
	return loc
}

// stamp is a date and time of day, with an optional zone.
var stamp = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(Z|[+-]\d\d:?\d\d)?`)

// hasNoZone reports whether a log has stamps, and none with a zone, in its first 64 KiB.
func hasNoZone(path string) bool {
	src, err := openContent(path)
	if err != nil {
		return false
	}
	defer src.Close()
	head := make([]byte, 64<<10)
	n, _ := io.ReadFull(src, head)
	found := false
	for _, m := range stamp.FindAllSubmatchIndex(head[:n], -1) {
		if m[2] >= 0 { // the group of the zone
			return false
		}
		found = true
	}
	return found
}
