package zmqrpcreceiver

import (
	"math/bits"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/rpclog"
)

// zmqReceiver is the part shared by the handlers of one configured receiver.
type zmqReceiver struct {
	*filereceiver.Receiver
	cfg     *Config
	tel     *metadata.TelemetryBuilder
	methods map[string]role

	batches filereceiver.Pool[passBatch]
	groups  filereceiver.Pool[group]
}

// role is the meaning of a method for its session and pass.
type role struct{ session, begin, end bool }

// newParts makes the receiver on its base, and the parts that the base needs of it.
func newParts(base *filereceiver.Receiver, config component.Config) (filereceiver.Parts, error) {
	r, err := newReceiver(base, config.(*Config))
	if err != nil {
		return filereceiver.Parts{}, err
	}
	newHandler := func(s *tail.Stream) tail.Handler { return newHandler(r, s) }
	return filereceiver.Parts{
		Tail: r.cfg.Config, Detect: detect, Redact: r.cfg.Redact, NewHandler: newHandler, Scope: metadata.ScopeName, Series: r.cfg.CardinalityLimit,
		SpanLinks: r.cfg.SpanLinks, Shutdown: r.tel.Shutdown, Run: r.cfg.RunConfig,
	}, nil
}

// Formats are the formats of zmq_rpc: one, whose header names the columns of a table.
func Formats() []string { return []string{"zmq_rpc"} }

// detect makes the function that recognizes the tables of ZeroMQ clients: their header, or a call below. Many tables have an id, a method and a time; the
// stages are specific: a header needs deserialization, a call two of the four stages.
func detect(string) tail.Detect {
	const stages = 1<<rpclog.Serialize | 1<<rpclog.Send | 1<<rpclog.Receive | 1<<rpclog.Deserialize
	var p rpclog.Parser
	return func(text []byte) tail.Reads {
		kind := p.Line(text)
		ownHeader := kind == rpclog.Header && strings.Contains(p.Header(), "Deser")
		ownCall := kind == rpclog.Call && bits.OnesCount16(uint16(p.Row.Has&stages)) >= 2
		if ownHeader || ownCall {
			return tail.ReadsOwn
		}
		return tail.ReadsNot
	}
}

// newReceiver makes the part shared by the handlers. A method may have several roles.
func newReceiver(base *filereceiver.Receiver, cfg *Config) (*zmqReceiver, error) {
	tel, err := metadata.NewTelemetryBuilder(base.Set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	r := &zmqReceiver{Receiver: base, cfg: cfg, tel: tel, methods: make(map[string]role)}
	for _, list := range []struct {
		methods []string
		is      role
	}{{cfg.SessionStart, role{session: true}}, {cfg.PassStart, role{begin: true}}, {cfg.PassEnd, role{end: true}}} {
		for _, m := range list.methods {
			old := r.methods[m]
			r.methods[m] = role{session: old.session || list.is.session, begin: old.begin || list.is.begin, end: old.end || list.is.end}
		}
	}
	return r, nil
}

// inconsistency is a kind of contradiction between the numbers of a row.
type inconsistency uint8

const (
	commSum inconsistency = iota
	stagesExceedTotal
	serverExceedsReceive
	throughputOff
	inconsistencies
)

var inconsistencyOptions = func() (options [inconsistencies]metric.MeasurementOption) {
	for i, name := range [inconsistencies]string{"comm_sum", "stages_exceed_total", "server_exceeds_receive", "throughput"} {
		options[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", name)))
	}
	return options
}()

// maxFree bounds the batches and groups kept for reuse, usualCalls the calls of a kept group: about as many as a pass has.
const (
	maxFree    = 64
	usualCalls = 512
)

func (r *zmqReceiver) newBatch() *passBatch {
	b := r.batches.Get()
	b.r = r
	return b
}
