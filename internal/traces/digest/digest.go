// Package digest sums up traces: sums per TransferQueue function, series per training log, passes of RPCs, collectives per
// communicator, how often each verdict was passed, which trace is worth a look. It prints nothing: code that prints, plots or compares reads the figures here.
package digest

import "github.com/trainbridge/trainbridge/internal/traces/tree"

// Digest sums up traces, domain by domain. The zero value is empty. It keeps no span.
type Digest struct {
	Functions   Functions
	Steps       Steps
	Passes      Passes
	Collectives Collectives
}

// Of is the digest of traces, by start.
func Of(traces []*tree.Trace) *Digest {
	d := new(Digest)
	for _, t := range traces {
		d.Add(t)
	}
	return d
}

// Add adds a trace. Where traces are given by start, the passes are by start, too.
func (d *Digest) Add(t *tree.Trace) {
	d.Functions.add(t)
	d.Steps.add(t)
	d.Passes.add(t)
	d.Collectives.add(t)
}
