package object

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/receivers/internal/jsonlike"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/count"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/verl"
)

// Parser reads objects of one stream into records. Not safe for concurrent use.
type Parser struct {
	mapped map[string]Target // of the configuration
	known  map[string]*entry // the names seen, by their full name
	order  []*entry          // the names of the record before, in their order
	next   int               // the index in order of the name that comes next, if this record has the same names

	// Of the current object.
	rec         *record.Record
	flags       flags          // of all its names
	eval, total float64        // seconds of the evaluation, and of the training
	elapsed     float64        // and of the job's running time
	timed       float64        // the value of "time", if not a time of day
	path        []byte         // the names of the enclosing objects, each with a dot behind: "a." within the object a; empty in the outermost object
	own         jsonlike.Texts // unescaped texts

	trial record.Record // of Each: takes the fields of objects that are only tried
	pace  pace          // of LLaMA-Factory's rows
	guess count.Guess   // of the rows' "time"
	iters bool          // rows of steps have mmengine's iter
}

// entry is a name seen before.
type entry struct {
	Target
	name   []byte // with the names of the enclosing objects
	prefix int    // length of the enclosing names, with the dots
	loss   bool   // the word is in the name
}

const (
	maxKnown = 4096 // names
	maxOrder = 512  // names of one record
)

// New returns a parser. mapped are the names with a meaning from the configuration; nil: none.
func New(mapped map[string]Target) *Parser {
	return &Parser{mapped: mapped, known: make(map[string]*entry)}
}

// Parse reads the object at the beginning of b into rec; rec must be empty. It returns the object's length, -1 if b has no complete object, and whether the
// object is a record of a training log: names common to any log are no proof. Of an incomplete object, the names so far decide.
func (p *Parser) Parse(b []byte, rec *record.Record) (n int, found bool) {
	p.begin(rec)
	if len(b) == 0 || b[0] != '{' {
		return -1, false
	}
	n = p.object(b, 0, 1)
	if n < 0 {
		return n, p.flags&(training|evaluation) != 0
	}
	return n, p.finish()
}

// begin starts an object whose fields go into rec. Times are NaN until the object has them.
func (p *Parser) begin(rec *record.Record) {
	p.rec, p.flags, p.next = rec, 0, 0
	p.eval, p.total, p.elapsed, p.timed = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	p.path = p.path[:0]
	p.own.Reset()
}

// Out takes the records of a line; step.Out implements Out.
type Out interface {
	Record() *record.Record
	Emit(*record.Record)
}

// Each reads the objects in b, separated by commas or blanks. For each record it calls done with the record and its text, and then emits the record. ok is
// false when b holds anything else; then nothing is emitted. So all objects are read twice: once to see whether b holds nothing else, and once for out.
func (p *Parser) Each(b []byte, out Out, done func(rec *record.Record, raw []byte)) (found, ok bool) {
	for _, emit := range [...]bool{false, true} {
		for i := 0; i < len(b); {
			if c := b[i]; c == ' ' || c == ',' || c == '\t' || c == '\n' || c == '\r' {
				i++
				continue
			}
			rec := &p.trial
			if emit {
				rec = out.Record()
			} else {
				rec.Reset()
			}
			n, is := p.Parse(b[i:], rec)
			if n < 0 {
				return false, false
			}
			if is && emit {
				done(rec, b[i:i+n])
				out.Emit(rec)
				found = true
			}
			i += n
		}
	}
	return found, true
}

