package step

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/receivers/internal/envelope"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// HoldTimeout is the time that a record waits for its further lines. Loggers write them at once.
const HoldTimeout = time.Second

// Out takes the results of a Parser for the current line.
type Out interface {
	// Record returns an empty record to fill. The record returned before must not be used any more.
	Record() *record.Record
	// Emit takes the record. A line may have several.
	Emit(*record.Record)
	// Model sets the model trained by the log's job, from here on.
	Model(*spans.Model)
	// Prefix is the prefix of the line.
	Prefix() *line.Prefix
	// Restarted is called where the log shows that the job restarted: iterations count anew from the next record.
	Restarted()
	// Retold is called where the file is rewritten from its beginning: the same records come again, and get the same ids.
	Retold()
}

// Parser reads the lines of one stream, never concurrently.
type Parser interface {
	// Line reads one line, without its prefixes, and returns a verdict as tail.Handler.Line does. The text of a document is not peeled.
	Line(text []byte, out Out) (tail.Verdict, string)
	// Save and Restore are as in tail.Handler.
	Save() []byte
	Restore(state []byte)
}

// PointsConfig selects the points to send. Receivers of training logs squash it into their own config.
type PointsConfig struct {
	// LatestPoints sends only the last of the points of one series that would leave together: for an exporter that keeps only the last point, as prometheus does.
	// A log that is read from its beginning has thousands of points, more costly than its spans. Default false: all are sent.
	LatestPoints bool `mapstructure:"latest_points"`
}

// Settings of the handlers of one receiver.
type Settings struct {
	Receiver *filereceiver.Receiver
	Run      spans.RunConfig
	Points   PointsConfig
	Zone     *time.Location // of stamps without a zone
	// Duplicate is called for each repeated record.
	Duplicate func()
	// NewParser makes the parser of a stream. whole: lines are documents (tail.Stream.IsDocument).
	NewParser func(path string, whole bool) Parser
}

// NewHandlers returns the function that makes the handler of a stream. All its handlers share the memory of records (seen), which finds a record in two files.
func NewHandlers(set Settings) tail.NewHandler {
	known, batches := &seen{}, &filereceiver.Pool[stepBatch]{}
	return func(s *tail.Stream) tail.Handler { return newHandler(&set, known, batches, s) }
}

// stream is the part of tail.Stream that a handler needs.
type stream interface {
	Path() string
	IsDocument() bool
	Hold() tail.Held
	Release(tail.Held)
	Place() tail.Place
	ByArrival()
}

// handler turns the lines of one stream into batches. For each line, the parser calls the handler (Out) with the line's records.
type handler struct {
	set    *Settings
	seen   *seen // records of all the receiver's logs
	pool   *filereceiver.Pool[stepBatch]
	stream stream
	run    string // id of the run
	file   []byte // the name of the log: keys of records without iteration
	first  int64  // the log's first attempt, by its path
	byName int64  // the rank in the log's name; noRank: none
	parser Parser
	whole  bool // lines are documents

	peeler envelope.Peeler
	pieces envelope.Pieces
	prefix line.Prefix // of the current line
	stamps *clock.Stamps
	line   *tail.Line
	text   []byte         // of the line, peeled
	rec    *record.Record // for Record
	names  spans.Interner
	host   spans.Interner
	ids    *spans.StepIDs
	salt   uint64 // a hash of the run: setOf
	it     placed // of the current record

	state state
	// The track of the record before; mostly also the next record's.
	lastWho   who
	lastTrack *track
	model     *spans.Model // nil: unknown

	pending     pending // the record that waits for further lines
	emitted     int     // number of records of the current line
	duplicates  int     // repeated ones among emitted
	withoutStep int     // times of ranks without a step, among emitted
	copied      int     // copies of another rank's records, among emitted

	batch *stepBatch // nil between Cut and the next line, so that idle files keep no memory
	began int64      // ns: the first start of all batches
}

// state is the part that survives a restart.
type state struct {
	Tracks map[who]*track `json:"tracks,omitempty"`
	// Restarts is the number of restarts in the log: a later track begins after them.
	Restarts int64 `json:"restarts,omitempty"`
	// Trained says that steps came since the last restart. Only then does another line of a start mean a restart: each rank of a job may print the line, and the
	// first attempt has the line too.
	Trained bool         `json:"trained,omitempty"`
	Model   *spans.Model `json:"model,omitempty"`
	Parser  []byte       `json:"parser,omitempty"`
	Copies  copies       `json:"copies,omitzero"`
	// Pieces are those of a line split by a container runtime.
	Pieces envelope.Pieces `json:"pieces,omitzero"`
}

// who is a writer: a stream may have the records of several ranks, and of several formats with the same iterations at different intervals.
type who struct {
	source string
	rank   int64
}

// MarshalText returns the JSON key of a writer: rank and source.
func (w who) MarshalText() ([]byte, error) {
	return append(strconv.AppendInt(nil, w.rank, 10), " "+w.source...), nil
}

