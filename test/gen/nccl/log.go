package nccl

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// ncclPrinter writes the logs of one format. Errors stick in the sink.
type ncclPrinter interface {
	// open creates the files and writes everything before the first record.
	open() error
	// collective writes the records, and adds the printed values to the truth.
	collective(c *ncclCollective)
	// close writes the ends of the logs. It is not called after an error.
	close()
}

// log is common to the printers: the files, the clocks, and the truth about the current collective.
type log struct {
	writer.Sink
	opt   *Options
	rng   *rand.Rand // for values that a format makes up; the simulation has its own
	hosts []ncclHost
	hash  uint64 // of the communicator
	run   Run
	rec   Collective
	links []Link // by source
}

// Generate writes logs of collectives and their truth, and returns the summary. A context that ends stops Generate early without an error. Errors about the
// options wrap ErrOptions.
func Generate(ctx context.Context, opt Options) (Run, error) {
	return generate(ctx, opt, logfile.RealClock)
}

func generate(ctx context.Context, opt Options, clk logfile.Clock) (Run, error) {
	if err := opt.validate(); err != nil {
		return Run{}, err
	}
	start := opt.Start.UnixNano()
	if opt.Start.IsZero() {
		start = clk.Now().UnixNano()
		if !opt.Live {
			start -= rehearseNCCL(&opt)
		}
	}
	l := newNCCLLog(ctx, &opt, start, clk)
	p := l.printer()
	err := os.MkdirAll(opt.Out, 0o755)
	if err != nil {
		err = fmt.Errorf("%w: --out: %w", logfile.ErrOptions, err)
	} else if err = p.open(); err == nil {
		err = l.OpenTruth(opt.truthPath())
	}
	if err == nil {
		l.collectives(p, newSim(&opt, start))
		if l.Err == nil {
			p.close()
		}
		err = l.Err
	}
	l.run.Lines, l.run.LineCounts = l.Counts()
	l.finish()
	return l.run, l.Close(&l.run, &l.run.Files, err)
}

// rehearseNCCL simulates without writing, to learn how long the run takes in ns.
func rehearseNCCL(opt *Options) (end int64) {
	sim := newSim(opt, 0)
	var c ncclCollective
	for sim.next(&c) {
		end = max(end, c.end())
	}
	return end
}

func newNCCLLog(ctx context.Context, opt *Options, start int64, clk logfile.Clock) *log {
	l := &log{
		Sink: writer.Sink{Sink: logfile.Sink{Clock: clk, Paced: opt.Live, Ctx: ctx}}, opt: opt, rng: rand.New(rand.NewPCG(opt.Seed, 0x6c6f_6773)),
	}
	l.hash = l.rng.Uint64() | 1<<63 // above the largest int64, as half of NCCL's hashes
	width := len(strconv.Itoa(opt.Nodes - 1))
	for i := range opt.Nodes {
		l.hosts = append(l.hosts, ncclHost{
			name: fmt.Sprintf("gpu-node-%0*d", width, i), ip: fmt.Sprintf("10.10.%d.%d", 1+i/200, 11+i%200),
			HostClock: logfile.HostClock{
				Start: start, Skew: int64((2*l.rng.Float64() - 1) * float64(opt.ClockSkew)), Drift: (2*l.rng.Float64() - 1) * opt.ClockDrift,
			},
		})
	}
	if opt.perNIC() || opt.documented() {
		slow, _ := opt.slowLink()
		for rank := range opt.Ranks {
			l.links = append(l.links, Link{From: rank, To: opt.neighbour(rank), Slow: rank == slow})
		}
	}
	l.run = Run{
		Format: opt.Format, Seed: opt.Seed, Ranks: opt.Ranks, Nodes: opt.Nodes, CollectivesInStep: opt.PerStep, CommunicatorHash: fmt.Sprintf("0x%x", l.hash),
		StartUnixNano: start, EndUnixNano: start,
		SlowRank: opt.SlowRank, MissingRank: opt.MissingRank, GapRank: opt.GapRank, SlowCollective: opt.SlowCollective,
	}
	if opt.SlowRank >= 0 {
		l.run.SlowFrom, l.run.SlowBy = opt.SlowFrom, opt.SlowBy
	}
	if opt.MissingRank >= 0 {
		l.run.MissingFrom = opt.MissingFrom
	}
	if opt.GapRank >= 0 {
		l.run.GapAt = opt.GapAt
	}
	return l
}

// printer returns the printer of the format, and sets the communicator in the format's spelling.
func (l *log) printer() ncclPrinter {
	switch {
	case l.opt.inspector() != "":
		l.run.Communicator = l.run.CommunicatorHash
		return &inspectorLog{log: l, version: l.opt.inspector()}
	case l.opt.Format == FormatNCCLProfiler:
		l.run.Communicator = strconv.FormatUint(l.hash, 10)
		return &profilerLog{log: l}
	case l.opt.Format == FormatFlightRecorder:
		l.run.Communicator = flightGroup
		return &flightLog{log: l}
	case l.opt.documented():
		return &vcclLog{log: l}
	}
	if l.opt.Format == FormatVCCLFlow || l.opt.Format == FormatVCCLText {
		l.run.Communicator = strconv.FormatUint(l.hash, 10)
	}
	return &flowLog{log: l}
}

