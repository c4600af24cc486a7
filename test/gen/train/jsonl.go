package train

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// jsonl writes one JSON object per step with the usual fields of training scripts (loss, throughput, step_time_s, lr), and as many per-layer fields as loggers
// such as W&B's write.
type jsonl struct {
	*log
	f      *logfile.Log
	fields int
	wide   []string // names of the fields beyond "full"
}

// fieldCounts are how many fields the words of --fields mean.
var fieldCounts = map[string]int{"minimal": 2, "recommended": recommendedFields, "full": fullFields}

const (
	recommendedFields = 5
	fullFields        = 7
	maxFields         = 256 // the receiver keeps at most as many unknown fields
)

// fieldCount is how many fields a line has; 0: --fields is neither a word nor a number.
func (o *Options) fieldCount() int {
	if n, ok := fieldCounts[o.Fields]; ok {
		return n
	}
	n, err := strconv.Atoi(o.Fields)
	if err != nil || n < fullFields || n > maxFields {
		return 0
	}
	return n
}

// layerStats are the numbers logged per layer.
var layerStats = []string{"grad_norm", "weight_rms", "act_max", "update_lr"}

func (p *jsonl) open() (err error) {
	p.fields = p.opt.fieldCount()
	for i := range p.fields - fullFields {
		p.wide = append(p.wide, fmt.Sprintf("layers.%d.linear.%s", i/len(layerStats), layerStats[i%len(layerStats)]))
	}
	p.f, err = p.file("train.jsonl")
	if err != nil {
		return err
	}
	if p.opt.Nasty > 0 {
		_, err = p.f.W.WriteString("\ufeff")
	}
	return err
}

// Traps are texts of loggers that are no JSON, or no record (docs/reference/trainers.md). Traps after trapNested are lines of their own before the record.
const (
	trapNone = iota
	trapNaN
	trapStrings
	trapCRLF
	trapAlias
	trapNested
	trapNoise
	trapHalf
	traps
)

func (p *jsonl) step(s *trainStep) {
	trap := trapNone
	if p.opt.Nasty > 0 && p.rng.Float64() < p.opt.Nasty {
		trap = 1 + p.rng.IntN(traps-1)
	}
	switch trap {
	case trapNoise:
		p.Line(p.f, p.Text("WARNING: 1 of the checkpoints could not be removed: {busy}"), logfile.Ignored)
	case trapHalf:
		p.Line(p.f, p.Text(`{"loss": 2.24, "throughput": 5`), logfile.Rejected)
	}
	p.begin(p.f, KindStep, s)
	p.covered(1, s.took)
	seconds := float64(s.took) / 1e9
	throughput := float64(p.sim.model.GlobalBatchSize) / seconds
	loss := s.loss
	if trap == trapNaN {
		loss, throughput = math.NaN(), math.Inf(1)
	}
	lossKey, throughputKey := "loss", "throughput"
	if trap == trapAlias {
		lossKey, throughputKey = "Loss", "samples_per_second"
	}
	b := p.Text("{")
	if p.fields >= fullFields {
		b = append(b, `"step": `...)
		from := len(b)
		b = strconv.AppendInt(b, s.n, 10)
		p.note("step", spans.AttrIteration, b[from:], 1)
		b = append(b, `, "timestamp": "`...)
		from = len(b)
		b = time.Unix(0, s.end).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
		p.note("timestamp", "", b[from:], 1)
		p.clocked(s.end, time.Millisecond)
		b = append(b, `", `...)
	}
	if trap == trapNested {
		b = append(b, `"data": {`...)
	}
	b = p.number(b, lossKey, spans.AttrLoss, loss, 4, trap)
	b = append(b, ", "...)
	b = p.number(b, throughputKey, spans.AttrSampleThroughput, throughput, 3, trap)
	if p.fields >= recommendedFields {
		b = append(b, ", "...)
		b = p.number(b, "step_time_s", spans.AttrStepDuration, seconds, 6, trap)
		b = append(b, `, "lr": `...)
		from := len(b)
		b = logfile.AppendRepr(b, round(s.lr, 9))
		p.note("lr", spans.AttrLearningRate, b[from:], 1)
		b = append(b, `, "gpu_util": `...)
		from = len(b)
		b = append(b, '[')
		busy := 97
		if s.slow {
			busy = int(97 / p.opt.SlowFactor)
		}
		for i := range min(8, p.opt.WorldSize) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = strconv.AppendInt(b, int64(busy+p.rng.IntN(4)), 10)
		}
		b = append(b, ']')
		p.note("gpu_util", "", b[from:], 1)
	}
	for _, name := range p.wide {
		b = append(append(append(b, `, "`...), name...), `": `...)
		from := len(b)
		b = logfile.AppendRepr(b, p.rng.Float64())
		p.note(name, spans.AttrTrainFieldPrefix+name, b[from:], 1)
	}
	if trap == trapNested {
		b = append(b, '}')
	}
	b = append(b, '}')
	if trap == trapCRLF {
		b = append(b, '\r')
	}
	p.Line(p.f, b, logfile.Record)
	p.end()
}

func (p *jsonl) number(b []byte, key, attr string, v float64, decimals, trap int) []byte {
	b = append(b, '"')
	b = append(b, key...)
	b = append(b, `": `...)
	if trap == trapStrings {
		b = append(b, '"')
	}
	from := len(b)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		b = writer.AppendJSONRepr(b, v)
	} else {
		b = strconv.AppendFloat(b, v, 'f', decimals, 64)
	}
	p.note(key, attr, b[from:], 1)
	if trap == trapStrings {
		b = append(b, '"')
	}
	return b
}

func (p *jsonl) eval(*trainStep, float64, float64) {}
func (p *jsonl) close()                            {}
