package digest

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Series of calls or passes, and their entries, are bounded: all beyond the bounds are left out.
const (
	mostRepeats = 1024    // series
	mostEntries = 1 << 15 // entries of all series together
)

// RepeatKey identifies a series: the calls of one function or operation by one worker, or the passes of one log.
type RepeatKey struct {
	Name string // the TransferQueue function, or the operation of TransferQueue's client; "": passes of RPCs
	Host string // of the worker; "": not said
	PID  int64  // of the worker; -1: not said
	File string // the log, of passes, and of calls without a PID
	Part string // of an operation of the client, the only part: spans.PartGet or PartPut; "": a call or a pass, which has several parts
}

// Repeats is a series: the calls of a function or operation by one worker, or the passes of a log.
type Repeats struct {
	RepeatKey
	Parts   []string // names of the parts of each entry (spans.Part…)
	entries []RepeatOf
}

// RepeatOf is an entry of a series: a call or a pass.
type RepeatOf struct {
	At
	Took  float64    // s
	Parts [5]float64 // s, Parts[i] is the time of the part Repeats.Parts[i], 0 beyond these; NaN: unknown
	Bytes float64    // moved; NaN: unknown
	Batch float64    // samples of a call; NaN: unknown
}

var (
	callParts = []string{spans.PartGet, spans.PartCompute, spans.PartPut}
	passParts = []string{spans.PartRPCSerialize, spans.PartRPCSend, spans.PartRPCReceive, spans.PartRPCServer, spans.PartRPCDeserialize}
)

// Entries returns the calls or passes by start.
func (r *Repeats) Entries() []RepeatOf {
	slices.SortStableFunc(r.entries, func(a, b RepeatOf) int { return cmp.Or(a.compare(&b.At), cmp.Compare(a.Offset, b.Offset)) })
	return r.entries
}

// repeats are all series of a domain.
type repeats struct {
	by map[RepeatKey]*Repeats
	n  int // entries of all series
}

// add adds an empty entry to the series of a key, made if absent, and returns the entry for the caller to fill. It returns nil, and adds nothing, if there are
// mostRepeats other series or mostEntries entries.
func (d *repeats) add(k RepeatKey, parts []string) *RepeatOf {
	series := d.by[k]
	if series == nil {
		if len(d.by) >= mostRepeats {
			return nil
		}
		if d.by == nil {
			d.by = map[RepeatKey]*Repeats{}
		}
		k.Name, k.Host, k.File = shortText(k.Name), shortText(k.Host), shortText(k.File)
		series = &Repeats{RepeatKey: k, Parts: parts}
		d.by[k] = series
	}
	if d.n >= mostEntries {
		return nil
	}
	d.n++
	series.entries = append(series.entries, RepeatOf{})
	return &series.entries[len(series.entries)-1]
}

// addCall adds a complete call of a TransferQueue function whose stages are known. took is the time of the call, s.
func (d *repeats) addCall(s ptrace.Span, v *view.Function, name string, took float64, res *resource) {
	e := d.add(workerOf(name, v.Host, v.PID, res), callParts)
	if e == nil {
		return
	}
	*e = RepeatOf{At: res.at(s), Took: took, Bytes: math.NaN(), Batch: math.NaN()}
	if v.BatchSize.OK {
		e.Batch = float64(v.BatchSize.N)
	}
	for i, share := range v.Share {
		e.Parts[i] = share * took
	}
}

// addOperation adds a complete operation of TransferQueue's client to the series of the worker's operations of the same kind for the same function. Only GET
// and PUT have a series. took is the time of the operation, s: of the series' only part, too.
func (d *repeats) addOperation(s ptrace.Span, v *view.Stage, took float64, res *resource) {
	k := workerOf(v.Stage.String(), "", v.PID, res)
	switch v.Stage {
	case spans.TQClientGet:
		k.Part = spans.PartGet
	case spans.TQClientPut:
		k.Part = spans.PartPut
	default: // an operation without a series
		return
	}
	if v.Function != "" {
		k.Name += " (" + v.Function + ")"
	}
	e := d.add(k, []string{k.Part})
	if e == nil {
		return
	}
	*e = RepeatOf{At: res.at(s), Took: took, Parts: [5]float64{took}, Bytes: v.Size, Batch: math.NaN()}
}

// workerOf returns the key for the calls of a worker: by host and process, or, without a process, by the log.
func workerOf(name, host string, pid view.Int, res *resource) RepeatKey {
	k := RepeatKey{Name: name, Host: cmp.Or(host, res.Host), PID: pid.Or(res.PID.Or(-1))}
	if k.PID < 0 {
		k.File = res.file
	}
	return k
}

// addPass adds a complete pass.
func (d *repeats) addPass(v *view.Group, at At) {
	e := d.add(RepeatKey{PID: -1, File: at.File}, passParts)
	if e == nil {
		return
	}
	*e = RepeatOf{At: at, Took: v.CallDuration, Bytes: v.RequestSize + v.ResponseSize}
	for i, stage := range [...]view.RPCStage{view.RPCSerialize, view.RPCSend, view.RPCReceive, view.RPCServer, view.RPCDeserialize} {
		e.Parts[i] = v.Duration[stage]
	}
	if server := e.Parts[3]; !math.IsNaN(server) { // the server works while the client receives: the time counts once
		e.Parts[2] -= server
	}
}

// rows returns the series in a fixed order.
func (d *repeats) rows() (out []*Repeats) {
	for _, of := range d.by {
		out = append(out, of)
	}
	slices.SortFunc(out, func(a, b *Repeats) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), cmp.Compare(a.File, b.File))
	})
	return out
}

// Repeats returns the calls of each function by worker.
func (d *Functions) Repeats() []*Repeats { return d.repeats.rows() }

// Repeats returns the complete passes of each log.
func (d *Passes) Repeats() []*Repeats { return d.repeats.rows() }
