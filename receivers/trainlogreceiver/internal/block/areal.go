package block

import (
	"bytes"
	"fmt"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

var (
	arealName = []byte("(AReaL) ")
	arealStep = []byte("Train step ")
	arealDone = []byte(" done.")
	arealTop  = []byte("╒")
	arealRow  = []byte("│")
	arealRule = []byte("├")
	arealEnd  = []byte("╘")
)

// arealFields are the fields by the last part of a name.
var arealFields = map[string]record.Field{
	"loss": record.Loss, "actor_loss": record.Loss, "grad_norm": record.GradientNorm, "lr": record.LearningRate,
}

// areal reads AReaL's header, "(AReaL) 20260803-09:15:03.617 StatsLogger INFO: Epoch 1/2 Step 1/2 Train step 1/4 done.", followed by tables of names and
// values, and opens its block. The step is that of "Train step". It returns false for another line.
func (p *Parser) areal(b []byte, pre *line.Prefix) bool {
	i := bytes.LastIndex(b, arealStep)
	if i < 0 || !bytes.HasSuffix(b, arealDone) || !bytes.Contains(b[:i], []byte("StatsLogger")) {
		return false
	}
	h, ok := names(b[i+len("Train ") : len(b)-len(arealDone)])
	if !ok || h.step < 1 {
		return false
	}
	p.state.end()
	s := &p.state
	s.In, s.Step, s.Steps = areal, h.step, h.steps
	if j := bytes.Index(b[:i], []byte("Epoch ")); j >= 0 {
		if at, of, _, ok := fraction(b[j+len("Epoch ") : i]); ok {
			s.Epoch = &epoch{at, of}
		}
	}
	s.setWriter(pre)
	if at := bytes.TrimPrefix(b, arealName); len(at) > 21 && at[8] == '-' && at[11] == ':' {
		day, _ := integer(at[:8])
		if day > 0 { // 20260803-09:15:03.617
			s.Stamp = fmt.Appendf(nil, "%s-%s-%s %s", at[:4], at[4:6], at[6:8], at[9:21])
		}
	}
	return true
}

// stats reads a line of a table, drawn by tabulate with some pairs of cells in a row. Rows are kept until the table's last rule, which makes the record. The
// tables of a step are of its minibatches: the first one counts, and Far says that this table is over. A table without a loss needs a value that is neither a
// field nor a time: times alone are no record. Rows beyond maxLines bytes are left out.
func (p *Parser) stats(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	s := &p.state
	switch {
	case bytes.HasPrefix(b, arealTop), bytes.HasPrefix(b, arealRule):
		return tail.Ignored, Value, true
	case bytes.HasPrefix(b, arealRow):
		if !s.Far && len(s.Lines)+len(b) <= maxLines {
			s.Lines = append(append(s.Lines, b...), '\n')
		}
		return tail.Ignored, Value, true
	case !bytes.HasPrefix(b, arealEnd) || s.Far || len(s.Lines) == 0:
		return tail.Ignored, "", false
	}
	s.Far = true
	rec := out.Record()
	found := false // a value that is neither a field nor a time
	for row := range bytes.SplitSeq(s.Lines, []byte("\n")) {
		cells := bytes.Split(bytes.Trim(row, "│ "), arealRow)
		for i := 0; i+1 < len(cells); i += 2 {
			name, value := bytes.TrimSpace(cells[i]), bytes.TrimSpace(cells[i+1])
			v, ok := decimal.Float(value)
			if len(name) == 0 || !ok {
				continue
			}
			if part, timed := bytes.CutPrefix(name, []byte("timeperf/")); timed && v >= 0 {
				rec.Stages = append(rec.Stages, record.Stage{Name: part, Seconds: v})
				continue
			}
			bare := bytes.TrimSuffix(name, []byte("/avg"))
			if f, ok := arealFields[string(bare[bytes.LastIndexByte(bare, '/')+1:])]; ok && !rec.Has(f) {
				rec.Set(f, v)
				continue
			}
			rec.AddExtra(record.Extra{Name: name, Value: v})
			found = true
		}
	}
	s.Lines = nil
	if rec.Empty() || !found && !rec.Has(record.Loss) {
		return tail.Ignored, Value, true
	}
	p.place(rec)
	out.Emit(rec)
	return tail.Record, "", true
}
