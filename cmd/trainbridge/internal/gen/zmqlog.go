package gen

import (
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/spans"
)

// zmqColumn is a column of numbers, left-aligned. What it holds is an index of zmqCall.ns, or one of the next three.
type zmqColumn struct {
	name  string
	width int
	what  int
}

const (
	zmqSent = zmqTimes + iota
	zmqReceived
	zmqThroughput
)

// zmqLayout is how one version of the writer prints: tee_gpu/tee_runner_optimized.py, and for v2 tee_runner_otp.py, of amoncjj/TSQP.
type zmqLayout struct {
	title   string
	rule    int // characters of the rules
	columns []zmqColumn
}

var zmqLayouts = map[string]zmqLayout{
	"v1": {"ZeroMQ Performance Log - Transport: ", 120, []zmqColumn{
		{"Serialize(ms)", 15, zmqSerialize},
		{"Send(ms)", 12, zmqSend},
		{"Recv(ms)", 12, zmqReceive},
		{"Deserialize(ms)", 17, zmqDeserialize},
		{"Total(ms)", 12, zmqTotal},
		{"Sent(KB)", 12, zmqSent},
		{"Recv(KB)", 12, zmqReceived},
		{"Throughput(MB/s)", 18, zmqThroughput},
	}},
	"v2": {"ZeroMQ Performance Log (OTP) - Transport: ", 140, []zmqColumn{
		{"Offline(ms)", 12, zmqOffline},
		{"Ser(ms)", 10, zmqSerialize},
		{"Send(ms)", 10, zmqSend},
		{"Recv(ms)", 10, zmqReceive},
		{"Deser(ms)", 10, zmqDeserialize},
		{"Compute(ms)", 12, zmqServer},
		{"Total(ms)", 12, zmqTotal},
		{"Sent(KB)", 10, zmqSent},
		{"Recv(KB)", 10, zmqReceived},
	}},
	"v3": {"ZeroMQ Performance Log - Transport: ", 120, []zmqColumn{
		{"Ser(ms)", 10, zmqSerialize},
		{"Send(ms)", 10, zmqSend},
		{"Recv(ms)", 10, zmqReceive},
		{"Deser(ms)", 10, zmqDeserialize},
		{"Comm(ms)", 12, zmqCommunication},
		{"Total(ms)", 12, zmqTotal},
		{"Sent(KB)", 10, zmqSent},
		{"Recv(KB)", 10, zmqReceived},
	}},
	"v4": {"ZeroMQ Performance Log - Transport: ", 120, []zmqColumn{
		{"Ser(ms)", 10, zmqSerialize},
		{"Send(ms)", 10, zmqSend},
		{"Recv(ms)", 10, zmqReceive},
		{"Deser(ms)", 10, zmqDeserialize},
		{"Comm(ms)", 12, zmqCommunication},
		{"GPU(ms)", 10, zmqServer},
		{"Total(ms)", 12, zmqTotal},
		{"Sent(KB)", 10, zmqSent},
		{"Recv(KB)", 10, zmqReceived},
	}},
	// What the guide of the writer makes of a v1 log, with the commas that its pandas.read_csv needs.
	LayoutCSV: {"", 0, []zmqColumn{
		{"Serialize_ms", 0, zmqSerialize},
		{"Send_ms", 0, zmqSend},
		{"Recv_ms", 0, zmqReceive},
		{"Deserialize_ms", 0, zmqDeserialize},
		{"Total_ms", 0, zmqTotal},
		{"Sent_KB", 0, zmqSent},
		{"Recv_KB", 0, zmqReceived},
		{"Throughput_MBps", 0, zmqThroughput},
	}},
}

// zmqLog writes what a zmqSim draws.
type zmqLog struct {
	sink
	opt    *ZMQOptions
	layout zmqLayout
	f      *logFile
	run    ZMQRun
	stats  zmqStats // since the ids restarted
	block  ZMQSums  // the same as printed
}

// GenerateZMQ writes a log of RPCs over ZeroMQ and its truth, and returns the summary. A context that ends stops it early without an
// error, and without a footer, as a client that is stopped writes none. Errors about the options wrap ErrOptions.
func GenerateZMQ(ctx context.Context, opt ZMQOptions, stdout io.Writer) (ZMQRun, error) {
	return generateZMQ(ctx, opt, stdout, realClock)
}

