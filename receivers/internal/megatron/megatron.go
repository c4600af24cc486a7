package megatron

import (
	"bytes"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is record.Record's Source of everything here.
const Source = "megatron"

// Out takes the records of a line; step.Out implements Out. A record is emitted before Record is called again, or not at all.
type Out interface {
	Record() *record.Record
	Emit(*record.Record)
}

// Result is the kind of a line.
type Result uint8

// The results.
const (
	Other     Result = iota // not a line of Megatron
	Records                 // one or more, handed to Out
	Ignored                 // a line of Megatron without a record, with the reason
	Begin                   // the argument dump begins: a job starts
	Arguments               // Parser.Arguments has the arguments of the line
	End                     // the argument dump ends
	Malformed               // an unreadable record, with the reason
)

// Argument is one of Megatron's arguments, as printed. An Argument lives as long as the line.
type Argument struct{ Name, Value []byte }

// maxDigits bounds the integers: a longer one is none of Megatron's counts.
const maxDigits = 15

// Parser reads the lines of one stream, without their prefixes. The zero value is ready. Not safe for concurrent use.
type Parser struct {
	// Dump says that the argument dump has begun and not ended. A caller keeps Dump over a restart.
	Dump bool

	args   []Argument // of the line read last
	names  []byte     // memory of the names made for extras of the line
	order  []*known   // the columns with which the iteration line before began: mostly also the next one's
	ranked bool       // under the title "times across ranks (ms):": the next lines are a timer's name, and its time on each rank
	timer  []byte     // name of the timer whose ranks come next
}

// Arguments are the arguments in the line for which Line returned the Result Arguments.
func (p *Parser) Arguments() []Argument { return p.args }

var (
	wordIteration  = []byte("iteration")
	wordRank       = []byte("[Rank ")
	wordMemory     = []byte(" memory (MB) |")
	wordValidation = []byte("validation loss at ")
	wordPadded     = []byte("> padded vocab (size: ")
	wordNewSize    = []byte("(new size: ")
	wordLogger     = []byte("INFO:megatron.")
	wordStragglers = []byte("| MnRtt/Rnk: ")
	wordEtpt       = []byte("^^^^ ") // before the ranks with extreme throughput (Etpt: estimated throughput)

	// Times of a StragglerDetector report: Rtt is the round trip (a step's forward passes), DRtt the getting of data.
	nameRtt    = []byte("Rtt")
	nameDRtt   = []byte("DRtt")
	nameBottom = []byte("Bottom_Ranks")
	nameTop    = []byte("Top_Ranks")
)

// Line reads one line: its records go to out, and the result says what the line is, with a reason for Ignored and Malformed. Each form of line is tried where
// the first byte allows; most lines are none of Megatron's.
func (p *Parser) Line(b []byte, out Out) (Result, string) {
	t := trim(b)
	if len(t) == 0 {
		return Other, ""
	}
	p.names = p.names[:0]
	t = bare(t)
	switch c := t[0]; {
	case c == '-':
		if result, reason := p.rule(t); result != Other {
			return result, reason
		}
	case c == '>':
		if p.padded(t) {
			return Arguments, ""
		}
	case c == '(', c == 'm', c == 't':
		if result, reason := p.timers(t, out); result != Other {
			return result, reason
		}
	case c == '|', c == '[' && bytes.Contains(t, wordStragglers):
		if result, reason := stragglers(t, out); result != Other {
			return result, reason
		}
	case c == '^' && bytes.HasPrefix(t, wordEtpt):
		if etpt(t, out) {
			return Records, ""
		}
	case c == 'v' && bytes.HasPrefix(t, wordValidation):
		return p.validation(t, out)
	}
	// An iteration line, or a memory line.
	if start := p.find(t); start >= 0 {
		p.ranked = false
		if !bytes.HasPrefix(t[start:], wordRank) {
			p.Dump = false // a truncated dump ends when training begins
		}
		return p.records(t[start:], out)
	}
	// Megatron indents arguments, timers and the times of ranks.
	if b[0] == ' ' {
		if p.Dump && p.argument(t) {
			return Arguments, ""
		}
		if timer(t, out) {
			return Records, ""
		}
		if p.ranked {
			return p.rank(t, out)
		}
	}
	return Other, ""
}

// bare removes the prefix of Python's logging before the lines of Megatron Core: "INFO:megatron.core.timers:".
func bare(t []byte) []byte {
	if b, ok := bytes.CutPrefix(t, wordLogger); ok {
		if i := bytes.IndexByte(b, ':'); i >= 0 && i+1 < len(b) {
			return b[i+1:]
		}
	}
	return t
}

// find returns where the first record of a text begins, -1 for none: an iteration ("iteration 3/ 100 |", with the bracketed time before, if any) or a memory
// line ("[Rank 6] (after 1 iterations) memory (MB) |"). Text before the record is a prefix that bridge/line does not know, or a record without its line end.
func (p *Parser) find(t []byte) int {
	at := -1 // of an iteration
	for from := 0; ; {
		i := bytes.Index(t[from:], wordIteration)
		if i < 0 {
			break
		}
		i += from
		if _, _, rest := iterationOf(t[i:]); rest != nil && !isNeMo(t[:i]) {
			at = stampBefore(t, i)
			break
		}
		from = i + len(wordIteration)
	}
	// A memory line before the iteration is first.
	head := t
	if at >= 0 {
		head = t[:at]
	}
	if i := bytes.Index(head, wordRank); i >= 0 && bytes.Contains(head[i:], wordMemory) {
		return i
	}
	return at
}

// isNeMo recognizes "Training epoch 0, iteration 45/99 | lr: …": NeMo's lines continue as Megatron's do.
func isNeMo(before []byte) bool {
	return bytes.HasSuffix(before, []byte(", ")) && bytes.Contains(before, []byte("Training epoch "))
}

// stampBefore returns where the bracketed time before i begins ("[2026-06-12 10:30:57] iteration": the bracket), or i without one.
func stampBefore(t []byte, i int) int {
	n := i
	for n > 0 && t[n-1] == ' ' {
		n--
	}
	if n == 0 || t[n-1] != ']' {
		return i
	}
	near := max(0, n-40) // no time is longer
	from := bytes.LastIndexByte(t[near:n], '[')
	if from < 0 {
		return i
	}
	from += near
	if s := line.StampLen(t[from+1:]); s > 0 && from+1+s == n-1 {
		return from
	}
	return i
}

// iterationOf reads "iteration 3/ 7629408 |": the iteration, and how many are planned. rest begins after the bar; nil: b is no such text.
func iterationOf(b []byte) (n, total int64, rest []byte) {
	if len(b) < len("iteration 1/1|") || !bytes.HasPrefix(b, wordIteration) || b[9] != ' ' {
		return 0, 0, nil
	}
	b = blanks(b[9:])
	n, d := decimal.Integer(b, maxDigits)
	b = b[d:]
	if d == 0 || len(b) == 0 || b[0] != '/' {
		return 0, 0, nil
	}
	b = blanks(b[1:])
	total, d = decimal.Integer(b, maxDigits)
	b = blanks(b[d:])
	if d == 0 || len(b) == 0 || b[0] != '|' {
		return 0, 0, nil
	}
	return n, total, b[1:]
}

// records reads the record at the beginning of t, and the records behind it that have lost the line end before them, as several processes write into one file.
// Malformed: none was emitted.
func (p *Parser) records(t []byte, out Out) (Result, string) {
	found := false
	for len(t) > 0 {
		var ok bool
		if bytes.HasPrefix(t, wordRank) {
			t, ok = p.memory(t, out)
		} else {
			t, ok = p.iteration(t, out)
		}
		found = found || ok
		next := p.find(t)
		if next < 0 {
			break
		}
		t = t[next:]
	}
	if !found {
		return Malformed, "no_fields"
	}
	return Records, ""
}

// iteration reads the iteration line at the beginning of t: "[time] iteration 3/ 100 | lm loss: 2.5E+00 | …". rest is the text behind the record, where another
// record is glued to it. ok says that the record had a column, and was emitted.
func (p *Parser) iteration(t []byte, out Out) (rest []byte, ok bool) {
	rec := out.Record()
	rec.Source, rec.Of, rec.Open, rec.Dedup = Source, record.Mean, true, true
	if t[0] == '[' {
		n := line.StampLen(t[1:])
		rec.Stamp = t[1 : 1+n]
		t = blanks(t[n+2:])
	}
	n, total, t := iterationOf(t)
	rec.Set(record.Iteration, float64(n))
	rec.Set(record.Iterations, float64(total))
	t = p.inOrder(rec, t)
	// fields: a column was read, by inOrder (p.order is now the columns read) or below. learn: all columns so far go into the order for the next record.
	fields, learn := len(p.order) > 0, true
	var c column
	for c.next(t) {
		fields = fields || len(c.key) > 0
		k, end := p.field(rec, c.key, c.value)
		learn = learn && k != nil && len(p.order) < maxOrder
		if learn {
			p.order = append(p.order, k)
		}
		if end < len(c.value) { // "0.0[Rank 6] (after …", "0 iteration 4/ 10 |"
			t = t[c.at+end:]
			break
		}
		t = c.rest
	}
	if fields {
		if lossLeftOut(rec) {
			rec.Set(record.Loss, math.NaN())
		}
		out.Emit(rec)
	}
	return t, fields
}

// lossLeftOut says whether a record lacks a loss because the loss is NaN: Megatron-LM (training_log in megatron/training/training.py) logs averages above 0.
// Where all iterations since the last record were skipped there is no loss either, nor in a record that is cut off.
func lossLeftOut(rec *record.Record) bool {
	loss := func(e record.Extra) bool { return bytes.Contains(e.Name, []byte("loss")) } // of another model, such as "mlm_loss"
	return !rec.Has(record.Loss) && rec.Has(record.GradientNorm) && math.IsNaN(rec.Get(record.GradientNorm)) && rec.Has(record.SkippedIterations) &&
		rec.Get(record.SkippedIterations) == 0 && !slices.ContainsFunc(rec.Extra, loss)
}

// column is a column "key: value |" of a line. key and value are empty where a column has no colon.
type column struct {
	key, value []byte
	at         int    // where value begins in the text given to next
	rest       []byte // of the text, behind the column
}

// next cuts the first column off t. The result is false at the end of the text, or where the column is the beginning of a glued record ("iteration 4/ 10").
func (c *column) next(t []byte) bool {
	if len(t) == 0 {
		return false
	}
	end := bytes.IndexByte(t, '|')
	if end < 0 {
		end = len(t)
	}
	c.rest = t[min(end+1, len(t)):]
	i := bytes.IndexByte(t[:end], ':')
	if i < 0 {
		c.key, c.value = nil, nil
		col := trim(t[:end])
		return len(col) == 0 || !begins(col)
	}
	c.key = trim(t[:i])
	for c.at = i + 1; c.at < end && t[c.at] == ' '; c.at++ {
	}
	c.value = trim(t[c.at:end])
	return len(c.key) == 0 || !begins(c.key)
}

// begins says whether a record begins with b, not empty: with a bracket (of a time, or "[Rank "), or with the word iteration and a blank.
func begins(b []byte) bool {
	return b[0] == '[' || bytes.HasPrefix(b, wordIteration) && len(b) > 9 && b[9] == ' '
}

// known is a column with a field.
type known struct {
	name  string
	field record.Field
	unit  record.Unit
}

var knownColumns = []known{
	{"consumed samples", record.ConsumedSamples, record.Base},
	{"consumed tokens", record.ConsumedTokens, record.Base},
	{"elapsed time per iteration (ms)", record.Duration, record.Milliseconds},
	{"throughput per GPU (TFLOP/s/GPU)", record.DeviceFlopThroughput, record.TeraFlopPerSecond},
	{"TFLOPs", record.DeviceFlopThroughput, record.TeraFlopPerSecond}, // Megatron-DeepSpeed
	{"energy per GPU (J/iter/GPU)", record.DeviceEnergy, record.Base},
	{"power per GPU (W/GPU)", record.DevicePower, record.Base},
	{"learning rate", record.LearningRate, record.Base},
	{"global batch size", record.BatchSize, record.Base},
	{"lm loss", record.Loss, record.Base},
	{"loss", record.Loss, record.Base},
	{"loss scale", record.LossScale, record.Base},
	{"grad norm", record.GradientNorm, record.Base},
	{"num zeros", record.GradientZeros, record.Base},
	{"params norm", record.ParamsNorm, record.Base},
	{"number of skipped iterations", record.SkippedIterations, record.Base},
	{"number of nan iterations", record.NaNIterations, record.Base},
	{"tokens/sec/gpu", record.DeviceTokenThroughput, record.Base}, // forks, Primus, Megatron-DeepSpeed
	{"tokens/sec/GPU", record.DeviceTokenThroughput, record.Base},
	{"tokens per GPU (tokens/s/GPU)", record.DeviceTokenThroughput, record.Base},
	{"tokens per gpu per second (tgs)", record.DeviceTokenThroughput, record.Base},
	{"samples per second", record.SampleThroughput, record.Base},
}

var knownByName = func() map[string]*known {
	m := make(map[string]*known, len(knownColumns))
	for i := range knownColumns {
		m[knownColumns[i].name] = &knownColumns[i]
	}
	return m
}()

// maxOrder bounds the remembered columns: Megatron has a third as many.
const maxOrder = 64

// inOrder is the fast way to read an iteration line: columns in the order of the line before, as nearly all lines have them, need no search for their ends and
// names. At the first column that differs, inOrder shortens p.order to the columns before and returns the rest of the line, which iteration reads column by
// column.
func (p *Parser) inOrder(rec *record.Record, t []byte) []byte {
	for i, k := range p.order {
		b, ok := bytes.CutPrefix(blanks(t), []byte(k.name))
		ok = ok && len(b) > 0 && b[0] == ':'
		if ok {
			b = blanks(b[1:])
			v, n := decimal.Leading(b)
			b = blanks(b[n:])
			if n > 0 && len(b) > 0 && b[0] == '|' {
				rec.SetIn(k.field, v, k.unit)
				t = b[1:]
				continue
			}
		}
		p.order = p.order[:i]
		break
	}
	return t
}

// field reads the value of one column of an iteration line into the record: a known column with a number into its field, "current time" into the record's time,
// any other text or number into an extra. The result is the column if known and with a number (else nil), and how many bytes of value belong to the column:
// behind them another record is glued.
func (p *Parser) field(rec *record.Record, key, value []byte) (col *known, length int) {
	if len(key) == 0 {
		return nil, len(value)
	}
	v, n := decimal.Leading(value)
	if n == 0 {
		if len(value) > 0 {
			rec.AddExtra(record.Extra{Name: p.name(key, ""), Text: value})
		}
		return nil, len(value)
	}
	k := knownByName[string(key)]
	rest := value[n:]
	average, averageLen := 0.0, 0 // of a known column
	switch {
	case len(rest) == 0 || k == nil:
	case rest[0] == '/': // Primus: "12.5/13.0", current and average
		average, averageLen = decimal.Leading(rest[1:])
		if averageLen > 0 {
			n += 1 + averageLen
		}
	case k.field == record.ConsumedTokens: // "12.5B"
		if scale := scaleOf(rest[0]); scale > 0 {
			v *= scale
			n++
		}
	}
	rest = value[n:]
	if len(rest) > 0 && !isGlue(rest) {
		// "0:00:00", "58.2GB": a text that begins with a number.
		rec.AddExtra(record.Extra{Name: p.name(key, ""), Text: value})
		return nil, len(value)
	}
	if averageLen > 0 {
		rec.AddExtra(record.Extra{Name: p.name(key, "_average"), Value: average})
	}
	switch {
	case k != nil:
		rec.SetIn(k.field, v, k.unit)
	case string(key) == "current time": // very old releases: seconds since the epoch in place of a time stamp
		if ns, err := decimal.Nanos(value[:n]); err == nil {
			rec.Unix, rec.RawUnix = ns, value[:n]
		}
	default:
		rec.AddExtra(record.Extra{Name: p.name(key, ""), Value: v})
	}
	return k, n
}

// isGlue says whether another record begins in b, the text behind a number: "0.0[Rank 6] (after".
func isGlue(b []byte) bool {
	t := blanks(b)
	return len(t) > 0 && begins(t)
}

// scaleOf is the factor that a letter behind a count of tokens stands for ("12.5B"); 0: c is no such letter.
func scaleOf(c byte) float64 {
	switch c {
	case 'K':
		return 1e3
	case 'M':
		return 1e6
	case 'B':
		return 1e9
	case 'T':
		return 1e12
	}
	return 0
}

// name makes the name of an extra field of a column's key and a suffix, with _ for blanks, which are awkward in queries: "batch size" becomes batch_size. The
// name is valid until the next line.
func (p *Parser) name(key []byte, suffix string) []byte {
	if suffix == "" && bytes.IndexByte(key, ' ') < 0 {
		return key
	}
	from := len(p.names)
	p.names = append(append(p.names, key...), suffix...)
	made := p.names[from:len(p.names):len(p.names)]
	for i, c := range made {
		if c == ' ' {
			made[i] = '_'
		}
	}
	return made
}

// memory reads the memory line at the beginning of t: "[Rank 6] (after 1 iterations) memory (MB) | allocated: 512.0 | …", where MB is MiB. rest is the text
// behind the record, where another record is glued to it. ok says that the record had a value, and was emitted.
func (p *Parser) memory(t []byte, out Out) (rest []byte, ok bool) {
	rec := out.Record()
	rec.Kind, rec.Source = record.Side, Source
	b := t[len(wordRank):]
	rank, n := decimal.Integer(b, maxDigits)
	if n == 0 || n == len(b) || b[n] != ']' {
		return b, false
	}
	rec.Rank, rec.HasRank = rank, true
	head := b[n+1:]
	i := bytes.Index(head, wordMemory)
	if i < 0 {
		return b, false
	}
	t, head = head[i+len(wordMemory):], head[:i]
	if after := bytes.TrimPrefix(head, []byte(" (after ")); len(after) < len(head) {
		if k, n := decimal.Integer(after, maxDigits); n > 0 && string(after[n:]) == " iterations)" {
			rec.Set(record.Iteration, float64(k))
		}
	}
	fields := false
	var c column
	for c.next(t) {
		v, n := decimal.Leading(c.value)
		if len(c.key) == 0 || n == 0 {
			t = c.rest
			continue
		}
		fields = true
		switch string(c.key) {
		case "allocated":
			rec.SetIn(record.MemoryUsage, v, record.Mebibytes)
		case "max allocated":
			rec.SetIn(record.MemoryPeak, v, record.Mebibytes)
		case "reserved":
			rec.SetIn(record.MemoryReserved, v, record.Mebibytes)
		case "max reserved":
			rec.SetIn(record.MemoryReservedPeak, v, record.Mebibytes)
		default:
			rec.AddExtra(record.Extra{Name: p.name(c.key, ""), Value: v})
		}
		if n < len(c.value) { // a glued record
			t = t[c.at+n:]
			break
		}
		t = c.rest
	}
	if fields {
		out.Emit(rec)
	}
	return t, fields
}

// validation reads "validation loss at iteration 100 | lm loss value: 3.29E+00 | lm loss PPL: 2.68E+01 | ", also with "on test set"
// after the iteration, and older ones "at the end of training for test data".
func (p *Parser) validation(t []byte, out Out) (Result, string) {
	rec := out.Record()
	rec.Kind, rec.Source = record.Evaluation, Source
	title, t, ok := bytes.Cut(t[len(wordValidation):], []byte{'|'})
	if !ok {
		return Malformed, "no_fields"
	}
	title = trim(title)
	if bytes.HasPrefix(title, wordIteration) {
		b := blanks(title[len(wordIteration):])
		k, n := decimal.Integer(b, maxDigits)
		if n == 0 {
			return Malformed, "bad_iteration"
		}
		rec.Set(record.Iteration, float64(k))
		title = blanks(b[n:])
	}
	set, fields := setName(title), false
	var c column
	for ; c.next(t); t = c.rest {
		v, ok := decimal.Float(c.value)
		if len(c.key) == 0 || !ok {
			continue
		}
		// Only the validation set's loss is a validation loss.
		switch key := string(c.key); {
		case set == nil && (key == "lm loss value" || key == "loss value"):
			rec.Set(record.ValidationLoss, v)
		case set == nil && (key == "lm loss PPL" || key == "loss PPL"):
			rec.Set(record.Perplexity, v)
		default:
			rec.AddExtra(record.Extra{Name: p.name(c.key, ""), Value: v})
		}
		fields = true
	}
	if !fields {
		return Malformed, "no_fields"
	}
	if set != nil {
		rec.AddExtra(record.Extra{Name: []byte("evaluation_set"), Text: set})
	}
	out.Emit(rec)
	return Records, ""
}

// setName is "test" of "on test set" and of "the end of training for test data", nil for the validation set.
func setName(title []byte) []byte {
	words := bytes.Fields(title)
	n := len(words)
	if n < 3 || string(words[n-1]) != "set" && string(words[n-1]) != "data" {
		return nil
	}
	switch set := words[n-2]; string(set) {
	case "validation", "valid", "val":
		return nil
	default:
		return set
	}
}

// places are the places of Megatron's timers: megatron/core/pipeline_parallel/schedules.py and p2p_communication.py, distributed/finalize_model_grads.py
// (called before forward-backward stops), optimizer/optimizer.py and distrib_optimizer.py, training.py (training_log, train_step), of
// d98e8a64 (2026-08-22), with the older names layernorm-grads-all-reduce and "batch generator". Passes of several microbatches take turns: each
// timer is the sum of all.
var places = record.Outline(`
forward-backward
  forward-recv
  forward-compute *
    batch-generator *
    batch generator *
  forward-send
  forward-send-forward-recv
  forward-send-backward-recv
  forward-backward-send-forward-backward-recv
  backward-recv
  backward-compute *
  backward-send
  backward-send-forward-recv
  backward-send-backward-recv
  all-grads-sync
  conditional-embedder-grads-all-reduce
  layernorm-grads-all-reduce
  non-tensor-parallel-grads-all-reduce
  embedding-grads-all-reduce
optimizer
  optimizer-copy-to-main-grad
  optimizer-unscale-and-check-inf
  optimizer-clip-main-grad
  optimizer-count-zeros
  optimizer-inner-step *
  optimizer-copy-main-to-model-params
  params-all-gather
`)

// timers reads the titles before the lines of the timers ("max time across ranks (ms):"), and the older form with all timers on one line:
// "time (ms) | forward-compute: 120.31 | …". The times become stages of the step of the record before.
// Lines under a title of each rank's times are read by rank (p.ranked).
func (p *Parser) timers(t []byte, out Out) (Result, string) {
	switch string(t) {
	case "(min, max) time across ranks (ms):", "max time across ranks (ms):":
		p.ranked = false
		return Ignored, "times_title"
	case "times across ranks (ms):":
		p.ranked, p.timer = true, p.timer[:0]
		return Ignored, "times_title"
	}
	b, ok := bytes.CutPrefix(t, []byte("time (ms) |"))
	if !ok {
		return Other, ""
	}
	rec := out.Record()
	rec.Kind, rec.Source = record.Side, Source
	var c column
	for ; c.next(b); b = c.rest {
		if v, ok := decimal.Float(c.value); ok && len(c.key) > 0 {
			rec.Stages = append(rec.Stages, record.Stage{Name: c.key, Seconds: v / 1e3, Place: places[string(c.key)]})
		}
	}
	if len(rec.Stages) == 0 {
		return Malformed, "no_fields"
	}
	out.Emit(rec)
	return Records, ""
}

// timer reads the line of one timer, in ms: "forward-backward ....: (1402.11, 1409.87)", the fastest and the slowest rank, or "forward-backward ....: 1409.87",
// the slowest. false: t is no such line.
func timer(t []byte, out Out) bool {
	i := bytes.Index(t, []byte(".: "))
	if i < 0 {
		return false
	}
	name := t[:i+1]
	for len(name) > 0 && name[len(name)-1] == '.' {
		name = name[:len(name)-1]
	}
	// A single word and a blank, before the dots.
	if len(name) < 2 || name[len(name)-1] != ' ' || bytes.IndexByte(name[:len(name)-1], ' ') >= 0 {
		return false
	}
	name = name[:len(name)-1]
	stage := record.Stage{Name: name, Place: places[string(name)]}
	b := t[i+3:]
	b = trim(b)
	if len(b) > 0 && b[0] == '(' {
		fastest, n := decimal.Leading(b[1:])
		after := b[1+n:]
		if n == 0 || !bytes.HasPrefix(after, []byte(", ")) {
			return false
		}
		slowest, n := decimal.Leading(after[2:])
		if n == 0 || string(after[2+n:]) != ")" {
			return false
		}
		stage.Min, stage.HasMin, stage.Seconds = fastest/1e3, true, slowest/1e3
	} else {
		v, ok := decimal.Float(b)
		if !ok {
			return false
		}
		stage.Seconds = v / 1e3
	}
	rec := out.Record()
	rec.Kind, rec.Source = record.Side, Source
	rec.Stages = append(rec.Stages, stage)
	out.Emit(rec)
	return true
}

// maxTimer bounds the name of a timer.
const maxTimer = 128

// rank reads the lines under the title "times across ranks (ms):": a timer's name ("forward-compute:"), and a line for each rank with a time ("rank 3: 46.21").
// _get_all_ranks_time_string() of megatron/core/timers.py prints them with --timing-log-option all.
func (p *Parser) rank(t []byte, out Out) (Result, string) {
	if name, ok := bytes.CutSuffix(t, []byte{':'}); ok && len(name) <= maxTimer {
		p.timer = append(p.timer[:0], name...)
		return Ignored, "timer_title"
	}
	b, ok := bytes.CutPrefix(t, []byte("rank "))
	if !ok || len(p.timer) == 0 {
		return Other, ""
	}
	b = blanks(b)
	rank, n := decimal.Integer(b, maxDigits)
	b, ok = bytes.CutPrefix(b[n:], []byte(": "))
	v, isNumber := decimal.Float(b)
	if n == 0 || !ok || !isNumber {
		return Other, ""
	}
	rec := out.Record()
	rec.Kind, rec.Source = record.Side, Source
	rec.Stages = append(rec.Stages, record.Stage{Name: p.timer, Seconds: v / 1e3, Rank: rank, HasRank: true, Place: places[string(p.timer)]})
	out.Emit(rec)
	return Records, ""
}

// reported are the places of the parts timed by StragglerDetector: DRtt, getting the batch, and Rtt, the forward passes.
var reported = record.Outline(`
DRtt
Rtt *
`)

// stragglers reads the output of StragglerDetector.report() of megatron/core/utils.py for --log-straggler, the extremes over all ranks:
//
//	[2024-03-14 23:07:56] | MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: 3468.20ms/0 | MnPwr/Rnk: 601796.00W/8 | … | MxEtpt/Rnk: 297.32TF/8
//
// Mn is the least value, Mx the greatest, each with its rank behind the slash. The times become stages, the other columns extras.
func stragglers(t []byte, out Out) (Result, string) {
	rec := out.Record()
	rec.Kind, rec.Source, rec.Open, rec.Dedup = record.Ranks, Source, true, true
	if t[0] == '[' {
		n := line.StampLen(t[1:])
		if n == 0 || 1+n >= len(t) || t[1+n] != ']' {
			return Other, ""
		}
		rec.Stamp = t[1 : 1+n]
		t = blanks(t[n+2:])
	}
	if !bytes.HasPrefix(t, wordStragglers) {
		return Other, ""
	}
	var c column
	for c.next(t) {
		switch string(c.key) {
		case "":
		case "MnRtt/Rnk", "MxRtt/Rnk":
			addRanked(rec, nameRtt, c.value)
		case "MnDRtt/Rnk", "MxDRtt/Rnk":
			addRanked(rec, nameDRtt, c.value)
		default:
			rec.AddExtra(record.Extra{Name: c.key, Text: c.value})
		}
		t = c.rest
	}
	if len(rec.Stages) == 0 {
		return Malformed, "no_fields"
	}
	out.Emit(rec)
	return Records, ""
}

// addRanked reads "3468.20ms/0", the time of rank 0, and adds it as a stage of the name. Another form adds nothing.
func addRanked(rec *record.Record, name, value []byte) {
	v, n := decimal.Leading(value)
	b, ok := bytes.CutPrefix(value[n:], []byte("ms/"))
	rank, m := decimal.Integer(b, maxDigits)
	if n > 0 && ok && m == len(b) && m > 0 {
		rec.Stages = append(rec.Stages, record.Stage{Name: name, Seconds: v / 1e3, Rank: rank, HasRank: true, Place: reported[string(name)]})
	}
}

// etpt reads "^^^^ Bottom 2 Ranks with lowest Etpt(TF): 296.02/0, 296.17/2,", printed after the report where --straggler-minmax-count is above 1: the ranks
// with the lowest or highest throughput. The list becomes an extra of the report. false: t is no such line.
func etpt(t []byte, out Out) bool {
	head, list, ok := bytes.Cut(t[len(wordEtpt):], []byte(" Etpt(TF): "))
	name := nameBottom
	switch {
	case !ok || !bytes.Contains(head, []byte(" Ranks with ")):
		return false
	case bytes.HasPrefix(head, []byte("Top ")):
		name = nameTop
	case !bytes.HasPrefix(head, []byte("Bottom ")):
		return false
	}
	rec := out.Record()
	rec.Kind, rec.Source = record.Side, Source
	rec.AddExtra(record.Extra{Name: name, Text: bytes.TrimSuffix(list, []byte{','})})
	out.Emit(rec)
	return true
}

// rule reads lines that begin with a dash: the frame of a validation result ("--------") and the ends of the argument dump ("-------- arguments --------").
func (p *Parser) rule(t []byte) (Result, string) {
	text := bytes.Trim(t, "-")
	dashes := len(t) - len(text)
	switch {
	case dashes < 8: // Megatron prints 40 and more
		return Other, ""
	case len(text) == 0:
		return Ignored, "rule"
	case string(text) == " arguments ":
		p.Dump = true
		return Begin, ""
	case string(text) == " end of arguments ":
		p.Dump = false
		return End, ""
	}
	return Other, ""
}

// argument reads a line of the argument dump: "hidden_size ..................................... 4096". The argument is then in p.args, in the form that the
// model understands: lists of layers as patterns. false: t is no such line.
func (p *Parser) argument(t []byte) bool {
	i := bytes.IndexByte(t, ' ')
	if i < 1 {
		return false
	}
	name, rest := t[:i], blanks(t[i:])
	for _, c := range name {
		if !ascii.IsLetter(c) && !ascii.IsDigit(c) && c != '_' {
			return false
		}
	}
	// Megatron fills the name with dots to 48 characters.
	dots := 0
	for dots < len(rest) && rest[dots] == '.' {
		dots++
	}
	if dots == 0 && len(name) < 48 || dots > 0 && dots < len(rest) && rest[dots] != ' ' {
		return false
	}
	value := blanks(rest[dots:])
	p.args = p.args[:0]
	if len(value) > 0 && value[0] == '[' {
		switch string(name) {
		case "moe_layer_freq":
			name, value = []byte("moe_layer_pattern"), pattern(value)
		case "linear_attention_freq":
			name, value = []byte("linear_attention_pattern"), pattern(value)
		}
	}
	if string(name) == "use_tp_pp_dp_mapping" && string(value) == "True" {
		// The ranks of a pipeline stage are then not contiguous, and cannot be told from the size: -1 stands for an unknown size, and replaces the size, which comes
		// before in alphabetical order.
		name, value = []byte("pipeline_model_parallel_size"), []byte("-1")
	}
	p.args = append(p.args, Argument{name, value})
	return true
}

// pattern reads a list of 0 and 1, one per layer: "[0, 1, 1]" is "011".
func pattern(value []byte) []byte {
	var layers []byte
	for _, c := range value {
		if c == '0' || c == '1' {
			layers = append(layers, c)
		}
	}
	return layers
}

// padded reads "> padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)", printed after the dump: the new size is then in p.args as
// padded_vocab_size. false: t is no such line.
func (p *Parser) padded(t []byte) bool {
	if !bytes.HasPrefix(t, wordPadded) {
		return false
	}
	i := bytes.Index(t, wordNewSize)
	if i < 0 {
		return false
	}
	b := t[i+len(wordNewSize):]
	_, n := decimal.Integer(b, maxDigits)
	p.args = append(p.args[:0], Argument{[]byte("padded_vocab_size"), b[:n]})
	return n > 0
}

// blanks cuts leading blanks off.
func blanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// trim cuts the blanks of log lines off both ends.
func trim(b []byte) []byte {
	b = blanks(b)
	for n := len(b); n > 0 && (b[n-1] == ' ' || b[n-1] == '\t' || b[n-1] == '\r'); n-- {
		b = b[:n-1]
	}
	return b
}