// finish reports whether the object is a record, and sets the record's kind. A "time" that is no time of day becomes the duration of a step without one:
// count.Guess decides by the rows so far whether it is a step's time or the run's. In other records, or without an answer, "time" is an unknown field.
func (p *Parser) finish() bool {
	is := p.judgeKind()
	rec := p.rec
	// transformers leaves losses out of its mean that are not finite (trainer.py, logging_nan_inf_filter): where all were, 0 is logged.
	if rec.Get(record.Loss) == 0 && rec.Has(record.GradientNorm) && math.IsNaN(rec.Get(record.GradientNorm)) {
		rec.Set(record.Loss, math.NaN())
	}
	if math.IsNaN(p.timed) {
		return is
	}
	if is && rec.Kind == record.Step && !rec.Has(record.Duration) && rec.Has(record.Iteration) {
		if seconds, of := p.guess.Step(p.timed, rec.Get(record.Iteration)); seconds > 0 {
			rec.Set(record.Duration, seconds)
			if of > 1 {
				rec.Of = record.Mean
			}
			return is
		}
	}
	rec.AddExtra(record.Extra{Name: timeName, Value: p.timed})
	return is
}

var timeName = []byte("time")

// judgeKind reports whether the object is a record, and sets the record's kind (default: a step) from the flags of all its names: from what proves most (the
// run's summary, a result) to what proves least (a step with unknown numbers, a sample of GPUs). What "time" means is left to finish.
func (p *Parser) judgeKind() bool {
	rec := p.rec
	if p.flags&llamaFactory != 0 && !p.fixLLaMAFactory() {
		return false
	}
	if p.flags&swift != 0 { // the stated mean, times the steps, is the job's running time
		p.setPacedDuration(rec.Get(record.Iteration)*rec.Get(record.Duration), 1)
	}
	if p.flags&(iter|running) == iter|running {
		p.iters = true
	}
	if p.iters && p.flags&(iter|stepped|running) == stepped { // a result, whose step is the epoch (mmengine, hooks/logger_hook.py, after_val_epoch)
		rec.Unset(record.Iteration)
		rec.Kind = record.Evaluation
		return true
	}
	switch {
	case !math.IsNaN(p.total) && p.flags&running != 0: // a step: the time since the training began, with include_num_input_tokens_seen
		rec.AddExtra(record.Extra{Name: []byte("train_runtime"), Value: p.total})
	case !math.IsNaN(p.total): // the time of the whole training, without the loss of a step
		rec.Kind = record.Summary
		rec.Set(record.Duration, p.total)
		return true
	case p.IsResult(), p.flags&training == 0 && p.flags&evaluation != 0:
		rec.Kind = record.Evaluation
		if !math.IsNaN(p.eval) {
			rec.Set(record.Duration, p.eval)
		}
		return true
	}
	if !math.IsNaN(p.eval) {
		rec.AddExtra(record.Extra{Name: []byte("eval_runtime"), Value: p.eval})
	}
	if p.isCheckpoint() {
		rec.Kind = record.Side
		return true
	}
	if p.flags&(training|measured) != 0 {
		return true
	}
	// The number of a step and other numbers, such as rewards. Loggers print similar records, but with a message. In "data" no message is looked for.
	numbered := p.flags&stepped != 0 && p.flags&message == 0
	if p.flags&numbers != 0 && (numbered || p.flags&wrapped != 0) {
		return true
	}
	if len(rec.Samples) > 0 && (rec.Unix > 0 || rec.Stamp != nil) {
		rec.Kind = record.Sample
		return true
	}
	return false
}

// isCheckpoint reports whether a row has the time of a checkpoint and, of a step, only the number: the checkpoint came after the step, whose row is another.
func (p *Parser) isCheckpoint() bool {
	rec := p.rec
	for i := range rec.Stages {
		if trainers.PartOf(string(rec.Stages[i].Name)) != trainers.Checkpointing {
			return false
		}
	}
	return len(rec.Stages) > 0 && p.flags&(training|numbers) == 0
}

