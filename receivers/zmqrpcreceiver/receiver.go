package zmqrpcreceiver

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/metadata"
)

// zmqReceiver is what the handlers of one configured receiver share.
type zmqReceiver struct {
	*filereceiver.Receiver
	cfg     *Config
	tel     *metadata.TelemetryBuilder
	methods map[string]role

	mu     sync.Mutex
	free   []*batch
	groups []*group
}

// role is what a method says about the calls around it.
type role struct{ session, begin, end bool }

func newParts(base *filereceiver.Receiver, config component.Config) (filereceiver.Parts, error) {
	r, err := newReceiver(base, config.(*Config))
	if err != nil {
		return filereceiver.Parts{}, err
	}
	newHandler := func(s *tail.Stream) tail.Handler { return newHandler(r, s) }
	return filereceiver.Parts{Tail: r.cfg.Config, NewHandler: newHandler, Shutdown: r.tel.Shutdown}, nil
}

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

// inconsistency is what of a row contradicts the rest of it.
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

// maxFree bounds what is kept for reuse. A sync.Pool would lose it at every collection.
const maxFree = 64

func (r *zmqReceiver) newBatch() *batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		b := r.free[n-1]
		r.free = r.free[:n-1]
		return b
	}
	return &batch{r: r}
}

func (r *zmqReceiver) newGroup() *group {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.groups); n > 0 {
		g := r.groups[n-1]
		r.groups = r.groups[:n-1]
		return g
	}
	return new(group)
}

// reuse takes back a batch and its groups.
func (r *zmqReceiver) reuse(b *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range b.groups {
		if len(r.groups) < maxFree && cap(g.calls) <= usualCalls {
			g.reset()
			r.groups = append(r.groups, g)
		}
	}
	b.reset()
	if len(r.free) < maxFree {
		r.free = append(r.free, b)
	}
}

// usualCalls is about what a pass has: a group with many more is not kept.
const usualCalls = 512