func generateZMQ(ctx context.Context, opt ZMQOptions, stdout io.Writer, c clock) (ZMQRun, error) {
	if err := opt.validate(); err != nil {
		return ZMQRun{}, err
	}
	start, scale := opt.Start.UnixNano(), 1.0
	if opt.Rate > 0 {
		scale = zmqScale(&opt)
	}
	if opt.Start.IsZero() {
		start = c.now().UnixNano()
		if opt.Rate == 0 && opt.truthPath() != "" { // the log has no stamps
			_, ns := rehearseZMQ(&opt, 1)
			start -= ns
		}
	}
	l := &zmqLog{
		sink: sink{clock: c, paced: opt.Rate > 0, ctx: ctx}, opt: &opt, layout: zmqLayouts[opt.Layout],
		run: ZMQRun{Layout: opt.Layout, Transport: opt.Transport, Seed: opt.Seed, Layers: opt.Layers, StartUnixNano: start, EndUnixNano: start},
	}
	name := "zmq_performance.log"
	if opt.Layout == LayoutCSV {
		name = "zmq_performance.csv"
	}
	var err error
	l.f, err = l.openLog(opt.Out, isDir(opt.Out), name, opt.truthPath(), stdout)
	if err == nil {
		err = l.openTruth(opt.truthPath())
	}
	if err == nil {
		l.head()
		l.groups(newZMQSim(&opt, scale))
		err = l.err
	}
	l.run.Lines, l.run.LineCounts = l.lineCounts()
	err = l.close(&l.run, &l.run.Files, err)
	return l.run, err
}

// rehearseZMQ draws a log without writing it, to learn how many rows it has and how long it takes.
func rehearseZMQ(opt *ZMQOptions, scale float64) (rows, ns int64) {
	sim := newZMQSim(opt, scale)
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

// zmqScale finds the factor on durations and tensors at which rows come at opt.Rate: the time that a log takes is linear in it.
func zmqScale(opt *ZMQOptions) float64 {
	o := *opt
	o.Passes, o.Lines, o.Crash = 50, 0, false
	if opt.Passes > 0 && opt.Lines == 0 {
		o.Passes = min(o.Passes, opt.Passes)
	}
	rows, full := rehearseZMQ(&o, 1)
	_, half := rehearseZMQ(&o, 0.5)
	slope := 2 * float64(full-half)
	return (float64(rows)/opt.Rate*1e9 - (float64(full) - slope)) / slope
}

func (l *zmqLog) head() {
	if l.layout.title == "" {
		b := l.text("ID,Method")
		for _, c := range l.layout.columns {
			b = append(append(b, ','), c.name...)
		}
		l.line(l.f, b, classIgnored)
		return
	}
	l.line(l.f, l.text(l.layout.title, l.opt.Transport), classIgnored)
	l.rule()
	b := l.text("ID    Method              ")
	for _, c := range l.layout.columns {
		b = append(b, ' ')
		b = padRight(append(b, c.name...), len(b), c.width)
	}
	l.line(l.f, b, classIgnored)
	l.rule()
}

func (l *zmqLog) rule() { l.line(l.f, l.text(strings.Repeat("=", l.layout.rule)), classIgnored) }

// groups writes the rows.
func (l *zmqLog) groups(sim *zmqSim) {
	name := filepath.Base(l.f.Path)
	now := l.run.StartUnixNano
	var g zmqGroup
	for sim.next(&g) {
		if g.block != l.run.Blocks {
			l.run.Blocks = g.block
			l.stats, l.block = zmqStats{}, ZMQSums{}
		}
		truth := ZMQPass{Kind: g.kind, File: name, Block: g.block, Pass: g.pass, SerializeHigh: g.high}
		for i := range g.calls {
			c := &g.calls[i]
			start := now + c.ns[zmqOffline]
			end := start + c.ns[zmqTotal]
			l.wait(end)
			if l.err != nil || l.ctx.Err() != nil {
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
		if l.err != nil || l.ctx.Err() != nil {
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
func (l *zmqLog) group(g *zmqGroup, truth *ZMQPass) {
	if truth.Calls == 0 {
		return
	}
	if g.kind == spans.SpanRPCPass {
		l.run.Passes++
	}
	truth.Complete = g.whole && int(truth.Calls) == len(g.calls)
	if err := l.truth(truth); err != nil && l.err == nil {
		l.err = err
	}
}

func (l *zmqLog) row(c *zmqCall) {
	csv := l.layout.title == ""
	b := strconv.AppendInt(l.buf[:0], c.id, 10)
	if csv {
		b = append(append(b, ','), c.method...)
	} else {
		b = append(padRight(b, 0, 5), ' ')
		b = padRight(append(b, c.method...), len(b), 20)
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
			b = appendHundredths(b, kilobyteHundredths(c.sent))
		case zmqReceived:
			b = appendHundredths(b, kilobyteHundredths(c.recv))
		case zmqThroughput:
			b = strconv.AppendFloat(b, mebibytesPerSecond(c.sent+c.recv, c.ns[zmqTotal]), 'f', 2, 64)
		default:
			us := micros(c.ns[col.what])
			b = append(strconv.AppendInt(b, us/1000, 10), '.')
			b = appendPadded(b, us%1000, 3)
		}
		b = padRight(b, from, col.width)
	}
	l.line(l.f, b, classRecord)
}

// kilobyteHundredths is a size in hundredths of KiB, of two equally near the even one: Python rounds n/1024, which is exact, so.
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