// UnmarshalText reads the output of MarshalText.
func (w *who) UnmarshalText(b []byte) (err error) {
	rank, source, _ := strings.Cut(string(b), " ")
	w.source = source
	w.rank, err = strconv.ParseInt(rank, 10, 64)
	return err
}

// track follows the records of one writer (who) in the stream: where its iterations stand.
type track struct {
	// Iteration is the iteration of the last step; Known says that a step had one.
	Iteration int64 `json:"iteration"`
	Known     bool  `json:"known"`
	// Epoch is the epoch of the last iteration, counted from 0 or 1; PerEpoch says that iterations restart with each epoch.
	Epoch    int64            `json:"epoch,omitempty"`
	PerEpoch bool             `json:"per_epoch,omitempty"`
	Tokens   tokens           `json:"tokens,omitzero"`
	Record   int64            `json:"record"`          // ordinal of the last record without iteration
	Attempt  int64            `json:"attempt"`         // number of times that the job restarted, or went back
	End      int64            `json:"end"`             // ns, of the last record; 0: none
	Aside    int64            `json:"aside,omitempty"` // ns of evaluations and checkpoints since
	Made     int64            `json:"made"`            // reconstructed time of a log without a clock, ns
	Own      float64          `json:"own,omitempty"`   // s, the time of the last logged step, of a source that logs times of single steps (trainers.Single)
	Source   spans.TimeSource `json:"source"`          // where End comes from
	// Evaluated is the iteration of an evaluation without a duration since the last step, if Evaluates.
	Evaluated int64 `json:"evaluated,omitempty"`
	Evaluates bool  `json:"evaluates,omitempty"`
	// Result is the time of the result of an evaluation without a duration since the last step, by the clock of the steps, ns; 0: none. Each is the time of one
	// step, s, in the last interval between two records of steps, without evaluations; 0: unknown.
	Result int64           `json:"result,omitempty"`
	Each   float64         `json:"each,omitempty"`
	Trace  pcommon.TraceID `json:"trace,omitzero"` // of the last step, if an id decided
	Last   key             `json:"last,omitzero"`  // the span of the last step
	// Values repeated by the records go to their resource, and hold for their evaluations and parts too.
	Units    unitTexts                     `json:"units,omitzero"`
	Steady   [spans.NumStated]spans.Steady `json:"steady,omitzero"`
	Stated   spans.Stated                  `json:"stated,omitzero"`
	rankText []byte                        // for the ids of the spans
}

const (
	noRank = -1
	// maxTracks bounds the writers followed in one file, and savedTracks the writers in its checkpoint.
	maxTracks   = 4096
	savedTracks = 64
)

// attemptOf returns the number of the attempt in torchrun's directory of a log, 0 without one: <log_dir>/<run_id>_<random>/attempt_<restarts>/<local
// rank>/stdout.log (PyTorch, torch/distributed/elastic/multiprocessing/api.py). FlagScale keeps the logs below its own directories.
func attemptOf(path string) int64 {
	for dir := filepath.Dir(path); len(dir) > 1; dir = filepath.Dir(dir) {
		if text, ok := strings.CutPrefix(filepath.Base(dir), "attempt_"); ok {
			if n, err := strconv.ParseUint(text, 10, 31); err == nil {
				return int64(n)
			}
		}
	}
	return 0
}

// rankOf returns the rank in the name of a log that each rank writes, such as 2 of "rank2.out", "train_rank-02.log" and "log.rank_2"; noRank: none, or the rank
// on the node ("local_rank2.log").
func rankOf(name string) int64 {
	const word = "rank"
	name = strings.ToLower(name)
	for at := strings.Index(name, word); at >= 0; {
		before, after := name[:at], strings.TrimLeft(name[at+len(word):], "_-=.")
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		ofWord := strings.HasSuffix(before, "local_") || before != "" && ascii.IsAlphanumeric(before[len(before)-1]) // "frank2"
		ends := digits == len(after) || !ascii.IsAlphanumeric(after[digits])
		if n, err := strconv.ParseInt(after[:digits], 10, 32); err == nil && !ofWord && ends {
			return n
		}
		next := strings.Index(after, word)
		if next < 0 {
			return noRank
		}
		at = len(name) - len(after) + next
	}
	return noRank
}

// newHandler makes the handler of a stream. known and batches are shared by the receiver's handlers.
func newHandler(set *Settings, known *seen, batches *filereceiver.Pool[stepBatch], s stream) *handler {
	h := &handler{
		set: set, seen: known, pool: batches, stream: s, run: set.Run.Run(s.Path()), file: []byte(filepath.Base(s.Path())),
		first: attemptOf(s.Path()), byName: rankOf(filepath.Base(s.Path())),
		stamps: clock.NewStamps(set.Zone), parser: set.NewParser(s.Path(), s.IsDocument()), whole: s.IsDocument(),
		rec: new(record.Record), began: math.MaxInt64,
	}
	h.state.Tracks = make(map[who]*track)
	h.ids = spans.NewStepIDs(h.run)
	_, span := spans.RunIDs(h.run)
	h.salt = binary.BigEndian.Uint64(span[:])
	return h
}

