package filereceiver

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/kernelfs"
	"github.com/trainbridge/trainbridge/internal/nonlog"
)

const (
	tellEvery     = time.Second      // how often the receivers are asked for news
	firstLook     = time.Second      // after the start: by then existing files were found
	lateLook      = 3 * time.Second  // a slow file system is waited for no longer
	foundEvery    = time.Minute      // between two lines about new files
	muteEvery     = 10 * time.Minute // between two lines about files without a record
	progressEvery = 30 * time.Second // between two lines about a backlog
	firstLineMost = 120              // bytes of a quoted line
	maxNamed      = 8                // globs in a line
)

// All receivers of log files in the process report together, and share the files that several of them may read.
var (
	together reporter
	sorter   tail.Sorter
)

// reporter logs in plain lines the work of the receivers of log files: each fact once, and any number of files in one line.
type reporter struct {
	mu      sync.Mutex
	members []*member
	began   time.Time
	looked  bool          // the first look was logged
	quit    chan struct{} // closed to end the goroutine of reports
	ended   chan struct{} // closed by the goroutine after its last log line

	unsorted func(now time.Time) ([]tail.Mute, int, int64) // tail.Sorter.Unsorted: files that no receiver understands
	alien    int                                           // number of files that no receiver understands, as logged last
	alienWas int                                           // the number at the report before
	alienAt  time.Time                                     // when alien was logged
}

// member is a receiver, with the facts already logged.
type member struct {
	id     string
	log    *zap.Logger
	state  string // directory of the positions; empty: unknown
	status func() tail.Status
	counts func() tail.Counts
	head   func(path string) (reader, first string) // id of the receiver that understands the file ("": none), and the file's first line

	files    int       // files found, as logged
	foundAt  time.Time // when new files were logged last
	mute     int       // number of files without a record (tail.Status.MuteFiles) at the last call of logMute
	muteAt   time.Time // when logMute has last logged a line; zero: never
	behindAt time.Time // when a backlog was logged last
	upToDate bool      // the accounts were logged, and no backlog since
}

// newMember returns the reporter's view of a receiver.
func newMember(r *Receiver) *member {
	return &member{
		id: r.Set.ID.String(), log: r.Set.Logger, status: r.tail.Status, counts: r.tail.Counts,
		head: func(path string) (string, string) {
			reader, first := sorter.Head(path)
			name := ""
			if reader != nil {
				name = reader.ID().String()
			}
			return name, r.redactor.Sample(first, firstLineMost)
		},
	}
}

// add begins to report on a receiver. The first receiver starts the goroutine that reports once a second on all of them.
func (t *reporter) add(m *member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members = append(t.members, m)
	if len(t.members) > 1 {
		return
	}
	t.began, t.looked, t.alien, t.alienWas, t.alienAt = time.Now(), false, 0, 0, time.Time{}
	t.unsorted = sorter.Unsorted
	quit, ended := make(chan struct{}), make(chan struct{})
	t.quit, t.ended = quit, ended
	go func() {
		defer close(ended)
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case now := <-tick.C:
				t.report(now)
			}
		}
	}()
}

// remove ends the reports on a receiver. After the last receiver is removed, the goroutine of reports has ended.
func (t *reporter) remove(m *member) {
	t.mu.Lock()
	had, ended := len(t.members), t.ended
	t.members = slices.DeleteFunc(t.members, func(o *member) bool { return o == m })
	last := had == 1 && len(t.members) == 0
	if last {
		close(t.quit)
	}
	t.mu.Unlock()
	if last {
		<-ended // without the lock, which report needs; a receiver added meanwhile starts a goroutine of its own
	}
}

// report logs the news of all receivers since the report before. Nothing is logged until firstLook after the start, nor until all receivers have found their
// existing files; from lateLook on, receivers still looking are not waited for.
func (t *reporter) report(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.members) == 0 {
		return // the last receiver ended meanwhile
	}
	all := make([]tail.Status, len(t.members))
	allLooked := true
	for i, m := range t.members {
		all[i] = m.status()
		allLooked = allLooked && all[i].Looked
	}
	if !t.looked {
		age := now.Sub(t.began)
		stillLooking := !allLooked && age < lateLook
		if age < firstLook || stillLooking {
			return
		}
		t.looked = true
		t.logFirst(all)
	}
	var read []string
	for i, m := range t.members {
		if text := m.report(&all[i], now); text != "" {
			read = append(read, text)
		}
	}
	if len(read) > 0 {
		what := "All is read: "
		if slices.ContainsFunc(all, func(st tail.Status) bool { return st.Lag > 0 }) {
			what = "Read to the end, while other receivers still read: "
		}
		t.members[0].log.Info(what + strings.Join(read, "; "))
	}
	t.logUnsorted(now)
}

