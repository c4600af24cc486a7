package trainlogreceiver

import (
	"bytes"
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var typical = map[string]func(i int) string{
	"jsonl": func(i int) string {
		return fmt.Sprintf(
			`{"step": %d, "loss": %.4f, "throughput": %.1f, "step_time_s": 0.124, "lr": 1.2e-05, "grad_norm": %.4f}`, i+1, 2+1/float64(i+1), 512+float64(i%10),
			1+float64(i%7)/7,
		)
	},
	"hf": func(i int) string {
		return fmt.Sprintf(`{'loss': %.4f, 'grad_norm': %.4f, 'learning_rate': 4e-05, 'epoch': %.2f}`, 2+1/float64(i+1), 1+float64(i%7)/7, float64(i)/1000)
	},
}

// From file to delivered pdata, with tail. cpu-ns/line is the measure on a busy machine.
func BenchmarkReadAll(b *testing.B) {
	for _, name := range []string{"jsonl", "hf"} {
		const lines = 100_000
		var text bytes.Buffer
		for i := range lines {
			text.WriteString(typical[name](i))
			text.WriteByte('\n')
		}
		for _, format := range []string{name, formatAuto} {
			b.Run(name+"/format="+format, func(b *testing.B) {
				cfg := createDefaultConfig().(*Config)
				cfg.Include = []string{filereceivertest.Put(b, b.TempDir(), "x.log", text.String())}
				cfg.Format = format
				b.ReportAllocs()
				from := cpu()
				n := int64(0)
				for b.Loop() {
					c, err := filereceiver.ReadAll(
						context.Background(), receivertest.NewNopSettings(metadata.Type), cfg, makeParts, nil, consumertest.NewNop(), consumertest.NewNop(),
					)
					if err != nil {
						b.Fatal(err)
					}
					n += c.Records
				}
				b.ReportMetric(float64(cpu()-from)/float64(n), "cpu-ns/line")
			})
		}
	}
}

// noOut takes records and keeps none.
type noOut struct {
	rec    record.Record
	prefix line.Prefix
}

var _ step.Out = (*noOut)(nil)

func (o *noOut) Record() *record.Record {
	o.rec.Reset()
	return &o.rec
}

func (*noOut) Emit(*record.Record) {}
func (*noOut) Model(*spans.Model)  {}
func (*noOut) Restarted()          {}
func (*noOut) Retold()             {}
func (o *noOut) Prefix() *line.Prefix {
	o.prefix = line.Prefix{}
	return &o.prefix
}

// The parser alone: the cost of detecting the format, for records and for other text.
func BenchmarkParser(b *testing.B) {
	for name, line := range map[string]string{
		"jsonl": typical["jsonl"](1000), "hf": typical["hf"](1000),
		"text": "The attention mask and the pad token id were not set. As a consequence, you may observe unexpected behavior.",
	} {
		for _, format := range []string{"jsonl", "hf", formatAuto} {
			b.Run(name+"/format="+format, func(b *testing.B) {
				p, out, text := newParser(format, nil, nil), &noOut{}, []byte(line)
				b.ReportAllocs()
				for b.Loop() {
					p.Line(text, out)
				}
			})
		}
	}
}