// Line implements tail.Handler: the parser reads the line without its wrapping, and emits its records into the batch. A line whose records were all left out
// for one reason is ignored, with the reason.
func (h *handler) Line(l *tail.Line) (tail.Verdict, string) {
	if h.batch == nil {
		h.batch = h.newBatch()
	}
	h.line, h.text = l, l.Text
	h.emitted, h.duplicates, h.withoutStep, h.copied = 0, 0, 0, 0
	if h.whole {
		h.prefix = line.Prefix{}
		h.forget() // a document is read from its beginning each time: that is no going back of the job
	} else {
		whole, more := h.pieces.Join(l.Text)
		if more {
			return tail.Ignored, "piece"
		}
		h.text = h.peeler.Peel(whole, &h.prefix)
	}
	verdict, reason := h.parse()
	if verdict == tail.Record && h.emitted > 0 && h.duplicates == h.emitted {
		return tail.Ignored, "duplicate"
	}
	if verdict == tail.Record && h.emitted > 0 && h.withoutStep == h.emitted {
		return tail.Ignored, "no_step"
	}
	if verdict == tail.Record && h.emitted > 0 && h.copied == h.emitted {
		return tail.Ignored, copied
	}
	return verdict, reason
}

// parse gives the text of a line to the parser. The text of a JSON object may hold several lines: each is parsed, and the verdict is that of the first record,
// else of the last line that is not ignored, else of the first line ("empty" without any).
func (h *handler) parse() (tail.Verdict, string) {
	if !h.peeler.Opened || h.whole {
		return h.parser.Line(h.text, h)
	}
	verdict, reason := tail.Ignored, "empty"
	for rest := h.text; len(rest) > 0; {
		end := bytes.IndexAny(rest, "\r\n")
		h.text = rest
		if end >= 0 {
			h.text, rest = rest[:end], rest[end+1:]
		} else {
			rest = nil
		}
		if len(h.text) == 0 {
			continue
		}
		if v, why := h.parser.Line(h.text, h); verdict != tail.Record && (v != tail.Ignored || reason == "empty") {
			verdict, reason = v, why
		}
	}
	return verdict, reason
}

// Record implements Out: it returns the record to fill, emptied.
func (h *handler) Record() *record.Record {
	h.rec.Reset()
	return h.rec
}

// Prefix implements Out: it returns the prefix of the line.
func (h *handler) Prefix() *line.Prefix { return &h.prefix }

// Model implements Out: it sets the model trained by the log's job.
func (h *handler) Model(m *spans.Model) {
	c := *m
	h.model, h.state.Model = &c, &c
}

// Restarted implements Out: it begins the next attempt, in which iterations count anew. Without a step since the last restart, nothing has restarted.
func (h *handler) Restarted() {
	h.flushPending()
	if !h.state.Trained {
		return
	}
	h.state.Restarts, h.state.Trained = h.state.Restarts+1, false
	for _, t := range h.state.Tracks {
		t.Known = false
		t.Attempt++
	}
}

// Retold implements Out: it forgets the positions of the records, as for a new file.
func (h *handler) Retold() {
	h.flushPending()
	h.state.Restarts, h.state.Trained = 0, false
	h.forget()
}

// Emit takes a record of the current line. Most records are placed (time, trace, span) and go into the batch. Others wait for further lines, or are such a
// further part of the waiting record, or are left out: a copy by another rank, a duplicate of another file, times of ranks without a step. The order of the
// cases matters: place moves the writer's track on, and so must see each step once.
func (h *handler) Emit(rec *record.Record) {
	h.emitted++
	// The same record by another rank into the same stream.
	if h.prefix.HasRank {
		isCopy, owner := h.state.Copies.check(rec, h.prefix.Rank)
		if isCopy {
			h.copied++
			return
		}
		h.prefix.Rank = owner
	}
	// Values of GPUs with their own time need no place among the steps.
	if rec.Unix > 0 || rec.Kind == record.Sample {
		h.batch.sample(h, rec, h.clocked(rec))
	}
	if rec.Kind == record.Sample || h.joinPending(rec) {
		return
	}
	if rec.Kind == record.Side && len(rec.Stages) > 0 && rec.Stages[0].HasRank {
		h.withoutStep++ // of setting up, loading, saving: a span per rank of each would say little
		return
	}
	if h.pending.unplaced && rec.Kind != record.Side { // places go in the order of the log
		h.flushPending()
	}
	it := &h.it
	if rec.Unnumbered {
		h.flushPending()
		h.pending.setUnplaced(h, rec)
		return
	}
	// A record that waits is read again after a restart: the checkpoint has the state before.
	var before earlier
	if rec.Open {
		before = h.stateBefore(who{rec.Source, h.rank(rec)})
	}
	h.place(rec, it)
	if rec.Unix == 0 {
		h.batch.sample(h, rec, it.end)
	}
	if rec.Kind == record.Side {
		h.batch.add(h, it, rec)
		return
	}
	// A duplicate does not end the waiting record: the duplicate may be its copy.
	if rec.Dedup && h.seen.checkAndAdd(it.id, h.setOf(it)) {
		h.duplicates++
		h.set.Duplicate()
		return
	}
	held := h.absorb(rec)
	h.flushPending()
	if rec.Open {
		h.pending.set(h, it, rec)
		h.pending.held = append(h.pending.held, held...)
		h.pending.before = before
		return
	}
	h.batch.add(h, it, rec)
}

