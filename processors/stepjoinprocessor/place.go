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

// finishing outlives a context by a grace period, or until the process itself must end. A partition that Kafka reassigns is released once the current message
// is handled and its offset is committed: an aborted message would be counted here and by the next gateway.
func finishing(ctx context.Context, grace time.Duration) (longer context.Context, done func()) {
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
	next   int64     // offset of the next message
	since  time.Time // the first message read without a gap
	midway bool      // another process has read the beginning
}

// of returns the place of a batch, as stated by the kafka receiver, and notes the offset as read. The zero place: not from Kafka. silent is the longest silence
// of a run: a process that has read a partition for longer knows every older run of the partition, and is not midway any more.
func (p places) of(ctx context.Context, now time.Time, silent time.Duration) place {
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
	here.midway = r.midway && now.Sub(r.since) < silent
	return here
}

// read records the offset up to which a partition was read, by the stored facts of the last process.
func (p places) read(partition string, next int64, now time.Time) {
	r := p[partition]
	if r == nil {
		r = &reading{since: now}
		p[partition] = r
	}
	r.next = max(r.next, next)
}
