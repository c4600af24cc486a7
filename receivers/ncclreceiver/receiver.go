package ncclreceiver

import (
	"context"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
)

// ncclReceiver is what the handlers of one configured receiver share.
type ncclReceiver struct {
	*filereceiver.Receiver
	cfg        *Config
	zone       *time.Location
	tel        *metadata.TelemetryBuilder
	operations map[string]bool // canonical names; nil: all
	ranks      map[int32]bool  // nil: all
	asm        *assembler
	unpaired   sync.Once // says that records do not pair up

	batches     filereceiver.Pool[batch]
	collectives filereceiver.Pool[collective]
}

const (
	maxFreeBatches = 64
	maxFree        = 2048 // collectives
	usualParts     = 64
)

func newParts(base *filereceiver.Receiver, config component.Config) (filereceiver.Parts, error) {
	r, err := newReceiver(base, config.(*Config))
	if err != nil {
		return filereceiver.Parts{}, err
	}
	return filereceiver.Parts{
		Tail: r.cfg.withDocuments(), Detect: r.detect, Redact: r.cfg.Redact, NewHandler: func(s *tail.Stream) tail.Handler { return newHandler(r, s) }, HoldTimeout: r.cfg.HangTimeout, Joint: true, Scope: metadata.ScopeName, Series: r.cfg.CardinalityLimit, SpanLinks: r.cfg.SpanLinks, Shutdown: r.tel.Shutdown,
	}, nil
}

func newReceiver(base *filereceiver.Receiver, cfg *Config) (*ncclReceiver, error) {
	tel, err := metadata.NewTelemetryBuilder(base.Set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	zone, err := cfg.Location()
	if err != nil {
		return nil, err
	}
	r := &ncclReceiver{Receiver: base, cfg: cfg, zone: zone, tel: tel}
	if len(cfg.Operations) > 0 {
		r.operations = make(map[string]bool)
		for _, name := range cfg.Operations {
			r.operations[op.Canonical(name)] = true
		}
	}
	if len(cfg.Ranks) > 0 {
		r.ranks = make(map[int32]bool)
		for _, rank := range cfg.Ranks {
			r.ranks[rank] = true
		}
	}
	r.asm = newAssembler(r)
	err = tel.RegisterTrainbridgeNcclStateCallback(func(_ context.Context, o metric.Int64Observer) error {
		r.asm.mu.Lock()
		defer r.asm.mu.Unlock()
		o.Observe(r.asm.bytes)
		return nil
	})
	return r, err
}

// ranksOf is how many ranks of a communicator of so many are kept.
func (r *ncclReceiver) ranksOf(size int32) int {
	if r.ranks == nil {
		return int(size)
	}
	n := 0
	for rank := range r.ranks {
		if rank < size {
			n++
		}
	}
	return n
}

// The reasons of records that a setting leaves out.
const (
	reasonOperation = "operation"
	reasonRank      = "rank"
	reasonSize      = "size"
)

// unwanted says which setting leaves a record out; empty: none.
func (r *ncclReceiver) unwanted(o *op.Op) string {
	if r.operations != nil {
		name := o.Kind.String()
		if o.Kind == op.Other {
			name = string(o.Name)
		}
		if !r.operations[op.Canonical(name)] {
			return reasonOperation
		}
	}
	switch {
	case r.ranks != nil && !r.ranks[o.Rank]:
		return reasonRank
	case o.Size >= 0 && (o.Size < r.cfg.MinSize || r.cfg.MaxSize > 0 && o.Size > r.cfg.MaxSize):
		return reasonSize
	}
	return ""
}

var outcomeOptions = func() (options [outcomes]metric.AddOption) {
	names := reasons
	names[complete], names[tardy] = "complete", "late"
	for i, name := range names {
		options[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", name)))
	}
	return options
}()

// foundOptions are of a collective that was found by time, in the order of what collective.found returns.
var foundOptions = [...]metric.AddOption{
	metric.WithAttributeSet(attribute.NewSet(attribute.String("ranks", "all"))),
	metric.WithAttributeSet(attribute.NewSet(attribute.String("ranks", "some"))),
	metric.WithAttributeSet(attribute.NewSet(attribute.String("ranks", "one"))),
}

// found says which of its ranks were found by time.
func (c *collective) found() int {
	switch {
	case c.whole:
		return 0
	case len(c.parts) > 1:
		return 1
	}
	return 2
}

func linkName(src, dst int32) string {
	return strconv.Itoa(int(src)) + "→" + strconv.Itoa(int(dst))
}
