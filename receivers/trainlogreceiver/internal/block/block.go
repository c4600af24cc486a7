// Package block reads steps of several lines: a header names the step, and each line below has a name and a value.
//
//	[step=5/1000,epoch=1,eta=20m6s]                 OLMo (allenai/OLMo 59a53e3, olmo/train.py: 979) and OLMo-core (allenai/OLMo-core fa6c501,
//	    train/CE loss=10.62                           src/olmo_core/train/callbacks/console_logger.py: 66-95)
//	    throughput/device/BPS=0.8246
//
//	========================= Step 2/100 =========================      NeMo-RL (NVIDIA-NeMo/RL 7ea279a, nemo_rl/algorithms/grpo.py: 2818, 3703, sft.py: 439)
//	▶ Training policy...
//	  • Loss: 0.0832
//	  • Total step time: 69.39s
//	  • generation: 33.93s (48.9%)
//
//	Step: 2/12                                      any loop
//	  loss:      2.4165
//	  time:      0.021 s
//
//	----------------------------------              Stable-Baselines3 2.9.2 (stable_baselines3/common/logger.py, HumanOutputFormat)
//	| time/               |          |
//	|    total_timesteps  | 104      |
//	| train/              |          |
//	|    loss             | 0.527    |
//	----------------------------------
//
//	pipeline step 1 start...                        ROLL (alibaba/ROLL 8eb27cc, roll/pipeline/rlvr/rlvr_pipeline.py: 487-840, sft/sft_pipeline.py: 192-244)
//	{"time/step_train": 24.9, "actor_train/total_loss@sum": 0.0021}
//	pipeline step 1 finished
//
//	(AReaL) 20260803-09:15:03.617 StatsLogger INFO: Epoch 1/2 Step 1/2 Train step 1/4 done.      AReaL (inclusionAI/AReaL 4aef98d,
//	╒═══════════════════════════════╤═════════════╤═════════════════╤════════════╕                 areal/utils/stats_logger.py: 138-160)
//	│ ppo_actor/update/actor_loss/avg │ -1.2000e-03 │ timeperf/rollout │ 2.0600e+01 │
//
// A header alone is no record: the record begins at the line with the loss, or with the time of the step, and takes the values before and after. The record's
// time is the header's, if any; of ROLL and of boxes that of a later line.
package block

