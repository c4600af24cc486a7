package inspector

import (
	"fmt"
	"math"
	"strings"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// show writes the known values of an operation.
func show(o *op.Op) string {
	var s strings.Builder
	field := func(known bool, format string, v ...any) {
		if known {
			fmt.Fprintf(&s, " "+format, v...)
		}
	}
	s.WriteString(o.Kind.String() + string(o.Name))
	field(true, "#%d", o.Seq)
	field(!o.HasSeq, "alone")
	field(o.Ordinal, "ordinal")
	field(len(o.Comm) > 0, "comm=%s", o.Comm)
	field(len(o.CommName) > 0, "name=%q", o.CommName)
	field(o.Rank != op.Unknown, "rank=%d", o.Rank)
	field(o.CommSize != 0, "of=%d", o.CommSize)
	field(o.Nodes != 0, "nodes=%d", o.Nodes)
	field(o.Global, "global")
	field(len(o.Host) > 0, "host=%s", o.Host)
	field(o.PID != 0, "pid=%d", o.PID)
	field(o.Peer != op.Unknown, "peer=%d", o.Peer)
	field(o.Source != op.Unknown || o.Destination != op.Unknown, "%d→%d", o.Source, o.Destination)
	field(o.Size != op.Unknown, "size=%d", o.Size)
	field(o.Total != o.Size, "total=%d", o.Total)
	field(o.Start != 0, "start=%d", o.Start)
	field(o.End != 0, "end=%d", o.End)
	field(o.Duration != op.Unknown, "took=%d", o.Duration)
	field(true, "%s", o.Time)
	field(o.Waits, "waits")
	field(len(o.Timing) > 0, "by=%s", o.Timing)
	field(len(o.Algorithm)+len(o.Protocol) > 0, "algo=%s/%s", o.Algorithm, o.Protocol)
	field(o.Channel != op.Unknown, "channel=%d", o.Channel)
	field(o.Channels != 0, "channels=%d", o.Channels)
	field(!math.IsNaN(o.ReportedAlg), "alg=%.0f", o.ReportedAlg)
	field(!math.IsNaN(o.ReportedBus), "bus=%.0f", o.ReportedBus)
	field(o.State == op.Started, "started")
	for n := range o.Details {
		d := &o.Details[n]
		s.WriteString("\n  " + d.Name + " " + d.Operation)
		field(d.Under != op.Unknown, "under=%d", d.Under)
		field(d.Channel != op.Unknown, "channel=%d", d.Channel)
		field(d.Peer != op.Unknown, "peer=%d", d.Peer)
		field(d.Step != op.Unknown, "step=%d", d.Step)
		field(d.Direction != "", "%s", d.Direction)
		field(d.Size != op.Unknown, "size=%d", d.Size)
		field(d.Start != 0, "start=%d", d.Start)
		field(d.End != 0, "end=%d", d.End)
		field(d.Duration != op.Unknown, "took=%d", d.Duration)
	}
	return s.String()
}

func showSample(s *parse.Sample) string {
	return fmt.Sprintf("%s %s=%v comm=%s rank=%d host=%s pid=%d at=%d", s.Metric, s.Record, s.Value, s.Comm, s.Rank, s.Host, s.PID, s.At)
}

func result(v parse.Verdict, reason string, out *parse.Out) string {
	parts := []string{[...]string{"record", "ignored", "rejected"}[v]}
	if reason != "" {
		parts[0] += " " + reason
	}
	for n := range out.Ops {
		parts = append(parts, show(&out.Ops[n]))
	}
	for n := range out.Samples {
		parts = append(parts, showSample(&out.Samples[n]))
	}
	return strings.Join(parts, "\n")
}