// setOf returns the number of a record's set in seen. Runs and ranks have sets far apart; successive iterations have successive sets, which keeps the
// processor's cache warm.
func (h *handler) setOf(it *placed) uint64 {
	if !it.hasIteration {
		return binary.BigEndian.Uint64(it.id[:])
	}
	return h.salt + uint64(it.rank)*0x9e3779b97f4a7c15 + uint64(it.iteration) // the factor, 2^64 divided by the golden ratio, spreads ranks evenly
}

// rank returns the rank that the record states, else the rank before its line, else the rank in the log's name, else noRank.
func (h *handler) rank(rec *record.Record) int64 {
	switch {
	case rec.HasRank:
		return rec.Rank
	case h.prefix.HasRank:
		return h.prefix.Rank
	}
	return h.byName
}

// hostOf returns the host of the record's rank; "": unknown.
func (h *handler) hostOf(rec *record.Record) string {
	switch {
	case rec.Host != nil:
		return h.host.Text(rec.Host)
	case h.prefix.IP != nil:
		return h.host.Text(h.prefix.IP)
	}
	return ""
}

// clocked returns the time of a record of samples by its own clock, ns since the epoch. Parsers emit no samples without a clock; an unreadable one is replaced
// by the time of reading.
func (h *handler) clocked(rec *record.Record) int64 {
	if rec.Unix > 0 {
		return rec.Unix
	}
	ns, err := h.stamps.Parse(rec.Stamp)
	if err != nil {
		return h.line.Observed.UnixNano()
	}
	return ns
}

// track returns the track of a writer, made if new: it begins with the number of restarts so far. Where a file has more than maxTracks writers, all tracks are
// forgotten.
func (h *handler) track(w who) *track {
	if h.lastTrack != nil && w == h.lastWho {
		return h.lastTrack
	}
	t, ok := h.state.Tracks[w]
	if !ok {
		if len(h.state.Tracks) >= maxTracks {
			h.forget()
		}
		t = &track{Attempt: h.state.Restarts}
		h.state.Tracks[w] = t
	}
	if t.rankText == nil { // new, or restored
		t.rankText = strconv.AppendInt(nil, w.rank, 10)
	}
	h.lastWho, h.lastTrack = w, t
	return t
}

// latestTrack returns the track with the latest step among the format's writers, or an empty track. A report on ranks may be logged by a rank that logs no
// steps.
func (h *handler) latestTrack(source string) *track {
	last := &track{}
	for w, t := range h.state.Tracks {
		if w.source == source && t.Known && t.End > last.End {
			last = t
		}
	}
	return last
}

// forget drops all tracks: the next record of a writer is its first.
func (h *handler) forget() {
	clear(h.state.Tracks)
	h.lastTrack = nil
}