// logFirst logs the files found at the start, the globs without files, and the files passed over by name, each in one line for all receivers. all has the state
// of each member.
func (t *reporter) logFirst(all []tail.Status) {
	log := t.members[0].log
	var parts []string                // "tq_trace 12": files of each receiver
	files, finished, going := 0, 0, 0 // going: files read in part by an earlier process
	size, state := int64(0), ""
	// Receivers with the same globs pass over the same files: the greatest number counts, not the sum.
	links, link, passed, kernel := 0, "", nonlog.Tally(nil), kernelfs.Passed{}
	for i, m := range t.members {
		st := &all[i]
		m.files = st.Files
		if st.Files > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", m.id, st.Files))
		}
		files += st.Files
		size += st.Size
		finished += st.Finished
		going += st.Resumed - st.Finished
		state = cmp.Or(state, m.state)
		if st.PassedOver.Sum() > passed.Sum() {
			passed = st.PassedOver
		}
		maps.Copy(kernel, st.Kernel)
		if st.Links > links {
			links, link = st.Links, st.Link
		}
	}
	if files > 0 {
		text := fmt.Sprintf("Reading %s, %s: %s", plural(files, "file"), human.Bytes(float64(size)), strings.Join(parts, ", "))
		if going > 0 {
			text += fmt.Sprintf("; %d from where reading stopped before", going)
		}
		if finished > 0 {
			text += fmt.Sprintf(
				"; %d already read to the end: to read %s again, stop, remove %s and start", finished, pronoun(finished), cmp.Or(state, "the directory of 'storage'"),
			)
		}
		log.Info(text)
	}
	if missing := t.missing(all); len(missing) > 0 {
		text := "Nothing matches "
		if files == 0 && !slices.ContainsFunc(all, anyMatched) {
			text = "No log to read: nothing matches "
		}
		text += strings.Join(missing, ", ")
		if slices.ContainsFunc(missing, func(g string) bool { return !strings.HasPrefix(g, "/") }) {
			if dir, err := os.Getwd(); err == nil {
				text += ", in " + dir
			}
		}
		if files == 0 {
			text += ". Name your logs in TRAINBRIDGE_LOGS, such as '/data/job/**/*.log', or in 'include' of a configuration of your own"
		}
		log.Info(text + "; files that come later are found")
	}
	if passed.Sum() > 0 {
		log.Info(fmt.Sprintf("Passed over by name, as no logs: %s: 'include_non_logs: true' reads them", passed))
	}
	if len(kernel) > 0 {
		log.Info(fmt.Sprintf("Passed over, as the kernel's: %s", kernel))
	}
	if links > 0 {
		log.Info(
			fmt.Sprintf(
				"%s passed over, such as %s: 'follow_symlinks: true' reads what %s to, and TRAINBRIDGE_FOLLOW_SYMLINKS=true sets it in the shipped configuration",
				plural(links, "symbolic link"), link, map[bool]string{true: "it leads", false: "they lead"}[links == 1],
			),
		)
	}
}

// anyMatched reports whether a glob of the receiver matches a file.
func anyMatched(st tail.Status) bool {
	return slices.ContainsFunc(st.Globs, func(g tail.GlobStatus) bool { return g.Matched })
}

// missing returns the globs without a match, each with its receivers: "/data/*.log (tq_trace, nccl)". A glob that names a directory comes with advice. Beyond
// maxNamed globs only the number is stated.
func (t *reporter) missing(all []tail.Status) (out []string) {
	var globs []string                                          // in the order of the receivers
	of, directory := map[string][]string{}, map[string]string{} // by glob: receivers, and the directory if the glob names one
	for i, m := range t.members {
		for _, g := range all[i].Globs {
			if g.Matched {
				continue
			}
			if of[g.Pattern] == nil {
				globs = append(globs, g.Pattern)
			}
			of[g.Pattern] = append(of[g.Pattern], m.id)
			directory[g.Pattern] = g.Directory
		}
	}
	for i, g := range globs {
		if i == maxNamed {
			return append(out, fmt.Sprintf("%d more", len(globs)-i))
		}
		text := fmt.Sprintf("%s (%s)", g, strings.Join(of[g], ", "))
		if d := directory[g]; d != "" {
			text = fmt.Sprintf("%s, where %s is a directory: write %s/* for its files, %s/** for those below it, too (%s)", g, d, d, d, strings.Join(of[g], ", "))
		}
		out = append(out, text)
	}
	return out
}

