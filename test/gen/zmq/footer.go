package zmq

import (
	"fmt"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// zmqStats are the sums of the client, not rounded; times in ns.
type zmqStats struct {
	calls, sent, recv int64
	ns                [times]int64
	prepared          int64 // computed offline: a mask per linear layer or product
	handling          int64
	tensors, shared   int64
	linear, matmul    operationStats
}

type operationStats struct{ count, total, communication int64 }

func (s *zmqStats) add(c *zmqCall) {
	s.calls++
	s.sent += c.sent
	s.recv += c.recv
	for i, ns := range c.ns {
		s.ns[i] += ns
	}
	s.tensors += c.tensors
	s.shared += c.shared
	op, n := &s.linear, c.modules
	if c.method == zmqLayer[1].method {
		op, n = &s.matmul, 1
	}
	if n > 0 {
		s.prepared += n
		s.handling += c.handling
		op.count += n
		op.total += c.ns[zmqTotal] + c.handling
		op.communication += c.ns[zmqCommunication]
	}
}

// stages is the time of all stages.
func (s *zmqStats) stages() int64 {
	return s.ns[serialize] + s.ns[send] + s.ns[receive] + s.ns[deserialize]
}

// each is a sum in ns over n calls, as ms per call.
func each(ns, n int64) float64 { return float64(ns) / 1e6 / float64(n) }

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// footer is print_stats().
func (l *log) footer() {
	title := map[string]string{"v1": "SUMMARY", "v2": "SUMMARY (OTP Encryption)"}[l.opt.Layout]
	if title == "" {
		title = "SUMMARY (No Encryption)"
	}
	l.section("")
	l.rule()
	l.section(title)
	l.rule()
	l.value("Total RPC Calls: %d", l.stats.calls)
	switch l.opt.Layout {
	case "v1":
		l.averages()
	case "v2":
		l.masked()
	default:
		l.operations()
	}
	l.rule()
}

func (l *log) section(text string) { l.Line(l.f, l.Text(text), logfile.Ignored) }

func (l *log) value(format string, args ...any) {
	l.Line(l.f, fmt.Appendf(l.Buf[:0], format, args...), logfile.Side)
}

func (l *log) averages() {
	s := &l.stats
	for _, f := range []struct {
		name string
		what int
	}{{"Serialize", serialize}, {"Send", send}, {"Receive", receive}, {"Deserialize", deserialize}, {"Total", zmqTotal}} {
		l.value("Average %s Time: %.3f ms", f.name, each(s.ns[f.what], s.calls))
	}
	l.value("Total Data Sent: %.2f MB", mebibytes(s.sent))
	l.value("Total Data Received: %.2f MB", mebibytes(s.recv))
	if l.opt.shared() {
		l.value("Shared Memory Transfers: %d (%.2f MB)", s.tensors, mebibytes(s.shared))
		l.value("ZeroMQ Transfers: 0 (0.00 MB)")
	}
	l.value("Average Throughput: %.2f MB/s", mebibytesPerSecond(s.sent+s.recv, s.ns[zmqTotal]))
}

func (l *log) masked() {
	s := &l.stats
	l.section("")
	l.section("Offline Precomputation:")
	l.value("  Total: %.4f s", seconds(s.ns[zmqOffline]))
	l.value("  Count: %d", s.prepared)
	l.section("")
	l.section("Communication Overhead:")
	l.value("  Serialize: %.4f s", seconds(s.ns[serialize]))
	l.value("  Send: %.4f s", seconds(s.ns[send]))
	l.value("  Receive: %.4f s", seconds(s.ns[receive]))
	l.value("  Deserialize: %.4f s", seconds(s.ns[deserialize]))
	l.value("  Total: %.4f s", seconds(s.stages()))
	l.section("")
	l.section("Actual Computation:")
	l.value("  GPU: %.4f s", seconds(s.ns[server]))
	l.value("  TEE Recovery: %.4f s", seconds(s.handling))
	l.value("  Total: %.4f s", seconds(s.ns[server]+s.handling))
	l.section("")
	l.value("Effective Time (excl. offline & comm): %.4f s", seconds(s.ns[zmqTotal]-s.ns[zmqOffline]-s.stages()))
}

func (l *log) operations() {
	s := &l.stats
	l.section("")
	l.section("Communication Overhead:")
	l.value("  Total: %.4f s (%.3f ms/call)", seconds(s.stages()), each(s.stages(), s.calls))
	l.section("")
	l.section("Computation Time:")
	l.value("  GPU Compute: %.4f s", seconds(s.ns[zmqTotal]-s.stages())) // the client's own error: not GPU time, since the server computes within the stages
	l.section("")
	l.section("Operation Statistics:")
	for _, op := range []struct {
		name string
		operationStats
	}{{"Linear", s.linear}, {"Matmul", s.matmul}} {
		if op.count == 0 {
			continue
		}
		l.value("  %s (count=%d):", op.name, op.count)
		l.value("    Avg Total: %.3f ms", each(op.total, op.count))
		l.value("    Avg Comm:  %.3f ms", each(op.communication, op.count))
		l.value("    Avg Compute: %.3f ms", each(op.total-op.communication, op.count))
	}
}
