package kafkaexporter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/health"
)

// renewEvery bounds how often an exporter is replaced.
const renewEvery = time.Second

// one is contrib's exporter.
type one interface {
	component.Component
	Capabilities() consumer.Capabilities
}

// renewing is an exporter that is replaced when its client is refused for good.
type renewing[E one] struct {
	make   func() (E, error)
	log    *zap.Logger
	now    func() time.Time
	health health.Reporter

	mu    sync.RWMutex // held for reading while something is sent, for writing while the exporter is replaced
	host  component.Host
	of    E         // the present exporter
	made  int       // number of exporters made before
	since time.Time // of the present exporter, or of the last attempt to replace the exporter
}

// newRenewing makes the first exporter.
func newRenewing[E one](create func() (E, error), set exporter.Settings) (*renewing[E], error) {
	of, err := create()
	return &renewing[E]{make: create, log: set.Logger, now: time.Now, of: of}, err
}

// silent is a host that takes no reports: contrib's exporter reports success once connected, even while writing is forbidden.
type silent struct{ component.Host }

// Capabilities are those of contrib's exporter.
func (r *renewing[E]) Capabilities() consumer.Capabilities { return r.of.Capabilities() }

// Start starts contrib's exporter, which connects to the brokers when something is sent.
func (r *renewing[E]) Start(ctx context.Context, host component.Host) error {
	r.host, r.since = silent{host}, r.now()
	r.health.Start(host)
	return r.of.Start(ctx, r.host)
}

// Shutdown closes the connections.
func (r *renewing[E]) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of.Shutdown(ctx)
}

// send sends by the present exporter. An exporter that was refused for lack of authorization, or knows the topic by the id of a deleted topic, is replaced, for
// the next call: the error still goes to the caller, who sends again. A context that was cancelled says nothing about the brokers, and is not reported as their
// health.
func (r *renewing[E]) send(ctx context.Context, by func(E) error) error {
	r.mu.RLock()
	made := r.made // which exporter sends
	err := by(r.of)
	r.mu.RUnlock()
	if errors.Is(err, kerr.ClusterAuthorizationFailed) || errors.Is(err, kerr.UnknownTopicID) { // a client knows a topic by its first id for ever
		r.renew(ctx, made)
	}
	err = judged(err)
	if !errors.Is(ctx.Err(), context.Canceled) {
		r.health.Through(err == nil || consumererror.IsPermanent(err))
	}
	return err
}

// faulty are the errors about records themselves.
var faulty = []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.UnsupportedForMessageFormat}

// judged returns err; the refusal of a broker (kerr.Error) is permanent only if the data itself is faulty. Contrib's exporter marks every error permanent that
// franz-go does not retry, such as a missing right: receivers would skip the data sent meanwhile.
func judged(err error) error {
	var refusal *kerr.Error
	if !consumererror.IsPermanent(err) || !errors.As(err, &refusal) {
		return err
	}
	if slices.ContainsFunc(faulty, func(fault error) bool { return errors.Is(err, fault) }) {
		return err
	}
	return errors.New(err.Error()) // the text alone: a wrapped permanent error would still be permanent
}

// renew replaces the exporter by a new exporter, unless another call has since the caller read made (renewing.made), or the last attempt was less than
// renewEvery ago. If making a new exporter fails, the old exporter stays.
func (r *renewing[E]) renew(ctx context.Context, made int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made != made || r.now().Sub(r.since) < renewEvery {
		return
	}
	r.since = r.now()
	ctx = context.WithoutCancel(ctx) // the exporter outlives the call
	of, err := r.make()
	if err == nil {
		err = of.Start(ctx, r.host)
	}
	if err != nil {
		r.log.Warn("The Kafka exporter may not send, and cannot be made anew", zap.Error(err))
		return
	}
	old := r.of
	r.of, r.made = of, r.made+1
	if err := old.Shutdown(ctx); err != nil {
		r.log.Warn("The Kafka exporter that may not send cannot be stopped", zap.Error(err))
	}
}
