// Package parse is what the parsers of all formats have in common: their interface and their output.
package parse

import "github.com/trainbridge/trainbridge/internal/collectives/op"

// Sample is a value over time that a log states.
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
	Record              string // of drop counters: coll, p2p, proxy, proxy_op, proxy_step
	Host                []byte
	PID                 int64
	Rank                int32 // op.Unknown
	// FromEnd says that At counts from a time that is not in the log: the newest sample of the file is as old as the file.
	FromEnd bool
}

// Out is what a parser found in a line.
type Out struct {
	Ops     []op.Op
	Samples []Sample
	// Open says that the line is part of a record that goes on: it and the open lines before it belong to the next Ops and Samples.
	Open bool
	// Tag is to be given back when the line is read again after a restart without the lines before it. 0: there is nothing to remember.
	Tag uint64
}

// Reset empties Out and keeps its memory.
func (o *Out) Reset() { *o = Out{Ops: o.Ops[:0], Samples: o.Samples[:0]} }

// Add appends an operation whose fields are all unknown, reusing memory.
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

// Verdict is what a parser made of a line.
type Verdict uint8

// The verdicts.
const (
	Record Verdict = iota
	Ignored
	Rejected
)

// Parser reads the lines of one stream in one format. It remembers what earlier lines say about later ones.
type Parser interface {
	// Line reads a line. Out was Reset. The reason why a line is no record is a constant. again says that the line is read again after a restart, not
	// necessarily with the lines before it; tag is then the Out.Tag of the first reading.
	Line(text []byte, again bool, tag uint64, out *Out) (v Verdict, reason string)
	// End gives up waiting for the rest of an open record: the part that is there goes into out.
	End(out *Out)
	// Save and Restore keep what later lines need of earlier ones, without open records: their lines are read again. nil: nothing.
	Save() []byte
	Restore(state []byte)
}