import (
	"bytes"
	"encoding/json"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/count"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// Source is the record's Source.
const Source = "block"

// Reasons of lines that are part of a block, and no record alone.
const (
	Head  = "head"        // names the step
	Value = "block_value" // kept for the record of the block, or without a meaning
)

// Out takes the records of a line, and returns the prefix of its text; step.Out implements Out.
type Out interface {
	object.Out
	Prefix() *line.Prefix
}

// The kinds of blocks. A header ends the block before and opens one of its kind; a box opens at a rule. A line without a value ends plain, olmo and box, and
// leaves the others open: the values of banner, roll and areal come at any distance, up to the next header.
const (
	none   = iota
	plain  // indented values, right below the header
	banner // as plain, and bulleted values may come at any line until the next banner
	olmo   // as plain, with =
	roll   // one line with an object
	box    // between rules; the step is a value
	areal  // tables
)

const (
	maxLine  = 512      // bytes, of a header and of a value
	maxLines = 16 << 10 // bytes kept of the values before the loss
)

// state is the memory from line to line of a block.
type state struct {
	In    int     `json:"in,omitempty"`    // the kind of the open block; none: no block
	Step  float64 `json:"step,omitempty"`  // of the header
	Steps float64 `json:"steps,omitempty"` // planned steps; 0: unknown
	Epoch *epoch  `json:"epoch,omitempty"`
	Stamp []byte  `json:"stamp,omitempty"` // of the header
	Rank  *int64  `json:"rank,omitempty"`  // of the header
	PID   int64   `json:"pid,omitempty"`   // of the header
	// Far: of a banner, a line without a value came since the header; of areal, the first table is over. Aside: the values are an evaluation's.
	Far   bool `json:"far,omitempty"`
	Aside bool `json:"aside,omitempty"`
	// Lines are the values before the record began; of a box or a table, all rows.
	Lines []byte `json:"lines,omitempty"`
	// Results are the values of an evaluation.
	Results []byte `json:"results,omitempty"`
	// Began is the first line of the record. While the record waits for its values, a restart reads the line again.
	Began []byte `json:"began,omitempty"`

	Banner *epoch `json:"banner,omitempty"` // the epoch of a banner, for all steps below
	Zero   bool   `json:"zero,omitempty"`   // epochs count from 0
	Clock  *clock `json:"clock,omitempty"`  // of boxes
}

// epoch is the number of an epoch, and of all epochs; Of 0: unknown.
type epoch struct {
	At float64 `json:"at"`
	Of float64 `json:"of,omitempty"`
}

// clock is the running time of a run at a step.
type clock struct {
	Seconds float64 `json:"seconds"`
	Step    float64 `json:"step"`
}

// Parser reads the lines of one stream. Not safe for concurrent use.
type Parser struct {
	objects *object.Parser
	state   state
	time    count.Guess // tells a step's "time" from the run's
	name    []byte      // memory for a name with its unit
	number  []byte      // memory for a number without commas
}

// New returns a parser; mapped is as in object.New.
func New(mapped map[string]object.Target) *Parser { return &Parser{objects: object.New(mapped)} }

// Line reads one line. A header opens a block, and a rule of dashes opens a box; other lines may be values, rows or titles of the open block. mine is false for
// any other line, and for a rule that completes no record. Several ranks print at the same time, so a block takes only the lines of the writer who opened the
// block.
func (p *Parser) Line(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	b = bytes.TrimRight(b, " \t\r")
	sameWriter := p.isSameWriter(out.Prefix())
	if p.state.In == roll && sameWriter { // within a step of ROLL: one line has an object with all values
		v, mine = p.metrics(b, out)
		if mine {
			return v, "", true
		}
	}
	if p.state.In == areal && sameWriter && len(b) > 0 && b[0] == arealRow[0] { // all lines of a table begin with this byte of UTF-8
		return p.stats(b, out)
	}
	if len(b) == 0 || len(b) > maxLine {
		if sameWriter {
			p.other()
		}
		return tail.Ignored, "", false
	}
	if p.head(b, out.Prefix()) {
		return tail.Ignored, Head, true
	}
	if !sameWriter || !p.state.hasValueLines() {
		p.state.openBox(b, out.Prefix())
		return tail.Ignored, "", false
	}
	if p.state.In == box { // between two rules
		return p.boxed(b, out)
	}
	if p.section(b) {
		return tail.Ignored, Head, true
	}
	if q, ok := p.split(b); ok {
		return p.value(b, q, out)
	}
	p.other()
	p.state.openBox(b, out.Prefix())
	return tail.Ignored, "", false
}

// hasValueLines reports whether a block is open whose lines are values or titles. The object of roll and the tables of areal are read by metrics and stats.
func (s *state) hasValueLines() bool {
	switch s.In {
	case none, roll, areal:
		return false
	}
	return true
}

// other handles a line without a value, which ends the kinds plain, olmo and box.
func (p *Parser) other() {
	switch p.state.In {
	case banner:
		p.state.Far = true
	case roll, areal:
	default:
		p.state.end()
	}
}

// end forgets the block, but keeps the state common to all blocks.
func (s *state) end() { *s = state{Banner: s.Banner, Zero: s.Zero, Clock: s.Clock} }

// setWriter records the writer of the block, and the time of the header.
func (s *state) setWriter(pre *line.Prefix) {
	s.PID = pre.PID
	if pre.HasRank {
		rank := pre.Rank
		s.Rank = &rank
	}
	if len(s.Stamp) == 0 && pre.Stamp != nil {
		s.Stamp = bytes.Clone(pre.Stamp)
	}
}

// isSameWriter reports whether the writer of the block wrote the line.
func (p *Parser) isSameWriter(pre *line.Prefix) bool {
	s := &p.state
	return pre.PID == s.PID && pre.HasRank == (s.Rank != nil) && (s.Rank == nil || pre.Rank == *s.Rank)
}

// value takes a value of a block: b is the line, q what the line says. Values before the one that makes the record are kept (Lines); that value makes the
// record, of those kept and itself; values after are added to the record (later). More than maxLines bytes of kept values end the block.
func (p *Parser) value(b []byte, q pair, out Out) (v tail.Verdict, reason string, mine bool) {
	s := &p.state
	if s.Aside {
		return p.result(b, q, out)
	}
	again := bytes.Equal(b, s.Began) // after a restart
	switch {
	case len(s.Began) > 0 && !again:
		return p.later(q, out)
	case !again && !p.begins(q):
		if len(s.Lines)+len(b) > maxLines {
			s.end()
			return tail.Ignored, "", false
		}
		s.Lines = append(append(s.Lines, b...), '\n')
		return tail.Ignored, Value, true
	}
	s.Began = append(s.Began[:0], b...)
	rec := out.Record()
	p.objects.Begin(rec)
	for text := range bytes.SplitSeq(s.Lines, []byte("\n")) {
		if early, ok := p.split(text); ok {
			p.add(rec, early)
		}
	}
	p.add(rec, q)
	p.objects.End()
	p.place(rec)
	rec.Open, rec.Join = true, again // read again after a restart, the line joins its own record
	out.Emit(rec)
	return tail.Record, "", true
}

// later emits a value that comes after the one that made the record (Began), as a Side: an addition to the record. A value that would be a record of its own,
// with a number or a summary, is ignored.
func (p *Parser) later(q pair, out Out) (v tail.Verdict, reason string, mine bool) {
	rec := out.Record()
	p.objects.Begin(rec)
	p.add(rec, q)
	if p.objects.End(); rec.Kind == record.Summary || rec.Has(record.Iteration) {
		return tail.Ignored, Value, true
	}
	rec.Source, rec.Kind, rec.HasRank = Source, record.Side, false
	if rec.Empty() {
		return tail.Ignored, Value, true
	}
	out.Emit(rec)
	return tail.Record, "", true
}

// result takes a value of an evaluation, and keeps the values (Results, up to maxLines bytes) until the last, which makes the record: NeMo-RL prints the
// evaluation's duration last.
func (p *Parser) result(b []byte, q pair, out Out) (v tail.Verdict, reason string, mine bool) {
	s := &p.state
	took := bytes.EqualFold(q.name, []byte("total validation time"))
	if !took || len(s.Results) == 0 { // a duration alone makes no record
		if len(s.Results)+len(b) <= maxLines {
			s.Results = append(append(s.Results, b...), '\n')
		}
		return tail.Ignored, Value, true
	}
	rec := out.Record()
	for text := range bytes.SplitSeq(s.Results, []byte("\n")) {
		value, ok := p.split(text)
		switch {
		case !ok:
		case bytes.Contains(bytes.ToLower(value.name), []byte("loss")) && !rec.Has(record.ValidationLoss):
			rec.Set(record.ValidationLoss, value.number)
		default:
			rec.AddExtra(record.Extra{Name: value.name, Value: value.number})
		}
	}
	s.Results = nil
	if per, ok := seconds[string(q.unit)]; ok && q.number > 0 {
		rec.Set(record.Duration, q.number*per)
	}
	p.place(rec)
	rec.Kind = record.Evaluation
	out.Emit(rec)
	return tail.Record, "", true
}

// place gives a record the step, the epoch and the time of the block's header, and its kind. A value called rank (LoRA's) is not the rank of the process.
func (p *Parser) place(rec *record.Record) {
	s := &p.state
	rec.Source, rec.HasRank, rec.Kind = Source, false, record.Step
	if rec.Has(record.ValidationLoss) && !rec.Has(record.Loss) {
		rec.Kind = record.Evaluation
	}
	rec.Set(record.Iteration, s.Step)
	if s.Steps > 0 {
		rec.Set(record.Iterations, s.Steps)
	}
	if s.Epoch != nil {
		rec.Set(record.Epoch, s.Epoch.At)
	}
	if rec.Stamp == nil && rec.Unix == 0 && len(s.Stamp) > 0 {
		rec.Stamp = s.Stamp
	}
}

// Save implements tail.Handler.
func (p *Parser) Save() []byte {
	s := &p.state
	if s.In == none && s.Banner == nil && !s.Zero && s.Clock == nil {
		return nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil // cannot be: finite numbers
	}
	return b
}

// Restore implements tail.Handler.
func (p *Parser) Restore(saved []byte) {
	var s state
	if json.Unmarshal(saved, &s) == nil {
		p.state = s
	}
}