// fixLLaMAFactory corrects a row of LLaMA-Factory, and reports whether the row has news: the last row and rows of a prediction have only the progress. The
// throughput is of tokens, whatever its name; the time of a step is made from the running time.
func (p *Parser) fixLLaMAFactory() bool {
	rec := p.rec
	if v := rec.Get(record.SampleThroughput); !math.IsNaN(v) {
		rec.Unset(record.SampleThroughput)
		rec.Set(record.TokenThroughput, v)
	}
	p.setPacedDuration(rec.Get(record.ConsumedTokens), rec.Get(record.TokenThroughput))
	if p.flags&running == 0 { // without the loss of a step, only a result makes the row a record
		p.flags &^= training
	}
	return p.flags&(running|evaluation) != 0
}

// setPacedDuration sets the duration of a step's row to the mean time of the steps since the row before, where the running times show it. seen and speed are as
// in pace.addRow.
func (p *Parser) setPacedDuration(seen, speed float64) {
	step := p.rec.Get(record.Iteration)
	if !(p.elapsed >= 0 && step > 0) {
		return
	}
	if mean := p.pace.addRow(step, p.elapsed, seen, speed); mean > 0 && p.flags&running != 0 {
		p.rec.Set(record.Duration, mean)
		p.rec.Of = record.Mean
	}
}

// entry returns the meaning of a name in the current object, by the full name: p.path with the name behind ("a.b"). Meanings are kept, as logs repeat their
// names. When maxKnown names are kept, all are forgotten. A full name may be a name with a dot in one object ("a.b") and nested in another ({"a": {"b": …}}):
// a kept meaning is used only if its enclosing names have the same length (prefix), which key needs to compare names.
func (p *Parser) entry(name []byte) *entry {
	n := len(p.path)
	if n > 0 { // the full name stands after p.path for a moment, without an allocation
		p.path = append(p.path, name...)
		name = p.path
		p.path = p.path[:n]
	}
	if e, ok := p.known[string(name)]; ok && e.prefix == n {
		return e
	}
	if len(p.known) >= maxKnown {
		clear(p.known)
	}
	full := string(name)
	e := &entry{Target: resolve(full, p.mapped), name: []byte(full), prefix: n, loss: isLoss(strings.ToLower(full))}
	e.flags |= rowFlags(full, e.flags) // beside the flags of the target, which rowFlags needs to know
	p.known[full] = e
	return e
}

// isLoss reports whether a name has the word loss. A few other words contain its letters, and services lose packets.
func isLoss(name string) bool {
	if !strings.Contains(name, "loss") {
		return false
	}
	for _, other := range [...]string{"blossom", "gloss", "floss", "packet"} {
		if strings.Contains(name, other) {
			return false
		}
	}
	return true
}

