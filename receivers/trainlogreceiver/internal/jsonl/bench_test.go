package jsonl_test

import (
	"testing"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/jsonl"
)

// sink takes records as step.Out does.
type sink struct {
	rec     record.Record
	emitted int
	each    func(*record.Record)
}

func (s *sink) Record() *record.Record {
	s.rec.Reset()
	return &s.rec
}

func (s *sink) Emit(rec *record.Record) {
	s.emitted++
	if s.each != nil {
		s.each(rec)
	}
}

func BenchmarkLine(b *testing.B) {
	for name, text := range map[string]string{
		"seed":    `{"loss": 2.345, "throughput": 512.3, "step_time_s": 0.124, "lr": 1.2e-5}`,
		"six":     `{"step": 1201, "loss": 2.345, "throughput": 512.3, "step_time_s": 0.124, "lr": 1.2e-5, "grad_norm": 1.0731}`,
		"gpus":    `{"step": 1201, "loss": 2.3451, "throughput": 512.3, "step_time_s": 0.124, "lr": 1.2e-5, "gpu_util": [97, 98, 96, 99, 97, 98, 96, 99]}`,
		"stamped": `{"timestamp": "2026-08-22T10:00:14.5Z", "step": 1201, "loss": 2.34512371826, "throughput": 512.3, "step_time_s": 0.124, "lr": 1.2e-5}`,
		"app":     `{"time": "2026-08-22T10:00:14.5Z", "level": "info", "msg": "saved checkpoint", "path": "/ckpt/1200", "took": 12.5}`,
	} {
		b.Run(name, func(b *testing.B) {
			p, out, line := jsonl.New(nil), &sink{}, []byte(text)
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				p.Line(line, out)
			}
		})
	}
}
