// Package parse is the common part of the parsers of all formats: their interface and their output.
package parse

import "github.com/trainbridge/trainbridge/internal/collectives/op"

// Sample is a logged value over time.
type Sample struct {
	Metric              string // spans.MetricNCCL…
	At                  int64  // Unix ns; 0: unknown
	Value               float64
	Comm                []byte
	Kind                op.Kind
	HasKind             bool
	Source, Destination int32  // ranks; op.Unknown
	Statistic           string // mean | max | ""
	Cumulative          bool   // a count since the process began, not a gauge
	Record              string // of drop counters: coll, p2p, proxy, proxy_op, proxy_step, proxy_pxn
	Host                []byte
	PID                 int64
	Rank                int32 // op.Unknown
	// FromEnd says that At counts from a time missing from the log: the newest sample of the file is as old as the file.
	FromEnd bool
}

// Out is the result of a line.
type Out struct {
	Ops     []op.Op
	Samples []Sample
	// Open says that the line is part of an unfinished record: it and the open lines before belong to the next Ops and Samples.
	Open bool
	// Tag is passed back when the line is read again after a restart without the lines before. 0: none.
	Tag uint64
}

// Reset empties Out and keeps its memory.
func (o *Out) Reset() { *o = Out{Ops: o.Ops[:0], Samples: o.Samples[:0]} }

// Add appends an operation with all fields unknown, for the parser to fill. The memory of an earlier operation is reused.
func (o *Out) Add() *op.Op {
	if n := len(o.Ops); n < cap(o.Ops) {
		o.Ops = o.Ops[:n+1]
	} else {
		o.Ops = append(o.Ops, op.Op{})
	}
	p := &o.Ops[len(o.Ops)-1]
	p.Init()
	return p
}

// Verdict is the result for a line.
type Verdict uint8

// The verdicts.
const (
	Record Verdict = iota
	Ignored
	Rejected
)

// Parser reads the lines of one stream in one format, with a memory of earlier lines.
type Parser interface {
	// Line reads a line. Out was Reset. The reason why a line is no record is a constant. again says that the line is read again after a restart, possibly without
	// the lines before; tag is then the Out.Tag of the first reading.
	Line(text []byte, again bool, tag uint64, out *Out) (v Verdict, reason string)
	// End gives up waiting for the rest of an open record: the present part goes into out.
	End(out *Out)
	// Save and Restore keep the state that later lines need, without open records: their lines are read again. nil: none.
	Save() []byte
	Restore(state []byte)
}
