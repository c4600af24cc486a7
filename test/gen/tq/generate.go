package tq

import (
	"context"
	"io"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// Generate writes a log and its truth, and returns the summary. A context that ends stops it early without an error: running functions are in the truth as
// Open. Errors about the options wrap ErrOptions.
func Generate(ctx context.Context, opt Options, stdout io.Writer) (Run, error) {
	return generate(ctx, opt, stdout, logfile.RealClock)
}

func generate(ctx context.Context, opt Options, stdout io.Writer, c logfile.Clock) (Run, error) {
	if err := opt.validate(); err != nil {
		return Run{}, err
	}
	if opt.Prefix == "" {
		opt.Prefix = writer.PrefixRayANSI
		if opt.intoFiles() {
			opt.Prefix = PrefixPython
		}
	}
	scale := opt.Scale
	if opt.Rate > 0 {
		scale = scaleFor(ctx, opt)
	}
	start := opt.Start.UnixNano()
	if opt.Start.IsZero() {
		start = c.Now().UnixNano()
		if opt.Rate == 0 {
			start -= rehearse(ctx, opt, scale, opt.Batches).span()
		}
	}
	out := newTQSink(ctx, &opt, c)
	s := newSim(opt, start, scale, out)
	s.counts.Seed, s.counts.Workers = opt.Seed, opt.Workers
	err := out.open(s, stdout)
	if err == nil {
		err = s.run(ctx, opt.Batches)
	}
	err = out.Close(&s.counts, &s.counts.Files, err)
	return s.counts, err
}

func (r Run) span() int64 { return r.EndUnixNano - r.StartUnixNano }

// rehearse simulates without writing, to learn the number of lines and their duration.
func rehearse(ctx context.Context, opt Options, scale float64, batches int) Run {
	s := newSim(opt, 1<<60, scale, nil)
	_ = s.run(ctx, batches) // without a sink nothing fails
	return s.counts
}

// scaleFor finds the factor on durations at which the simulation makes opt.Rate lines per second. The simulated time is linear in the factor but for waits of
// coroutines for their event loop, which are µs.
func scaleFor(ctx context.Context, opt Options) float64 {
	batches := opt.Batches
	if batches == 0 || batches > 50 {
		batches = 50
	}
	full, none := rehearse(ctx, opt, 1, batches), rehearse(ctx, opt, 0, batches)
	want := float64(full.Lines) / opt.Rate * 1e9
	return max(0, (want-float64(none.span()))/float64(full.span()-none.span()))
}