// number puts a number into the record, as the name's target defines; raw is its text. A value that the target cannot take, such as a negative time, stays an
// unknown field.
func (p *Parser) number(e *entry, v float64, raw []byte) {
	rec := p.rec
	p.flags |= e.flags
	switch {
	case e.Field == record.MFU && v < 0: // nanoGPT's (train.py), until known
		return
	case e.Scale != 0:
		p.mappedNumber(e, v)
		return
	}
	switch e.action {
	case set:
		rec.SetIn(e.Field, v, e.Unit)
		rec.Counted = rec.Counted || e.Field == record.ConsumedTokens // rows have exact counts
		if e.Field == record.Epoch && bytes.IndexByte(raw, '.') < 0 {
			p.flags |= wholeEpoch
		}
		if e.Mean {
			rec.Of = record.Mean
		}
	case keep:
		p.flags |= numbers
		rec.AddExtra(record.Extra{Name: e.name, Value: v})
	case inverse:
		if !(v > 0) {
			rec.AddExtra(record.Extra{Name: e.name, Value: v})
			return
		}
		rec.Set(e.Field, 1/v)
		rec.Of = record.Mean
	case ratio:
		if v > 1 {
			rec.SetIn(e.Field, v, record.Percent)
		} else {
			rec.Set(e.Field, v)
		}
	case rank:
		if v >= 0 && v == math.Trunc(v) && v < 1<<31 {
			rec.Rank, rec.HasRank = int64(v), true
		} else {
			rec.AddExtra(record.Extra{Name: e.name, Value: v})
		}
	case stamp:
		switch {
		case p.setUnix(v, raw):
		case string(e.name) == "time" && v > 0 && bytes.IndexByte(raw, '.') >= 0: // a duration
			p.timed = v
		default:
			rec.AddExtra(record.Extra{Name: e.name, Value: v})
		}
	case gpus:
		rec.GPUs, rec.OneGPU = append(rec.GPUs[:0], utilization(v, raw)), true
	case slashed:
		p.flags |= numbers
		verl.Key(e.name, v, rec)
	case ofGPU: // a sample needs the time, read before the values of GPUs
		if rec.Unix == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			rec.AddExtra(record.Extra{Name: e.name, Value: v})
			return
		}
		rec.Samples = append(rec.Samples, record.GPUSample{Metric: e.GPU, Device: e.Device, Value: e.Unit.InBase(v)})
	case eitherTokens:
		if !(v > 0) || rec.Has(record.Tokens) {
			rec.AddExtra(record.Extra{Name: e.name, Value: v})
			return
		}
		rec.Set(record.Tokens, v)
		rec.EitherTokens = true
	case perGPU:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			rec.AddExtra(record.Extra{Name: e.name, Value: v})
			return
		}
		rec.Samples = append(rec.Samples, record.GPUSample{Metric: e.GPU, Device: record.NoDevice, Value: e.Unit.InBase(v)})
	case traceID:
		rec.IDs.Set(e.ID, raw)
		rec.AddExtra(record.Extra{Name: e.name, Value: v})
	case part:
		if e.Unit == record.Milliseconds {
			v /= 1000
		}
		if !(v >= 0) {
			rec.AddExtra(record.Extra{Name: e.name, Value: v})
			return
		}
		rec.Stages = append(rec.Stages, record.Stage{Name: e.name, Seconds: v})
	case evalTime:
		p.eval = v
	case totalTime:
		p.total = v
	default:
		rec.AddExtra(record.Extra{Name: e.name, Value: v})
	}
}

// mappedNumber puts a number where the configuration wants it: into a gauge of the user's, the GPU utilization, or a known field.
func (p *Parser) mappedNumber(e *entry, v float64) {
	switch {
	case e.Metric != "":
		p.rec.AddExtra(record.Extra{Name: e.name, Value: v * e.Scale, Metric: e.Metric, Unit: e.UCUM})
	case e.action == gpus:
		p.rec.GPUs, p.rec.OneGPU = append(p.rec.GPUs, v*e.Scale), len(p.rec.GPUs) == 0
	default:
		p.rec.Set(e.Field, v*e.Scale)
	}
}

// utilization returns a GPU utilization as a fraction. nvidia-smi prints whole percents, so a number with a decimal point and not above 1 is a fraction
// already.
func utilization(v float64, raw []byte) float64 {
	if v <= 1 && bytes.IndexByte(raw, '.') >= 0 {
		return v
	}
	return v / 100
}

// setUnix sets the record's time from a number since the epoch, and reports whether v is one. The size shows the unit: seconds, milliseconds, microseconds or
// nanoseconds, for times from 1973 to 2255. Seconds and nanoseconds are read from their text: a float64 has too few digits.
func (p *Parser) setUnix(v float64, raw []byte) bool {
	switch {
	case v >= 1e8 && v < 9e9: // s
		ns, err := decimal.Fixed9(raw)
		if err != nil {
			return false
		}
		p.rec.Unix = ns
	case v >= 1e11 && v < 9e12: // ms
		whole := math.Floor(v)
		p.rec.Unix = int64(whole)*1e6 + int64((v-whole)*1e6)
	case v >= 1e14 && v < 9e15: // µs
		p.rec.Unix = int64(v) * 1e3
	case v >= 1e17 && v < 9e18: // ns
		ns, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return false
		}
		p.rec.Unix = ns
	default:
		return false
	}
	p.rec.RawUnix = raw
	return true
}

