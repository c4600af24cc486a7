package zmq

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/logfile"
)

// noTrace is in the column trace_id of a call that belongs to no trace.
const noTrace = "N/A"

// Passes draws the passes of a client in a job that another generator simulates. The calls of a pass follow one another at once, and all their times are whole
// µs, as they are printed.
type Passes struct {
	sim *simulation
	g   zmqGroup // before the first pass the session
}

// NewPasses draws passes of opt.Layers layers. Durations are scale times those of the real log.
func NewPasses(opt *Options, scale float64) *Passes {
	p := &Passes{sim: newSim(opt, scale)}
	p.Next()
	return p
}

// Writer writes the log of such a client.
type Writer struct {
	log    *log
	passes *Passes
}

// NewWriter creates the log in opt.Out, before the first pass is drawn; ids adds a column trace_id, live writes
// each row at once.
func NewWriter(ctx context.Context, opt Options, passes *Passes, ids, live bool) (*Writer, error) {
	l := &log{Sink: logfile.Sink{Ctx: ctx, Paced: live}, opt: &opt, layout: layouts[opt.Layout], trace: noTrace}
	if ids {
		l.layout.columns = append(slices.Clip(l.layout.columns), column{"trace_id", 36, traceID})
	}
	var err error
	if l.f, err = l.OpenLog(opt.Out, true, "zmq_performance.log", opt.truthPath(), nil); err != nil {
		return nil, err
	}
	l.head()
	for i := range passes.g.calls {
		l.row(&passes.g.calls[i])
	}
	return &Writer{log: l, passes: passes}, l.Err
}

// Next draws the next pass.
func (p *Passes) Next() {
	p.sim.next(&p.g)
	for i := range p.g.calls {
		c := &p.g.calls[i]
		for k := range c.ns {
			c.ns[k] = logfile.Micros(c.ns[k]) * 1000
		}
		c.ns[zmqCommunication] = c.ns[serialize] + c.ns[send] + c.ns[receive] + c.ns[deserialize]
		c.ns[zmqTotal] = c.ns[zmqCommunication] + leastRest
	}
}

// Took is how long the pass takes.
func (p *Passes) Took() int64 {
	ends := p.Ends(0)
	return ends[len(ends)-1]
}

// Slow lets the pass serialize for so much longer, spread over its calls as their serialization is. It returns what it added, which is less by some µs.
func (p *Passes) Slow(ns int64) (added int64) {
	sum := int64(0)
	for i := range p.g.calls {
		sum += p.g.calls[i].ns[serialize]
	}
	for i := range p.g.calls {
		c := &p.g.calls[i].ns
		more := int64(float64(ns)*float64(c[serialize])/float64(sum)) / 1000 * 1000
		for _, k := range []int{serialize, zmqCommunication, zmqTotal} {
			c[k] += more
		}
		added += more
	}
	return added
}

// Ends are when the calls of a pass end that begins at a true time.
func (p *Passes) Ends(start int64) (ends []int64) {
	for i := range p.g.calls {
		start += p.g.calls[i].ns[zmqTotal]
		ends = append(ends, start)
	}
	return ends
}

// Pass is the truth about a pass that begins at a true time.
func (w *Writer) Pass(start int64) Pass {
	g := &w.passes.g
	pass := Pass{Kind: g.kind, File: filepath.Base(w.log.f.Path), Block: g.block, Pass: g.pass, Complete: true}
	for i, end := range w.passes.Ends(start) {
		pass.add(&g.calls[i], start, end)
		start = end
	}
	return pass
}

// Row writes the i-th row of the pass, whose trace has this id; empty: it has none.
func (w *Writer) Row(id string, i int) error {
	w.log.trace = cmp.Or(id, noTrace)
	w.log.row(&w.passes.g.calls[i])
	return w.log.Err
}

// Close ends the log, which has no summary, and says which files there are.
func (w *Writer) Close() (files []logfile.File, err error) {
	err = w.log.Close(nil, &files, w.log.Err)
	return files, err
}