// report logs the news of one receiver: new files, a backlog, files without a record. When the receiver has just read everything, it returns the receiver's
// accounts ("tq_trace 90 lines, 80 with records, 10 not for us"), for a line of all receivers; else "".
func (m *member) report(st *tail.Status, now time.Time) (read string) {
	if n := st.Files - m.files; n > 0 && now.Sub(m.foundAt) >= foundEvery {
		m.log.Info(fmt.Sprintf("%s: %s found, such as %s", m.id, plural(n, "new file"), st.Newest))
		m.files, m.foundAt = st.Files, now
	}
	m.files = min(m.files, st.Files) // otherwise files that left would hide as many new ones
	read = m.progress(st, now)
	loggedLately := !m.muteAt.IsZero() && now.Sub(m.muteAt) < muteEvery
	if st.MuteFiles > m.mute && !loggedLately {
		m.logMute(st, now)
	}
	return read
}

// progress logs how much is read of a backlog that has lasted for progressEvery, once in progressEvery. When everything is read, for the first time or after
// such a backlog, it returns the accounts of the receiver; else "".
func (m *member) progress(st *tail.Status, now time.Time) (read string) {
	switch {
	case st.Lag == 0:
		if c := m.counts(); !m.upToDate && c.Lines > 0 {
			m.upToDate = true
			return m.id + " " + account(c)
		}
	case st.Behind(now) >= progressEvery && now.Sub(m.behindAt) >= progressEvery:
		m.behindAt, m.upToDate = now, false
		done := st.Size - st.Lag
		text := fmt.Sprintf("%s: %s read (%d %%)", m.id, human.Of(human.Bytes(float64(done)), human.Bytes(float64(st.Size))), 100*done/max(st.Size, 1))
		if left := st.ETA(); left > 0 {
			text += fmt.Sprintf(", %s/s, %s to go", human.Bytes(st.Rate), human.Seconds(math.Ceil(left.Seconds())))
		} else {
			text += ", and nothing in the last 30 s: what was read before waits to be accepted"
		}
		m.log.Info(text)
	}
	return ""
}

// account returns the number of lines by verdict, such as "90 lines, 80 with records, 10 not for us".
func account(c tail.Counts) string {
	notOurs, bad := int64(0), int64(0)
	for _, n := range c.Ignored {
		notOurs += n
	}
	for _, n := range c.Rejected {
		bad += n
	}
	text := fmt.Sprintf("%s, %d with records, %d not for us", plural(c.Lines, "line"), c.Records, notOurs)
	if bad > 0 {
		text += fmt.Sprintf(", %d that cannot be read", bad)
	}
	return text
}

// logMute logs the number of files without any record (st.MuteFiles), with the path and first line of a file as an example, and the receiver that understands
// the file, if any. report calls logMute when the number has grown, and not again within muteEvery of a logged line. A file that this receiver understands is
// no example, because its records are not lost: an earlier process has read them, or they repeat the records of another file. If all files of st.Mute are of
// this kind, nothing is logged.
func (m *member) logMute(st *tail.Status, now time.Time) {
	m.mute = st.MuteFiles
	for _, f := range st.Mute {
		reader, first := m.head(f.Path)
		understoodHere := reader == m.id
		if understoodHere {
			continue
		}
		m.muteAt = now
		what := fmt.Sprintf("%s: %s: %s, no record", m.id, f.Path, plural(f.Lines, "line"))
		if st.MuteFiles > 1 {
			what = fmt.Sprintf("%s: no record in %d of %s, such as %s with %s", m.id, st.MuteFiles, plural(st.Files, "file"), f.Path, plural(f.Lines, "line"))
		}
		if reader != "" {
			what += fmt.Sprintf("; it looks like a log for %s: name it in 'include' of that one, or all logs in TRAINBRIDGE_LOGS", reader)
		} else {
			what += "; it looks like none of the logs that are known here"
		}
		m.log.Info(what + "; first line: " + first)
		return
	}
}

// logUnsorted logs the number of files that include_by_content matches and no receiver understands, with one as an example: when the number has grown since it
// was logged, and every muteEvery at most, unless tenfold.
func (t *reporter) logUnsorted(now time.Time) {
	some, files, lines := t.unsorted(now)
	if files != t.alienWas { // still growing, while files are looked at: one line shall count them all
		t.alienWas = files
		return
	}
	lately := !t.alienAt.IsZero() && now.Sub(t.alienAt) < muteEvery && files < 10*t.alien // a busy host's first count may be of a small part
	if files <= t.alien || lately {
		return
	}
	t.alien, t.alienAt = files, now
	m := t.members[0]
	_, first := m.head(some[0].Path)
	what := fmt.Sprintf("%s: %s, no record: no receiver understands it so far", some[0].Path, plural(some[0].Lines, "line"))
	if files > 1 {
		what = fmt.Sprintf("No receiver understands %d files with %s so far, such as %s", files, plural(lines, "line"), some[0].Path)
	}
	m.log.Info(what + "; first line: " + first)
}

// plural returns a number with its noun, such as "3 files". Digits are not grouped: the lines of the collector's log are also read by programs.
func plural[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// pronoun returns the word for n files in a sentence, "it" or "them".
func pronoun(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}