// place sets in it the time, the steps covered, the trace and the span of a record, and moves the track of the record's writer on. Records must be placed in
// the order of the log.
func (h *handler) place(rec *record.Record, it *placed) {
	*it = placed{
		item{kind: rec.Kind, rank: h.rank(rec), local: !rec.HasRank && h.prefix.Local},
		about{source: rec.Source, pid: h.prefix.PID, model: h.model},
	}
	it.host = h.hostOf(rec)
	t := h.track(who{rec.Source, it.rank})
	lastEnd, lastSource := t.End, t.Source
	raw := h.findEnd(rec, t, it)

	if n := rec.Get(record.Iteration); n >= 0 && n < 1<<53 { // beyond, a float64 skips integers
		it.iteration, it.hasIteration = int64(n), true
	} else {
		rec.Unset(record.Iteration)
	}
	if rec.Kind == record.Step {
		h.state.Trained = true
		h.noteEpoch(rec, it, t)
		before := t.Attempt
		h.countSteps(rec, it, t)
		if t.Attempt != before { // the process is another
			t.Own = 0
		}
		if rec.EitherTokens || rec.Counted {
			t.Tokens.count(rec, it, t.Attempt)
		}
	}
	it.attempt = h.first + t.Attempt
	if rec.Kind != record.Step && rec.Kind != record.Summary && !it.hasIteration {
		h.ofLastStep(rec, it, t)
	}
	findStart(rec, it, t, lastEnd, lastSource)
	if rec.Kind == record.Step && it.kindOfDuration == spans.DurationStep && trainers.Single(rec.Source) && !addEvaluation(rec, it, t) {
		t.Own = rec.Get(record.Duration)
	}
	if rec.Kind == record.Step && it.kindOfDuration == spans.DurationInterval {
		leaveEvaluation(rec, it, t, lastEnd)
	}
	if rec.Kind == record.Step || rec.Kind == record.Evaluation {
		t.Result = 0
		if rec.Kind == record.Evaluation && !rec.Has(record.Duration) && raw != nil && it.time == lastSource {
			t.Result = it.end
		}
		t.Evaluates = rec.Kind == record.Evaluation && it.hasIteration && !rec.Has(record.Duration)
		t.Evaluated = it.iteration
	}
	// The track's times are those of the steps, and what came between steps: evaluations, and checkpoints logged with a time (raw) of their own.
	switch rec.Kind {
	case record.Step:
		t.End, t.Source, t.Aside = it.end, it.time, 0
		if room := it.start - lastEnd; lastEnd > 0 && room > 0 && lastSource == it.time && !it.point {
			early := min(besideStep(rec, it), room)
			it.start, it.end = it.start-early, it.end-early
		}
	case record.Evaluation:
		t.Aside += it.end - it.start
	case record.Side:
		for i := range rec.Stages {
			if st := &rec.Stages[i]; raw != nil && trainers.PartOf(string(st.Name)) == trainers.Checkpointing {
				t.Aside += nanos(st.Seconds)
			}
		}
	case record.Summary, record.Ranks, record.Sample:
	}
	h.identify(rec, it, t, raw)
	switch rec.Kind {
	case record.Step:
		t.Last, t.Trace = it.key(), pcommon.TraceID{}
		if it.byID {
			t.Trace = it.trace
		}
	case record.Side: // late parts of a step's record still belong below the step's span
		if t.Last.Trace == it.trace {
			it.parent = t.Last.ID
		}
	case record.Evaluation, record.Summary, record.Ranks, record.Sample:
	}
}

// addEvaluation adds an evaluation of unknown length as a part to the step whose time includes the evaluation, as nanoGPT's does: the part is what the step
// took longer than the logged step before, with a checkpoint after the evaluation. It returns false if the record is no such step.
func addEvaluation(rec *record.Record, it *placed, t *track) bool {
	of := trainers.Of(rec.Source, it.kindOfDuration)
	more := rec.Get(record.Duration) - t.Own
	if !t.Evaluates || !it.hasIteration || it.iteration != t.Evaluated || of.Evaluation != trainers.Within || t.Own == 0 || !(more > 0) {
		return false
	}
	rec.Stages = append(rec.Stages, record.Stage{Name: evaluation, Seconds: more})
	return true
}

// leaveEvaluation shortens a step whose time is the interval since the record before (lastEnd, Unix ns), if the result of an evaluation was logged within: the
// step begins with the result, and the account takes the time before for the evaluation. The rest of the interval must be as long as the steps usually take:
// otherwise steps that the log leaves out lie before the evaluation.
func leaveEvaluation(rec *record.Record, it *placed, t *track, lastEnd int64) {
	each := rec.Get(record.Duration)
	if t.Result > lastEnd && t.Result < it.end && t.Each > 0 {
		if rest := float64(it.end-t.Result) / 1e9 / float64(max(it.covered, 1)); rest > usualRest*t.Each && each > t.Each {
			it.start, each = t.Result, rest
			rec.Set(record.Duration, rest)
		}
	}
	t.Each = each
}

// usualRest is the least share of the usual time of a step that a step has without its evaluation: steps vary, and a step left out would take a whole one.
const usualRest = 0.6

var evaluation = []byte(spans.PartEvaluation)

// ofLastStep gives a record without an iteration (a validation result, parts on separate lines, a report on ranks) the iteration of the step that its writer
// logged last, or that step's ordinal if it has no iteration. A report on ranks by a writer without steps belongs to the format's latest step.
func (h *handler) ofLastStep(rec *record.Record, it *placed, t *track) {
	if rec.Kind == record.Ranks && !t.Known {
		t = h.latestTrack(rec.Source) // by another rank
		it.attempt = h.first + t.Attempt
	}
	if rec.Kind == record.Ranks && it.end <= t.End && t.End-it.end < 1e9 {
		it.end = t.End // the report has whole seconds
	}
	it.iteration, it.hasIteration, it.ordinal = t.Iteration, t.Known, t.Record
	if it.hasIteration {
		rec.Set(record.Iteration, float64(it.iteration))
		it.ordinal = 0
	}
}

