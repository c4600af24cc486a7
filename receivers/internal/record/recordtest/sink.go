package recordtest

import "github.com/trainbridge/trainbridge/receivers/internal/record"

// Sink takes records as step.Out does, and shows each as Show does.
type Sink struct {
	rec record.Record
	Got []string
	// Keys are the records' keys.
	Keys []string
	// Retellings counts the calls of Retold.
	Retellings int
}

// Record returns an empty record.
func (s *Sink) Record() *record.Record {
	s.rec.Reset()
	return &s.rec
}

// Emit takes a record.
func (s *Sink) Emit(rec *record.Record) {
	s.Got = append(s.Got, rec.Source+" "+Show(rec))
	s.Keys = append(s.Keys, string(rec.Key))
}

// Retold is as in step.Out.
func (s *Sink) Retold() { s.Retellings++ }

// Discard takes records as step.Out does, for benchmarks.
type Discard struct{ rec record.Record }

// Record returns an empty record.
func (d *Discard) Record() *record.Record {
	d.rec.Reset()
	return &d.rec
}

// Emit does nothing.
func (*Discard) Emit(*record.Record) {}

// Retold does nothing.
func (*Discard) Retold() {}
