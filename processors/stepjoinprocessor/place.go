package stepjoinprocessor

import (
	"context"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/client"

	"github.com/trainbridge/trainbridge/internal/ending"
)

// handover is the most time that the message at hand has when its partition is given up: half of the time in which the members of a group must rejoin, 60 s
// (kgo.RebalanceTimeout), and as long as a request of otlp_acked takes at most.
const handover = 30 * time.Second

// place is where a batch comes from.
type place struct {
	partition string // of Kafka, with the topic; empty: the batch is not from Kafka
	offset    int64
	gap       bool // another process has read the offsets before
	midway    bool // this process has begun to read the partition in the middle, and may not know all of its runs yet
}

// fromKafka reports whether a batch is a message of the kafka receiver.
func fromKafka(ctx context.Context) bool {
	return len(client.FromContext(ctx).Metadata.Get("kafka.offset")) > 0
}

// withGrace returns a context that ends a grace period after ctx, or when the process must end. When Kafka reassigns a partition, the current message can so be
// handled and its offset committed: an aborted message would be counted by this process and by the next gateway. Call done once the message is handled.
func withGrace(ctx context.Context, grace time.Duration) (longer context.Context, done func()) {
	longer, cancel := ending.Context(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return longer, func() {
		release()
		cancel()
	}
}

// places are the Kafka partitions being read.
type places map[string]*reading

// reading is how far a partition was read without a gap.
type reading struct {
	next   int64           // offset of the next message
	since  time.Time       // the first message read without a gap
	midway bool            // another process has read the beginning
	read   bool            // by this process
	lost   <-chan struct{} // closed once the partition is given to another process; nil: not known
	lostAt time.Time       // when that was seen; zero: not lost
}

// isLost reports whether another process reads a partition: since a rebalance, until the next message comes here; also since the start of this process, if one
// before has read the partition. As this process ends, the receiver gives up all partitions: then only those count that were lost a while before. The first
// call after the loss notes its time.
func (p places) isLost(partition string, now time.Time, ending bool) bool {
	r := p[partition]
	if r == nil {
		return false
	}
	select {
	case <-r.lost:
	default:
		if r.read {
			return false
		}
	}
	if r.lostAt.IsZero() {
		r.lostAt = now
	}
	return !ending || now.Sub(r.lostAt) > handover
}

// locate returns where a batch comes from, as stated by the kafka receiver in the metadata of ctx, and records its offset as read; the zero place: not from
// Kafka. silent is the longest silence of a run: a process that has read a partition for longer knows every older run of the partition, and is no longer
// midway.
func (p places) locate(ctx context.Context, now time.Time, silent time.Duration) place {
	from := client.FromContext(ctx).Metadata
	topic, partition, at := from.Get("kafka.topic"), from.Get("kafka.partition"), from.Get("kafka.offset")
	if len(topic) == 0 || len(partition) == 0 || len(at) == 0 {
		return place{}
	}
	offset, err := strconv.ParseInt(at[0], 10, 64)
	if err != nil {
		return place{}
	}
	here := place{partition: topic[0] + "/" + partition[0], offset: offset}
	r := p[here.partition]
	if r == nil || offset > r.next { // new to this process, or another process has read some messages meanwhile
		here.gap = r != nil
		r = &reading{since: now, midway: offset > 0}
		p[here.partition] = r
	}
	r.next = max(r.next, offset+1)
	r.read, r.lost, r.lostAt = true, ctx.Done(), time.Time{} // the kafka receiver's context of the partition
	here.midway = r.midway && now.Sub(r.since) < silent
	return here
}

// advance records that the last process has read a partition up to the offset next, when the journal is restored.
func (p places) advance(partition string, next int64, now time.Time) {
	r := p[partition]
	if r == nil {
		r = &reading{since: now}
		p[partition] = r
	}
	r.next = max(r.next, next)
}