// findStart sets the start of a record with a known end: the stated start, else the end minus the stated duration of the steps covered, else, for a step, the
// end of the step before (lastEnd, from lastSource) plus the time of evaluations and checkpoints since (track.Aside). Without any, the record is a point in
// time.
func findStart(rec *record.Record, it *placed, t *track, lastEnd int64, lastSource spans.TimeSource) {
	steps, aside := max(it.covered, 1), t.Aside
	duration := rec.Get(record.Duration)
	if duration*float64(steps) >= maxSeconds { // a corrupt iteration, useless for times
		it.covered, steps = 0, 1
	}
	// An interval between two ends is the time of the steps only if both ends are by the same real clock, and the log says how many steps lie between.
	sameClock := lastSource == it.time && it.time != spans.TimeSynthetic
	buffered := rec.Late && it.time == spans.TimeObserved
	stepsKnown := it.covered > 0 || !it.hasIteration && !rec.Several
	switch {
	case rec.Start != 0 && rec.Start <= it.end:
		it.start = rec.Start
	case duration >= 0 && duration < maxSeconds:
		it.kindOfDuration = durationKinds[rec.Of]
		it.start = it.end - t.stepsTime(duration, steps)
	case rec.Kind == record.Step && lastEnd > 0 && lastEnd+aside < it.end && sameClock && !buffered && stepsKnown:
		it.start, it.kindOfDuration = lastEnd+aside, spans.DurationInterval
		rec.Set(record.Duration, float64(it.end-it.start)/1e9/float64(steps))
	default:
		it.start, it.kindOfDuration, it.point = it.end, "", true
	}
}

// besideStep returns the time between the end of a step and its line, in ns: the time of checkpoints and evaluations in the step's record that do not fit in
// the step. 0, unless the trainer's code leaves open where they are.
func besideStep(rec *record.Record, it *placed) int64 {
	loop := trainers.Of(rec.Source, it.kindOfDuration)
	others, beside := 0.0, 0.0
	for i := range rec.Stages {
		st := &rec.Stages[i]
		switch part := trainers.PartOf(string(st.Name)); {
		case st.HasRank, st.Place != nil && st.Place.Under != nil: // of one rank of many; in another part
		case part == trainers.Checkpointing && loop.Checkpoint == trainers.Unknown, part == trainers.Evaluating && loop.Evaluation == trainers.Unknown:
			beside += st.Seconds
		default:
			others += st.Seconds
		}
	}
	if !trainers.Beside(float64(it.end-it.start)/1e9, others, beside) {
		return 0
	}
	return nanos(beside)
}

var durationKinds = [...]string{record.OneStep: spans.DurationStep, record.Mean: spans.DurationMean, record.Median: spans.DurationMedian}

// maxSeconds bounds a plausible duration: a year.
const maxSeconds = 366 * 24 * 3600

// findEnd sets the end of the record (it.end, it.time), and returns the text of the time in the log, nil without one; the text is part of the span's id. The
// first of these sources is taken: the record's own clock or stamp, the stamp of the line or of its container; for a Side the time of the step before; the time
// of reading; for an evaluation the time of the step before; the file's modification time.
func (h *handler) findEnd(rec *record.Record, t *track, it *placed) []byte {
	if rec.Unix > 0 {
		it.end, it.time = rec.Unix, spans.TimeDerived
		return rec.RawUnix
	}
	for _, raw := range [...][]byte{rec.Stamp, h.prefix.Stamp, h.prefix.Container} {
		if raw == nil {
			continue
		}
		ns, err := h.stamps.Parse(raw)
		if err != nil && h.prefix.Yearless && len(raw) < 24 { // "Aug  3 09:14:23.123456": longer stamps have a year
			ns, err = h.stamps.Day(raw, h.line.Written())
		}
		if err == nil {
			it.end, it.time = ns, spans.TimeDerived
			return raw
		}
	}
	if rec.Kind == record.Side && t.End > 0 { // values of the last logged record
		it.end, it.time = t.End, t.Source
		return nil
	}
	if h.line.Live && !h.whole { // read as it was written
		h.stream.ByArrival()
		it.end, it.time = h.line.Observed.UnixNano(), spans.TimeObserved
		return nil
	}
	if rec.Kind == record.Evaluation && t.End > 0 && t.Source != spans.TimeSynthetic { // after the step logged last
		it.end, it.time = t.End, spans.TimeSynthetic
		if d := rec.Get(record.Duration); d > 0 && d < maxSeconds {
			it.end += t.Aside + nanos(d)
		}
		return nil
	}
	// No clock at all: the file's modification time plus the durations of the records before, to keep the order of the log.
	if t.Made == 0 {
		h.stream.ByArrival()
		t.Made = h.line.Written().UnixNano()
	}
	t.Made += madeTime(rec, t)
	it.end, it.time = t.Made, spans.TimeSynthetic
	return nil
}