func (l *log) host(rank int) *ncclHost { return &l.hosts[rank/l.opt.perNode()] }

// file creates a log in the directory, of n in all.
func (l *log) file(name string, host *ncclHost, n int) (*logfile.Log, error) {
	f := &logfile.Log{File: logfile.File{Path: filepath.Join(l.opt.Out, name), Host: host.name}}
	return f, l.Create(f, l.opt.truthPath(), min(max(1<<26/n, 1<<12), 1<<16))
}

// raw writes text that need not end a line.
func (l *log) raw(f *logfile.Log, b []byte) {
	l.Buf = b
	if l.Err != nil {
		return
	}
	_, l.Err = f.W.Write(b)
	n := int64(bytes.Count(b, []byte{'\n'}))
	f.Lines += n
	f.Records += n
	if l.Err == nil && l.Paced {
		l.Err = f.W.Flush()
	}
}

// collectives prints all collectives of the simulation.
func (l *log) collectives(p ncclPrinter, sim *simulation) {
	var c ncclCollective
	for l.Err == nil && l.Ctx.Err() == nil && sim.next(&c) {
		if l.hung(&c) && c.step > l.opt.MissingFrom/l.opt.PerStep {
			break // the others wait for the end of the step for ever
		}
		l.begin(&c)
		l.Wait(c.end())
		p.collective(&c)
		l.end(&c)
	}
}

// hung reports whether the collective never ends: only a flight recorder has records of hung collectives.
func (l *log) hung(c *ncclCollective) bool {
	return l.opt.Format == FormatFlightRecorder && l.opt.MissingRank >= 0 && c.index >= l.opt.MissingFrom
}

// lost says whether a rank has no record.
func (l *log) lost(index, rank int) bool {
	return rank == l.opt.MissingRank && index >= l.opt.MissingFrom || rank == l.opt.GapRank && index == l.opt.GapAt
}

// ranks goes through the ranks with a record. record returns the printed duration, in ns; negative: none.
func (l *log) ranks(c *ncclCollective, record func(rank int) int64) {
	for rank := range c.arrive {
		if l.lost(c.index, rank) {
			l.rec.Missing = append(l.rec.Missing, rank)
			continue
		}
		l.rec.record(rank, record(rank))
	}
}

// end is when the last rank leaves.
func (c *ncclCollective) end() (at int64) {
	for _, t := range c.leave {
		at = max(at, t)
	}
	return at
}

// begin begins the truth about a collective.
func (l *log) begin(c *ncclCollective) {
	l.rec = Collective{
		Index: c.index, Step: c.step, Communicator: l.run.Communicator, Operation: c.name, Sequence: c.sequence, MessageSize: c.message, DataSize: c.data,
		StartUnixNano: c.arrive[0], BegunUnixNano: c.begun, EndUnixNano: c.end(), TransferNS: c.transfer, Slow: c.slow, Missing: l.rec.Missing[:0],
	}
	before := int64(0) // when the last rank but one came
	for rank, at := range c.arrive {
		l.rec.StartUnixNano = min(l.rec.StartUnixNano, at)
		switch {
		case at == c.begun && l.rec.LateNS == 0:
			l.rec.LateRank, l.rec.LateNS = rank, 1
		default:
			before = max(before, at)
		}
	}
	l.rec.LateNS = c.begun - l.rec.StartUnixNano
	l.rec.CostNS = (c.begun - before) * int64(len(c.arrive)-1)
}

// end ends the truth about a collective.
func (l *log) end(c *ncclCollective) {
	if t := l.rec.ShortestNS; t > 0 {
		l.rec.AlgBandwidth = float64(c.data) / (float64(t) / 1e9)
		l.rec.BusBandwidth = l.rec.AlgBandwidth * c.traffic(l.opt.Ranks)
	}
	l.run.Collectives++
	l.run.Steps = c.step + 1
	l.run.Operations += int64(l.rec.Records)
	l.run.Errors += l.rec.Errors
	l.run.Retries += l.rec.Retries
	l.run.EndUnixNano = max(l.run.EndUnixNano, l.rec.EndUnixNano)
	if err := l.Truth(&l.rec); err != nil && l.Err == nil {
		l.Err = err
	}
}

// finish completes the summary.
func (l *log) finish() {
	end := l.run.EndUnixNano
	for i := range l.hosts {
		h := &l.hosts[i]
		l.run.Hosts = append(l.run.Hosts, Host{Name: h.name, SkewNS: h.Skew, DriftPPM: h.Drift, OffsetNS: h.Local(end) - l.hosts[0].Local(end)})
	}
	for _, k := range l.links {
		if k.Records > 0 {
			k.Bandwidth, k.sum = k.sum/float64(k.Records)/8, 0
			l.run.Links = append(l.run.Links, k)
		}
	}
}