// text puts a text into the record, as the name's target defines. A text that is a number counts as the number (Transformers 5 quotes all numbers), unless the
// name is unknown and the text looks like an identifier. Other texts are kept as unknown fields.
func (p *Parser) text(e *entry, s []byte) {
	rec := p.rec
	switch e.action {
	case traceID:
		if rec.IDs.Set(e.ID, s); e.ID == logids.Trace && logids.IsUUID(s) {
			return // already the trace id
		}
	case stamp:
		if n := line.StampLen(s); n > 0 && n == len(s) {
			rec.Stamp = s
			return
		}
		if v, ok := textNumber(s); ok && p.setUnix(v, bytes.TrimSpace(s)) {
			return
		}
	case runTime:
		if v, ok := clockTime(s); ok {
			p.elapsed = v
		}
	case host:
		if len(s) > 0 {
			rec.Host = s
			return
		}
	case keep:
		if e.Scale == 0 && (e.flags&message != 0 || !numeric(s)) { // a message, a word, or an identifier of digits: a text
			p.flags |= e.flags & message
			if isUnseen(e.name, s) {
				p.flags |= unseen
			}
			break
		}
		fallthrough
	default:
		if v, ok := textNumber(s); ok {
			p.number(e, v, bytes.TrimSpace(s))
			return
		}
		if p.ofPlanned(e, s) {
			return
		}
		if e.action == ratio || e.action == gpus {
			if v, ok := textNumber(bytes.TrimSuffix(s, []byte("%"))); ok {
				p.flags |= e.flags
				if e.action == ratio {
					rec.SetIn(e.Field, v, record.Percent)
				} else {
					rec.GPUs, rec.OneGPU = append(rec.GPUs[:0], v/100), true
				}
				return
			}
		}
	}
	rec.AddExtra(record.Extra{Name: e.name, Text: s})
}

// ofPlanned reads "1/60", the step of the run and the planned steps, in ms-swift's texts; other names may count the steps of an epoch. It returns false for
// another text.
func (p *Parser) ofPlanned(e *entry, s []byte) bool {
	done, all, ok := bytes.Cut(s, []byte("/"))
	if !ok || string(e.name) != "global_step/max_steps" && string(e.name) != "iteration" {
		return false
	}
	v, ok1 := textNumber(done)
	planned, ok2 := textNumber(all)
	if !ok1 || !ok2 {
		return false
	}
	p.number(e, v, done)
	p.rec.Set(record.Iterations, planned)
	return true
}

// numeric reports whether the text of an unknown name is a number rather than an identifier made of digits: a long one, or one with a leading 0.
func numeric(s []byte) bool {
	if len(s) == 0 || len(s) > 25 || len(s) > 15 && bytes.IndexByte(s, '.') < 0 {
		return false
	}
	if len(s) > 1 && s[0] == '0' && ascii.IsDigit(s[1]) {
		return false
	}
	_, ok := textNumber(s)
	return ok
}

// list takes anything in brackets: raw is a list, a tuple or a too deep object, brackets included. The values of GPUs become values of each GPU. Of a list for
// a known field the first number counts (of dllogger's [epoch, step] the second): trainers print one learning rate for each parameter group. Other lists are
// kept as text.
func (p *Parser) list(e *entry, raw []byte) {
	in := bytes.TrimSpace(raw[1 : len(raw)-1])
	switch {
	case raw[0] == '{': // kept as text
	case e.action == gpus:
		if p.gpuList(e, in) {
			return
		}
	case e.Listed:
		if p.perGPU(e, in) {
			return
		}
	case e.action == set && e.Field == record.Iteration && bytes.Count(in, []byte(",")) == 1: // dllogger: "step": [epoch, step]
		_, step, _ := bytes.Cut(in, []byte(","))
		if v, ok := decimal.Float(bytes.TrimSpace(step)); ok {
			p.number(e, v, step)
			return
		}
	case e.action == set || e.action == ratio:
		if v, n := decimal.Leading(in); n > 0 {
			p.number(e, v, in[:n])
			return
		}
	}
	p.rec.AddExtra(record.Extra{Name: e.name, Text: raw})
}