// madeTime returns how much later, in ns, a record without a clock is than the record before: the record's stated duration, for each step covered; without a
// duration 1 ns for a step, to keep the order of the log, else 0. A Side and a Summary take no time of their own.
func madeTime(rec *record.Record, t *track) int64 {
	duration := rec.Get(record.Duration)
	if duration > 0 && duration < maxSeconds && rec.Kind != record.Side && rec.Kind != record.Summary {
		steps := int64(1)
		switch {
		case rec.Kind != record.Step:
		case rec.Covers > 0:
			steps = rec.Covers
		case rec.Has(record.Iteration) && t.Known:
			steps = max(int64(rec.Get(record.Iteration))-t.Iteration, 1)
		}
		if duration*float64(steps) >= maxSeconds { // a corrupt iteration
			steps = 1
		}
		return t.stepsTime(duration, steps)
	}
	if rec.Kind == record.Step {
		return 1
	}
	return 0
}

// stepsTime returns the time, in ns, of the steps covered by a record with a stated duration, in s. Where the log states the time of the logged step alone, and
// that step took long because of an evaluation or a stall, the steps between are taken to be as long as the logged step before.
func (t *track) stepsTime(duration float64, steps int64) int64 {
	others := duration
	if t.Own > 0 && duration > 2*t.Own {
		others = t.Own
	}
	return nanos(duration) + nanos(others)*(steps-1)
}

// noteEpoch records the epoch of a step. If iterations do not grow at a new epoch, the log counts them per epoch, and the job did not go back: t.Known is
// cleared, so that countSteps does not compare them. Where the log counts per epoch, an earlier epoch means that the job went back to a checkpoint.
func (h *handler) noteEpoch(rec *record.Record, it *placed, t *track) {
	x := rec.Get(record.Epoch)
	if !(x >= 0 && x < 1<<53) { // NaN: not stated
		return
	}
	epoch := int64(x)
	switch {
	case !t.Known || !it.hasIteration:
	case epoch > t.Epoch && it.iteration <= t.Iteration:
		t.PerEpoch, t.Known = true, false
	case epoch < t.Epoch && t.PerEpoch:
		t.Attempt++ // the job went back to a checkpoint
		t.Known = false
	}
	t.Epoch = epoch
}

// countSteps moves the track on to a step, and sets how many steps the record covers: the difference to the iteration before, unless the log states the number.
// An iteration below the one before means that the job went back to a checkpoint, and begins another attempt. A step without an iteration is numbered instead
// (ordinal). The number is unknown (0) for a step without an iteration and, unless stated, at the first iteration of a log, after going back, and at a repeated
// iteration; but iteration 1, first or repeated, covers one step.
func (h *handler) countSteps(rec *record.Record, it *placed, t *track) {
	if !it.hasIteration {
		t.Record++
		it.ordinal = t.Record
		it.covered = 0
		return
	}
	switch {
	case t.Known && it.iteration > t.Iteration:
		it.covered = it.iteration - t.Iteration
	case t.Known && it.iteration < t.Iteration:
		t.Attempt++ // the job went back to a checkpoint
	case it.iteration == 1:
		it.covered = 1
	}
	if rec.Covers > 0 {
		it.covered = rec.Covers
	}
	t.Iteration, t.Known = it.iteration, true
}

// traceByID sets the trace that an id in the log decides: an id of the record, or of the step that the record is about. It returns false if no id decides.
func (h *handler) traceByID(rec *record.Record, it *placed, t *track) bool {
	if trace, parent, ok := spans.Carried(h.run, &rec.IDs); ok {
		it.trace, it.parent = trace, parent
		return true
	}
	if t.Trace.IsEmpty() || rec.Kind == record.Step || rec.Kind == record.Summary || it.hasIteration && it.iteration != t.Iteration {
		return false
	}
	it.trace = t.Trace
	return true
}

