package zmq

import (
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// column is a left-aligned column of numbers: an index of zmqCall.ns, or one of the next three constants.
type column struct {
	name  string
	width int
	what  int
}

const (
	zmqSent = times + iota
	received
	throughput
)

// zmqLayout is the form of a version of the writer: tee_gpu/tee_runner_optimized.py, and for v2 tee_runner_otp.py, of amoncjj/TSQP.
type zmqLayout struct {
	title   string
	rule    int // characters of the rules
	columns []column
}

var layouts = map[string]zmqLayout{
	"v1": {"ZeroMQ Performance Log - Transport: ", 120, []column{
		{"Serialize(ms)", 15, serialize},
		{"Send(ms)", 12, send},
		{"Recv(ms)", 12, receive},
		{"Deserialize(ms)", 17, deserialize},
		{"Total(ms)", 12, zmqTotal},
		{"Sent(KB)", 12, zmqSent},
		{"Recv(KB)", 12, received},
		{"Throughput(MB/s)", 18, throughput},
	}},
	"v2": {"ZeroMQ Performance Log (OTP) - Transport: ", 140, []column{
		{"Offline(ms)", 12, zmqOffline},
		{"Ser(ms)", 10, serialize},
		{"Send(ms)", 10, send},
		{"Recv(ms)", 10, receive},
		{"Deser(ms)", 10, deserialize},
		{"Compute(ms)", 12, server},
		{"Total(ms)", 12, zmqTotal},
		{"Sent(KB)", 10, zmqSent},
		{"Recv(KB)", 10, received},
	}},
	"v3": {"ZeroMQ Performance Log - Transport: ", 120, []column{
		{"Ser(ms)", 10, serialize},
		{"Send(ms)", 10, send},
		{"Recv(ms)", 10, receive},
		{"Deser(ms)", 10, deserialize},
		{"Comm(ms)", 12, zmqCommunication},
		{"Total(ms)", 12, zmqTotal},
		{"Sent(KB)", 10, zmqSent},
		{"Recv(KB)", 10, received},
	}},
	"v4": {"ZeroMQ Performance Log - Transport: ", 120, []column{
		{"Ser(ms)", 10, serialize},
		{"Send(ms)", 10, send},
		{"Recv(ms)", 10, receive},
		{"Deser(ms)", 10, deserialize},
		{"Comm(ms)", 12, zmqCommunication},
		{"GPU(ms)", 10, server},
		{"Total(ms)", 12, zmqTotal},
		{"Sent(KB)", 10, zmqSent},
		{"Recv(KB)", 10, received},
	}},
	// The writer's guide to convert a v1 log, with the commas needed by its pandas.read_csv.
	LayoutCSV: {"", 0, []column{
		{"Serialize_ms", 0, serialize},
		{"Send_ms", 0, send},
		{"Recv_ms", 0, receive},
		{"Deserialize_ms", 0, deserialize},
		{"Total_ms", 0, zmqTotal},
		{"Sent_KB", 0, zmqSent},
		{"Recv_KB", 0, received},
		{"Throughput_MBps", 0, throughput},
	}},
}

// log writes the calls of a simulation.
type log struct {
	writer.Sink
	opt    *Options
	layout zmqLayout
	f      *logfile.Log
	run    Run
	stats  zmqStats // of the calls since the ids restarted
	block  Sums     // of the same calls, as printed
}

// Generate writes a log of RPCs over ZeroMQ and its truth, and returns the summary. A context that ends stops it early without an error, and without a footer,
// like a stopped client. Errors about the options wrap ErrOptions.
func Generate(ctx context.Context, opt Options, stdout io.Writer) (Run, error) {
	return generate(ctx, opt, stdout, logfile.RealClock)
}

func generate(ctx context.Context, opt Options, stdout io.Writer, c logfile.Clock) (Run, error) {
	if err := opt.validate(); err != nil {
		return Run{}, err
	}
	start, scale := opt.Start.UnixNano(), 1.0
	if opt.Rate > 0 {
		scale = zmqScale(&opt)
	}
	if opt.Start.IsZero() {
		start = c.Now().UnixNano()
		if opt.Rate == 0 && opt.truthPath() != "" { // the log has no stamps
			_, ns := rehearse(&opt, 1)
			start -= ns
		}
	}
	l := &log{
		Sink: writer.Sink{Sink: logfile.Sink{Clock: c, Paced: opt.Rate > 0, Ctx: ctx}}, opt: &opt, layout: layouts[opt.Layout],
		run: Run{Layout: opt.Layout, Transport: opt.Transport, Seed: opt.Seed, Layers: opt.Layers, StartUnixNano: start, EndUnixNano: start},
	}
	name := "zmq_performance.log"
	if opt.Layout == LayoutCSV {
		name = "zmq_performance.csv"
	}
	var err error
	l.f, err = l.OpenLog(opt.Out, writer.IsDir(opt.Out), name, opt.truthPath(), stdout)
	if err == nil {
		err = l.OpenTruth(opt.truthPath())
	}
	if err == nil {
		l.head()
		l.groups(newSim(&opt, scale))
		err = l.Err
	}
	l.run.Lines, l.run.LineCounts = l.Counts()
	err = l.Close(&l.run, &l.run.Files, err)
	return l.run, err
}

// rehearse draws a log without writing, to learn its number of rows and its duration.
func rehearse(opt *Options, scale float64) (rows, ns int64) {
	sim := newSim(opt, scale)
	var g zmqGroup
	gap := int64(0)
	for sim.next(&g) {
		for i := range g.calls {
			c := &g.calls[i]
			rows++
			ns += gap + c.ns[zmqOffline] + c.ns[zmqTotal]
			gap = c.gap
		}
	}
	return rows, ns
}

// zmqScale finds the factor on durations and tensors at which rows come at opt.Rate: the duration of a log is linear in the factor.
func zmqScale(opt *Options) float64 {
	o := *opt
	o.Passes, o.Lines, o.Crash = 50, 0, false
	if opt.Passes > 0 && opt.Lines == 0 {
		o.Passes = min(o.Passes, opt.Passes)
	}
	rows, full := rehearse(&o, 1)
	_, half := rehearse(&o, 0.5)
	slope := 2 * float64(full-half)
	return (float64(rows)/opt.Rate*1e9 - (float64(full) - slope)) / slope
}

func (l *log) head() {
	if l.layout.title == "" {
		b := l.Text("ID,Method")
		for _, c := range l.layout.columns {
			b = append(append(b, ','), c.name...)
		}
		l.Line(l.f, b, logfile.Ignored)
		return
	}
	l.Line(l.f, l.Text(l.layout.title, l.opt.Transport), logfile.Ignored)
	l.rule()
	b := l.Text("ID    Method              ")
	for _, c := range l.layout.columns {
		b = append(b, ' ')
		b = writer.PadRight(append(b, c.name...), len(b), c.width)
	}
	l.Line(l.f, b, logfile.Ignored)
	l.rule()
}

func (l *log) rule() { l.Line(l.f, l.Text(strings.Repeat("=", l.layout.rule)), logfile.Ignored) }

// groups writes the rows.
func (l *log) groups(sim *simulation) {
	name := filepath.Base(l.f.Path)
	now := l.run.StartUnixNano
	var g zmqGroup
	for sim.next(&g) {
		if g.block != l.run.Blocks {
			l.run.Blocks = g.block
			l.stats, l.block = zmqStats{}, Sums{}
		}
		truth := Pass{Kind: g.kind, File: name, Block: g.block, Pass: g.pass, SerializeHigh: g.high}
		for i := range g.calls {
			c := &g.calls[i]
			start := now + c.ns[zmqOffline]
			end := start + c.ns[zmqTotal]
			l.Wait(end)
			if l.Err != nil || l.Ctx.Err() != nil {
				break
			}
			l.row(c)
			l.stats.add(c)
			l.block.add(c)
			truth.add(c, start, end)
			l.run.EndUnixNano = end
			now = end + c.gap
		}
		l.group(&g, &truth)
		if l.Err != nil || l.Ctx.Err() != nil {
			return
		}
	}
	if l.opt.NoFooter || l.opt.Crash || l.layout.title == "" {
		return
	}
	l.footer()
	l.run.Footer = &l.block
}

// group writes the truth of a group.
func (l *log) group(g *zmqGroup, truth *Pass) {
	if truth.Calls == 0 {
		return
	}
	if g.kind == spans.SpanRPCPass {
		l.run.Passes++
	}
	truth.Complete = g.whole && int(truth.Calls) == len(g.calls)
	if err := l.Truth(truth); err != nil && l.Err == nil {
		l.Err = err
	}
}

func (l *log) row(c *zmqCall) {
	csv := l.layout.title == ""
	b := strconv.AppendInt(l.Buf[:0], c.id, 10)
	if csv {
		b = append(append(b, ','), c.method...)
	} else {
		b = append(writer.PadRight(b, 0, 5), ' ')
		b = writer.PadRight(append(b, c.method...), len(b), 20)
	}
	for _, col := range l.layout.columns {
		if csv {
			b = append(b, ',')
		} else {
			b = append(b, ' ')
		}
		from := len(b)
		switch col.what {
		case zmqSent:
			b = logfile.AppendHundredths(b, kilobyteHundredths(c.sent))
		case received:
			b = logfile.AppendHundredths(b, kilobyteHundredths(c.recv))
		case throughput:
			b = strconv.AppendFloat(b, mebibytesPerSecond(c.sent+c.recv, c.ns[zmqTotal]), 'f', 2, 64)
		default:
			us := logfile.Micros(c.ns[col.what])
			b = append(strconv.AppendInt(b, us/1000, 10), '.')
			b = logfile.AppendPadded(b, us%1000, 3)
		}
		b = writer.PadRight(b, from, col.width)
	}
	l.Line(l.f, b, logfile.Record)
}

// kilobyteHundredths is a size in hundredths of KiB, of two equally near hundredths the even one, as Python rounds n/1024, which is exact.
func kilobyteHundredths(n int64) int64 {
	h, rest := n*100/1024, n*100%1024
	if rest > 512 || rest == 512 && h%2 == 1 {
		h++
	}
	return h
}

func mebibytesPerSecond(size, ns int64) float64 {
	return float64(size) / (1 << 20) / (float64(ns) / 1e9)
}