// gpuList reads the utilization of each GPU from a list's elements, possibly in quotes or with a percent sign ("'97%', '100%'"); false: not all elements are
// numbers. One element above 1, or without a point, makes all of them percentages.
func (p *Parser) gpuList(e *entry, in []byte) bool {
	p.rec.GPUs = p.rec.GPUs[:0]
	percent := false
	for len(in) > 0 {
		item := in
		if i := bytes.IndexByte(in, ','); i >= 0 {
			item, in = in[:i], in[i+1:]
		} else {
			in = nil
		}
		for len(item) > 0 && aside(item[0]) {
			item = item[1:]
		}
		for len(item) > 0 && aside(item[len(item)-1]) {
			item = item[:len(item)-1]
		}
		v, ok := decimal.Float(item)
		if !ok {
			p.rec.GPUs = p.rec.GPUs[:0]
			return false
		}
		percent = percent || v > 1 || bytes.IndexByte(item, '.') < 0
		p.rec.GPUs = append(p.rec.GPUs, v)
	}
	p.gpus(e, p.rec.GPUs, percent)
	return true
}

// perGPU reads a list of GPU values other than the utilization, such as temperatures: the index is the device. false: not all elements are numbers, and none is
// taken.
func (p *Parser) perGPU(e *entry, in []byte) bool {
	before := len(p.rec.Samples)
	for device := 0; len(in) > 0; device++ {
		item, rest, _ := bytes.Cut(in, []byte(","))
		in = rest
		v, ok := decimal.Float(bytes.TrimSpace(item))
		if !ok || device == record.NoDevice {
			p.rec.Samples = p.rec.Samples[:before]
			return false
		}
		p.rec.Samples = append(p.rec.Samples, record.GPUSample{Metric: e.GPU, Device: uint16(device), Value: e.Unit.InBase(v)})
	}
	return true
}

// gpus sets the utilization of all devices, from values in percent, in 0..1, or in the unit of the configuration's scale.
func (p *Parser) gpus(e *entry, all []float64, percent bool) {
	p.flags |= e.flags
	scale := 1.0
	if e.Scale != 0 {
		scale = e.Scale
	} else if percent {
		scale = 0.01
	}
	for i := range all {
		all[i] *= scale
	}
	p.rec.GPUs, p.rec.OneGPU = all, false
}

// aside reports whether a character may stand around a number in a list.
func aside(c byte) bool { return c == ' ' || c == '\t' || c == '"' || c == '\'' || c == '%' }

// Apply gives the unknown fields of a record that another package has parsed their meaning from the configuration. A field that becomes a known one, or a GPU's
// utilization, leaves the unknown fields; a gauge of the user's, or a trace id, stays among them.
func Apply(rec *record.Record, mapped map[string]Target) {
	kept := rec.Extra[:0]
	for _, e := range rec.Extra {
		t, ok := lookUp(string(e.Name), mapped)
		switch {
		case ok && t.action == traceID:
			text := e.Text
			if text == nil { // a number
				text = strconv.AppendFloat(nil, e.Value, 'f', -1, 64)
			}
			rec.IDs.Set(t.ID, text)
		case !ok || e.Text != nil || t.Scale == 0: // stays as it is
		case t.Metric != "":
			e.Value *= t.Scale
			e.Metric, e.Unit = t.Metric, t.UCUM
		case t.action == gpus:
			rec.GPUs, rec.OneGPU = append(rec.GPUs, e.Value*t.Scale), len(rec.GPUs) == 0
			continue
		default:
			rec.Set(t.Field, e.Value*t.Scale)
			continue
		}
		kept = append(kept, e)
	}
	rec.Extra = kept
}