// identify sets the ids of a record's trace and span, equal whenever the same log is read. An iteration has one trace in a run, whichever log it comes from, or
// one in each epoch if the log counts per epoch. A span's id follows from the record's natural key: its time as printed (raw), with its text (or rec.Key) where
// several records may have one time; without a time its text and the attempt.
func (h *handler) identify(rec *record.Record, it *placed, t *track, raw []byte) {
	var number [20]byte
	source := []byte(rec.Source)
	switch {
	case (rec.IDs.Any() || !t.Trace.IsEmpty()) && h.traceByID(rec, it, t): // the first condition spares the call: most logs have no ids
		it.byID = true
	case rec.Kind == record.Summary:
		it.trace, _ = spans.RunIDs(h.run)
	case it.hasIteration:
		it.trace = h.ids.Trace(it.iteration)
		if t.PerEpoch {
			it.trace = spans.KeyTraceID(h.run, spans.SpanStep, strconv.AppendInt(number[:0], it.iteration, 10), strconv.AppendInt(nil, t.Epoch, 10))
		}
	case rec.Kind == record.Ranks: // the rank with the iterations has another file
		it.trace, it.ordinal = spans.KeyTraceID(h.run, spans.SpanRanks, h.file, source, h.text), 0
	default: // without iterations a trace for each numbered step
		it.trace = spans.KeyTraceID(h.run, "train.record", h.file, source, strconv.AppendInt(number[:0], it.ordinal, 10))
	}
	key := rec.Key
	if key == nil {
		key = h.text
	}
	switch {
	case it.byID: // the trace may have several iterations
		short := strconv.AppendInt(spans.ShortKey(key), it.ordinal, 10)
		attempt := int64(0)
		if raw == nil { // a time differs from attempt to attempt by itself
			attempt = it.attempt
		}
		it.id = spans.SpanID(it.trace, roles[rec.Kind], source, t.rankText, raw, short, strconv.AppendInt(number[:0], attempt, 10))
	case raw == nil:
		it.id = spans.SpanID(it.trace, roles[rec.Kind], source, t.rankText, spans.ShortKey(key), strconv.AppendInt(number[:0], it.attempt, 10))
	case rec.Kind == record.Evaluation, rec.Key != nil: // several data sets, or the metrics of a step one by one, in the same second
		it.id = spans.SpanID(it.trace, roles[rec.Kind], source, t.rankText, raw, spans.ShortKey(key))
	default:
		it.id = spans.SpanID(it.trace, roles[rec.Kind], source, t.rankText, raw)
	}
}

// roles are the names of the spans by kind of record, and part of the ids. A Side has no span, only an id for its parts.
var roles = [...]string{
	record.Step: spans.SpanStep, record.Evaluation: spans.SpanEvaluation, record.Summary: spans.SpanSummary, record.Side: "train.side",
	record.Ranks: spans.SpanRanks,
}

// kinds are the kinds of the spans. Steps, most of the spans, need none: the name is enough.
var kinds = [...]string{
	record.Step: "", record.Evaluation: spans.KindEvaluation, record.Summary: spans.KindSummary, record.Ranks: spans.KindRanks,
}

// Expire implements tail.Handler: the waiting record goes into the batch if its first line was read before the given time. Within HoldTimeout a logger may
// still be writing the record's lines.
func (h *handler) Expire(before time.Time) {
	if h.batch == nil {
		h.batch = h.newBatch()
	}
	if h.pending.since < before.UnixNano() {
		h.flushPending()
	}
}

// Cut implements tail.Handler. A batch with a step also opens the run if a record of the batch starts before all records of earlier such batches: a run read
// offline begins with the earliest record (OpenRun).
func (h *handler) Cut() tail.Delivery {
	b := h.batch
	if b == nil {
		return nil
	}
	h.batch = nil
	if len(b.items)+len(b.samples) == 0 {
		b.Done()
		return nil
	}
	if b.steps > 0 { // a batch may have samples alone, and no record
		first := b.first()
		if first.start < h.began {
			h.began = first.start
			h.set.Receiver.OpenRun(h.set.Run.Opens(h.stream.Path(), first.start, b.shared[first.shared].time))
		}
	}
	return h.set.Receiver.Deliver(b)
}

// InOrder implements tail.InOrder: attempts are counted, and a step may begin at the end of the one before.
func (h *handler) InOrder() {}

// Save implements tail.Handler: it returns the state of the writers, savedTracks of them at most, the model and the parser's state. A waiting record is read
// again, so the state is that before the record. nil: there is nothing to save.
func (h *handler) Save() []byte {
	s := h.state
	if h.pending.open && !h.pending.unplaced { // an unplaced record has changed nothing yet
		h.pending.before.restore(&s)
	}
	s.Parser = h.parser.Save()
	s.Copies = h.state.Copies.settled()
	s.Pieces = h.pieces
	if len(s.Tracks) == 0 && s.Restarts == 0 && s.Model == nil && s.Parser == nil && s.Pieces.Out == nil && s.Pieces.Err == nil {
		return nil
	}
	if len(s.Tracks) > savedTracks {
		few := make(map[who]*track, savedTracks)
		for w, t := range s.Tracks {
			if len(few) == savedTracks {
				break
			}
			few[w] = t
		}
		s.Tracks = few
	}
	b, err := json.Marshal(&s)
	if err != nil {
		return nil // cannot be: numbers, texts and bytes
	}
	return b
}

// Restore implements tail.Handler: it takes over a state from Save. An unreadable state changes nothing.
func (h *handler) Restore(saved []byte) {
	var s state
	if json.Unmarshal(saved, &s) != nil {
		return
	}
	for w, t := range s.Tracks {
		if t != nil {
			t.Units.text = textOf(&t.Units.Units)
			h.state.Tracks[w] = t
		}
	}
	h.state.Restarts, h.state.Trained = s.Restarts, s.Trained
	h.state.Model, h.model = s.Model, s.Model
	h.state.Copies = s.Copies
	h.pieces = s.Pieces
	if s.Parser != nil {
		h.parser.Restore(s.Parser)
	}
}
