package spans

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Resource has the origin of a span's work, and attributes common to its spans unless a span states its own. Zero fields are unknown and not sent.
//
// The content follows from a record and from the records before it in its stream, never from the majority of a batch: a record read again gives the same
// resource. Values that change from record to record are on the spans: else each record would have a resource of its own.
type Resource struct {
	Service string // service.name: the job
	RunID   string // ml.run.id
	Attempt int64  // ml.run.attempt; 0: the first
	Host    string // host.name
	PID     int64  // process.pid
	Model   *Model // ml.model.*, and dl.world_size where Model has it and Stated has not; resources are equal only with the same pointer

	JoinBy string // trainbridge.join.by, where common to all spans

	RecordOnly bool // trainbridge.record_only: the spans are joined and counted, but not drawn

	Time TimeSource // trainbridge.time.source; Batch.Add writes a differing source on the span

	// Of records of training.
	Source       string // trainbridge.source
	Units        string // trainbridge.source.unit
	DurationKind string // ml.train.step.duration.kind
	Stated       Stated

	// Of calls.
	System       string // rpc.system.name
	Network      string // network.transport
	Transport    string // zeromq.transport
	SharedMemory bool   // zeromq.shared_memory
}

// PutInstance writes the attributes of the resource of metrics. The run is the instance of the service: Prometheus makes its instance label from the instance,
// without which two runs of a job would be the same series.
func (r Resource) PutInstance(m pcommon.Map) {
	r.Put(m)
	if r.RunID != "" {
		m.PutStr(AttrServiceInstanceID, r.RunID)
	}
}

// Put writes the resource's attributes, those of its job by the environment (PutJob), and the model's, with the model's world size where none is stated.
func (r Resource) Put(m pcommon.Map) {
	m.EnsureCapacity(12)
	if r.Service != "" {
		m.PutStr(AttrServiceName, Name(r.Service))
	}
	for _, a := range [...]struct{ name, text string }{
		{AttrRunID, r.RunID},
		{AttrHostName, r.Host},
		{AttrTimeSource, string(r.Time)},
		{AttrJoinBy, r.JoinBy},
		{AttrSource, r.Source},
		{AttrSourceUnit, r.Units},
		{AttrStepDurationKind, r.DurationKind},
		{AttrRPCSystem, r.System},
		{AttrNetworkTransport, r.Network},
		{AttrZMQTransport, r.Transport},
	} {
		if a.text != "" {
			m.PutStr(a.name, a.text)
		}
	}
	if r.Attempt != 0 {
		m.PutInt(AttrRunAttempt, r.Attempt)
	}
	if r.PID != 0 {
		m.PutInt(AttrProcessPID, r.PID)
	}
	if r.RecordOnly {
		m.PutBool(AttrRecordOnly, true)
	}
	if r.SharedMemory {
		m.PutBool(AttrZMQSharedMemory, true)
	}
	r.Stated.put(m)
	if r.RunID != "" {
		PutJob(m, r.RunID)
	}
	if r.Model != nil {
		r.Model.Put(m)
		if r.Model.WorldSize > 0 && r.Stated.Has&(1<<StatedWorldSize) == 0 {
			m.PutInt(AttrWorldSize, r.Model.WorldSize)
		}
	}
}

// Numbers that training logs repeat in every record.
const (
	StatedIterations = iota
	StatedStepsCovered
	StatedBatchSize
	StatedWorldSize
	StatedSkippedIterations
	StatedNaNIterations
	StatedLossScale
	NumStated
)

var statedNames = [NumStated]string{
	StatedIterations: AttrIterations, StatedStepsCovered: AttrStepsCovered, StatedBatchSize: AttrBatchSize, StatedWorldSize: AttrWorldSize,
	StatedSkippedIterations: AttrSkippedIterations, StatedNaNIterations: AttrNaNIterations, StatedLossScale: AttrLossScale,
}

// Stated are values of these numbers.
type Stated struct {
	Has    uint8              `json:"has,omitzero"` // bit by bit
	Values [NumStated]float64 `json:"values,omitzero"`
}

// Set sets number i, which must be finite.
func (s *Stated) Set(i int, x float64) { s.Has, s.Values[i] = s.Has|1<<i, x }

// Is reports whether a number is stated and has a value.
func (s *Stated) Is(i int, x float64) bool { return s.Has&(1<<i) != 0 && s.Values[i] == x }

// put writes the stated numbers, whole ones as integers, but for the loss scale, which is a float by nature.
func (s *Stated) put(m pcommon.Map) {
	for i, name := range statedNames {
		switch x := s.Values[i]; {
		case s.Has&(1<<i) == 0:
		case x == math.Trunc(x) && i != StatedLossScale:
			m.PutInt(name, int64(x))
		default:
			m.PutDouble(name, x)
		}
	}
}

// Steady chooses the value of a number for the resource: the first of its stream, until another has come steadyFor times in a row. A number that grows in steps
// is on the resource; a number that differs in each record does not make a resource per record.
type Steady struct {
	Value float64 `json:"value,omitzero"` // on the resource, if Known
	Last  float64 `json:"last,omitzero"`  // of the record before
	Run   int     `json:"run,omitzero"`   // number of consecutive records with Last
	Known bool    `json:"known,omitzero"`
}

const steadyFor = 16

// Next records the value of the next record, and returns the value for the resource.
func (s *Steady) Next(x float64) float64 {
	if s.Run++; x != s.Last {
		s.Run = 1
	}
	s.Last = x
	if !s.Known || s.Run == steadyFor {
		s.Value, s.Known = x, true
	}
	return s.Value
}
