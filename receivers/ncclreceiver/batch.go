package ncclreceiver

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// joined is the batch of one stream: collectives joined here (join: local) or records packed for another collector (join: remote), and points.
type joined struct {
	r           *ncclReceiver
	collectives []*collectives.Collective
	points      []collectives.Point
	packed      []packedSpan // of remote, instead of collectives
}

// newBatch returns an empty batch, with the memory of an earlier one.
func (r *ncclReceiver) newBatch() *joined {
	b := r.batches.Get()
	b.r = r
	return b
}

// Traces implements filereceiver.Batch: the spans of the collectives, or of the packed records.
func (b *joined) Traces(out *spans.Batch, from filereceiver.From) {
	collectives.AddSpans(out, b.r.cfg.ServiceName, b.collectives, func(place int) { from(tail.Place(place)) })
	b.addPacked(out, from)
}

// Metrics implements filereceiver.Batch: the values that the log states, and what the collectives tell (scores of ranks, clock offsets, traffic of links).
func (b *joined) Metrics() pmetric.Metrics {
	return collectives.Metrics(b.points, b.r.cfg.ServiceName, metadata.ScopeName, b.r.Set.BuildInfo.Version)
}

// Done implements filereceiver.Batch: Done counts the collectives, and returns them and the batch to their pools.
func (b *joined) Done() {
	r := b.r
	r.count(collectives.Count(b.collectives))
	if r.joiner != nil {
		r.joiner.Free(b.collectives)
	}
	clear(b.collectives)
	clear(b.points)
	*b = joined{collectives: b.collectives[:0], points: b.points[:0], packed: emptied(b.packed)}
	r.batches.Put(b, maxFreeBatches)
}

// count adds the outcome of the collectives of a batch to the receiver's own metrics: how they left the joiner (complete, with ranks missing, …), how ranks
// without numbered records were paired, and the records of collectives not drawn. The first such pairing is logged.
func (r *ncclReceiver) count(n collectives.Counts) {
	for i, n := range n.Left {
		if n > 0 {
			r.tel.TrainbridgeNcclCollectives.Add(context.Background(), n, outcomeOptions[i])
		}
	}
	for i, n := range n.Found {
		if n > 0 {
			r.unpaired.Do(func() {
				r.Set.Logger.Warn("The ranks' records have no number and do not pair up by their order (sampled rank by rank, lines lost, several process groups): " +
					"joined by operation, size and time; who was late and bandwidth are left out where ranks may be missing")
			})
			r.tel.TrainbridgeNcclResynchronized.Add(context.Background(), n, foundOptions[i])
		}
	}
	if n.Sampled > 0 {
		r.tel.TrainbridgeNcclSampledOut.Add(context.Background(), n.Sampled)
	}
}
