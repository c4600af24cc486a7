package ncclreceiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/collectives/partial"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/offsets"
	"github.com/trainbridge/trainbridge/spans"
)

// partition joins the records of one partition of a topic. Its goroutine reads messages, passes their records to the joiner, and sends the collectives that
// leave; while they are not accepted, the goroutine reads nothing, and a full queue pauses the partition.
type partition struct {
	t         *kafkaTopic
	id        int32
	floor     int64 // messages before were sent in an earlier life
	resume    int64 // messages before were read in an earlier life; 0: none were, or all have come again
	ctx       context.Context
	cancel    context.CancelFunc
	quit      chan struct{} // closed: the partition is given up
	done      chan struct{} // closed when the goroutine has ended
	signalled chan struct{} // something has come

	// Of the goroutine.
	tracker   *offsets.Tracker
	inputs    map[inputKey]*logInput
	comms     map[commKey]bool          // communicators without a known size
	services  map[string]string         // service.name by run
	others    *collectives.Input[int64] // stands for the logs without a record so far: collectives wait for it (awaitOthers)
	settled   time.Time                 // when all live logs have been heard of
	marks     map[string]*watermark     // by run
	unclaimed bool                      // no gateway has read the partition before, and this one reads all of it
	since     time.Time                 // start of this reading
	batches   map[string]*batch         // by run: an exporter that keys messages by their run gets each run separately
	records   int                       // in batches
	left      int                       // all collectives that have left
	known     []*collectives.Collective // collectives that left, and were sent in an earlier life: to be freed
	read      int64                     // messages read
	passed    int64                     // those among them counted as rejected or ignored
	accepted  int64                     // those among the others that are accepted, as counted in the metric
	published time.Time                 // last time the position was published
	parser    ptrace.ProtoUnmarshaler

	joiner *collectives.Joiner[int64] // a record is identified by the offset of its message

	committed offsets.Position // guarded by kafkaTopic.committing

	mu      sync.Mutex       // guards all below
	queue   [][]*kgo.Record  // fetched, not read yet
	queued  int              // bytes in queue
	paused  bool             // the client does not fetch the partition
	at      offsets.Position // the accepted position, as published
	begun   bool             // at is known
	head    int64            // the offset after the last message read, as published
	holes   int64            // messages that are not accepted yet, as published
	end     int64            // where the partition ended …
	endedAt time.Time        // … at this time
	grown   time.Time        // when the topic's partitions were last seen to have become more (kafkaTopic.lastGrown)
}

// inputKey identifies a log, in the collector that reads it.
type inputKey struct{ run, host, path, family string }

// logInput is the input of a log.
type logInput struct {
	*collectives.Input[int64]
	lastRead time.Time
	begun    int64 // the latest beginning of an operation so far, Unix ns
	until    int64 // all records of operations that began before have come, as their agent says: see Stretch.ReadTo, Unix ns
	deaf     bool  // the last records could not be read: heartbeats do not say that the log's ranks do nothing
}

// commKey identifies a communicator.
type commKey struct{ run, comm string }

// Bounds of the memory; forgotten entries may be made again.
const (
	maxInputs = 1 << 16
	maxComms  = 1 << 12
)

// newPartition returns the reader of a partition: committed is the position that an earlier reader reached (zero: none), from the offset of the first message
// to be read (-1: only messages that come from now on; -2: all messages).
func newPartition(t *kafkaTopic, id int32, committed offsets.Position, from int64) *partition {
	settings := t.r.settings()
	settings.Remote = true // and no run has a span: gateways that share a run would each send a different one
	if settings.Collector != "" {
		settings.Collector = fmt.Sprintf("%s/%d", settings.Collector, id) // results of several joiners of one run are separate series
	}
	// From its end on (from -1), a partition has messages before that are never read: its runs are not whole, hence not unclaimed.
	p := &partition{
		t: t, id: id, floor: committed.Begin, resume: committed.Head, quit: make(chan struct{}), done: make(chan struct{}), signalled: make(chan struct{}, 1),
		tracker: offsets.New(committed, max(from, 0)), inputs: make(map[inputKey]*logInput), comms: make(map[commKey]bool), services: make(map[string]string),
		batches: make(map[string]*batch), joiner: collectives.New[int64](settings), committed: committed,
		marks: make(map[string]*watermark), unclaimed: committed == offsets.Position{} && from != -1, since: t.now(),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.awaitOthers()
	return p
}

// awaitOthers makes collectives of an unknown number of ranks wait, for kafkaTopic.settle, until all collectors had time to send: until then an input without
// records represents the logs that are still unknown.
func (p *partition) awaitOthers() {
	if p.others != nil {
		p.others.EndWait()
	}
	p.others, p.settled = p.joiner.Input(collectives.From{}, p.take), p.t.now().Add(p.t.settle)
}

// give puts fetched records into the queue. While the queue is full, the client does not fetch the partition.
func (p *partition) give(records []*kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, records)
	p.queued += bytesOf(records)
	if !p.paused && p.queued > int(p.t.cfg.MaxPartitionFetchSize) {
		p.paused = true
		p.t.client.PauseFetchPartitions(map[string][]int32{p.t.cfg.Topic: {p.id}})
	}
	p.signal()
}

// signal wakes the goroutine of the partition. A signal that is not taken yet is enough.
func (p *partition) signal() {
	select {
	case p.signalled <- struct{}{}:
	default:
	}
}

// next removes the oldest records from the queue and returns them; nil: the queue is empty. Below half of the bound the client fetches again.
func (p *partition) next() (records []*kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil
	}
	records, p.queue[0] = p.queue[0], nil
	p.queue = p.queue[1:]
	p.queued -= bytesOf(records)
	if p.paused && p.queued <= int(p.t.cfg.MaxPartitionFetchSize)/2 {
		p.paused = false
		p.t.client.ResumeFetchPartitions(map[string][]int32{p.t.cfg.Topic: {p.id}})
	}
	return records
}

// bytesOf returns the size of the values of records.
func bytesOf(records []*kgo.Record) (n int) {
	for _, r := range records {
		n += len(r.Value)
	}
	return n
}

// setEnd records where the partition ended at a time, and when the topic grew (kafkaTopic.askEnds), and wakes the goroutine: at that end collectives may
// expire.
func (p *partition) setEnd(end int64, at, grown time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end, p.endedAt, p.grown = end, at, grown
	p.signal()
}

// position returns the committable position; false: nothing was read yet.
func (p *partition) position() (offsets.Position, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at, p.begun
}

// lag returns the number of unread messages; 0 before the first is read.
func (p *partition) lag() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun {
		return 0
	}
	return max(p.end-p.head, 0)
}

// pending returns the number of messages read but not completely accepted.
func (p *partition) pending() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holes
}

// run is the goroutine of the partition: it reads the queue, and sends finished collectives, until the partition is given up.
func (p *partition) run() {
	defer close(p.done)
	defer p.cancel()
	defer p.release()
	for {
		select {
		case <-p.quit:
			return
		default:
		}
		records := p.next()
		for _, r := range records {
			p.message(r)
			if p.records >= maxBatch && !p.send() {
				return
			}
		}
		idle := records == nil
		if idle && (!p.expire() || !p.send()) { // small batches are joined while there is more to read
			return
		}
		p.publish(idle)
		if !idle {
			continue
		}
		select {
		case <-p.quit:
			return
		case <-p.signalled:
		}
	}
}

// release is called at the end of run: it publishes the last position, and counts the messages read but not accepted, left to the next reader of the partition.
func (p *partition) release() {
	p.publish(true)
	add(p.ctx, p.t.r.tel.TrainbridgeNcclKafkaMessages, int64(p.tracker.Behind()), messageReleased)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holes = 0
}

// publishEvery is the interval of publishing the position while there is much to do.
const publishEvery = 250 * time.Millisecond

// publish makes the tracker's position visible to kafkaTopic, which commits the position and counts the lag: with now at once, else every publishEvery. It also
// counts the messages that were accepted since.
func (p *partition) publish(now bool) {
	at := p.t.now()
	if !now && at.Sub(p.published) < publishEvery {
		return
	}
	p.published = at
	// A message that is not counted yet is accepted once it is no hole any more. n may be below 0: a message counted as rejected may still be a hole, for its
	// readable part.
	if n := p.read - p.passed - int64(p.tracker.Behind()) - p.accepted; n > 0 {
		p.accepted += n
		add(p.ctx, p.t.r.tel.TrainbridgeNcclKafkaMessages, n, messageAccepted)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.head, p.holes = p.tracker.Head(), int64(p.tracker.Behind())
	p.begun = p.begun || p.read > 0
	if p.begun {
		p.at = p.tracker.Position()
	}
}

// message passes the records of a message to the joiner, and counts the message if it is unreadable or without records. At the end of what an earlier reader
// had read, the joiner learns that further records of its collectives are late.
func (p *partition) message(r *kgo.Record) {
	if r.Offset < p.tracker.Head() {
		return // a repetition
	}
	if p.resume > 0 && r.Offset >= p.resume {
		p.resume = 0
		p.others.Resume()
	}
	p.read++
	p.t.r.tel.TrainbridgeNcclKafkaRead.Add(p.ctx, 1)
	p.tracker.Read(r.Offset)
	partials, err := p.partials(r)
	p.tracker.Done()
	switch {
	case err != nil:
		p.t.warn("rejected", fmt.Sprintf("a message of topic %s is passed over (partition %d, offset %d): %v", p.t.cfg.Topic, p.id, r.Offset, err))
		add(p.ctx, p.t.r.tel.TrainbridgeNcclKafkaMessages, 1, messageRejected)
	case partials == 0:
		add(p.ctx, p.t.r.tel.TrainbridgeNcclKafkaMessages, 1, messageIgnored)
	}
	if err != nil || partials == 0 {
		p.passed++
	}
	p.freeKnown()
}

// partials passes the spans of packed records (partial.Stretch) in a message to join, and returns their number; other spans are skipped. A broken one does not
// affect the others: err has all errors.
func (p *partition) partials(r *kgo.Record) (n int, err error) {
	td, err := p.parser.UnmarshalTraces(r.Value)
	if err != nil {
		return 0, fmt.Errorf("it is no otlp_proto of traces: %w", err)
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				s, ok, failed := partial.FromSpan(rs.Resource().Attributes(), span)
				if !ok {
					continue
				}
				n++
				if failed == nil {
					failed = p.join(&s, r.Offset)
				}
				if failed != nil {
					p.noteUnreadable(&s)
				}
				err = errors.Join(err, failed)
			}
		}
	}
	return n, err
}

// join passes the packed records of a span, all of one communicator and log, to the joiner, with the offset of their message. A heartbeat (no records) only
// shows that the log is still read.
func (p *partition) join(s *partial.Stretch, offset int64) error {
	if len(p.services) >= maxComms {
		clear(p.services)
	}
	p.services[s.From.Run] = s.Service
	in, now := p.input(s), p.t.now()
	in.lastRead, in.Known = now, offset < p.floor // Known: sent in an earlier life, and read again to complete others
	p.noteWatermark(s)
	if s.Count == 0 {
		in.EndWait()
		if !in.deaf {
			in.Alive(now.UnixNano())
		}
		// All of the log has been read and sent. But logs are written in batches: younger records may still come.
		in.until = max(in.until, in.begun, s.ReadTo-heartbeat.Nanoseconds())
		return nil
	}
	in.until = max(in.until, s.ReadTo)
	came := [1]int64{offset}
	var counts [recordKinds]int64
	err := partial.Read(s.Records, func(o *op.Op) {
		in.begun = max(in.begun, began(o))
		if p.t.r.unwanted(o) != "" {
			counts[recordFiltered]++
			return
		}
		if o.CommSize == 0 {
			p.noteUnsized(s)
		}
		p.tracker.Hold()
		if in.Add(o, came[:], now.UnixNano()) { // the tracker holds the message until the collective is accepted
			counts[recordJoined]++
		} else {
			p.tracker.Done()
			counts[recordRepeated]++
		}
	})
	for kind, n := range counts {
		add(p.ctx, p.t.r.tel.TrainbridgeNcclKafkaRecords, n, recordOptions[kind])
	}
	in.deaf = in.deaf && err != nil
	return err
}

// noteUnreadable records that packed records could not be read. Their ranks are not accused of a hang, and the run's watermark states until when collectives
// may lack ranks.
func (p *partition) noteUnreadable(s *partial.Stretch) {
	in := p.input(s)
	in.EndWait()
	in.deaf = true
	if s.Start > 0 { // the log is read on: steps need not wait for it
		in.lastRead, in.until = p.t.now(), max(in.until, s.ReadTo)
	}
	p.noteWatermark(s)
	m := p.marks[s.From.Run]
	m.unreadable, m.fresh = max(m.unreadable, s.End), true
}

// noteUnsized records a communicator whose logs do not state the number of ranks. At the first record only one collector is known: the others are waited for
// (awaitOthers).
func (p *partition) noteUnsized(s *partial.Stretch) {
	key := commKey{s.From.Run, s.Comm}
	if p.comms[key] {
		return
	}
	if len(p.comms) >= maxComms {
		clear(p.comms)
	}
	p.comms[key] = true
	p.awaitOthers()
}

// input returns the joiner's input of the log that packed records came from, made at their first.
func (p *partition) input(s *partial.Stretch) *logInput {
	key := inputKey{s.From.Run, s.Host, s.From.Path, s.From.Family}
	in := p.inputs[key]
	if in == nil {
		if len(p.inputs) >= maxInputs {
			p.forget()
		}
		in = &logInput{Input: p.joiner.Input(s.From, p.take)}
		p.inputs[key] = in
	}
	return in
}

// forget makes room for a new input: it forgets the inputs that were silent for hang_timeout, or, if there are none, any input.
func (p *partition) forget() {
	dead := p.t.now().Add(-p.t.r.cfg.HangTimeout)
	for key, in := range p.inputs {
		if in.lastRead.Before(dead) {
			in.EndWait() // no collective waits for a forgotten input
			delete(p.inputs, key)
		}
	}
	for key, in := range p.inputs {
		if len(p.inputs) < maxInputs {
			return
		}
		in.EndWait()
		delete(p.inputs, key)
	}
}

// expire gives up collectives that have waited for hang_timeout, once the partition was read to a known end: with a backlog the missing ranks may still come.
// The collectives given up are sent batch by batch. It returns false if the partition was given up meanwhile.
func (p *partition) expire() bool {
	p.mu.Lock()
	end, at := p.end, p.endedAt
	p.mu.Unlock()
	if at.IsZero() || p.tracker.Head() < end {
		return true
	}
	if at.After(p.settled) { // all live logs have been heard of: no collective waits any more for a log without a record
		p.others.EndWait()
	}
	before := at.Add(-p.t.r.cfg.HangTimeout).UnixNano()
	// Expire ends about a batch of collectives at a time: until none leaves.
	for left := -1; left < p.left; {
		if p.records >= maxBatch && !p.send() {
			return false
		}
		left = p.left
		p.others.Expire(before)
	}
	p.freeKnown()
	return true
}

// freeKnown returns the collectives sent in an earlier life to their pool.
func (p *partition) freeKnown() {
	if len(p.known) > 0 {
		p.joiner.Free(p.known)
		clear(p.known)
		p.known = p.known[:0]
	}
}

// take puts a collective that leaves the joiner into the batch of its run, with the offsets of its records. The joiner calls take. A collective that was sent
// in an earlier life is not sent again.
func (p *partition) take(c *collectives.Collective, came []int64) {
	p.left++
	run := c.Run()
	if m := p.marks[run]; m != nil && c.End() > m.sent { // the watermark moves on
		m.sent, m.fresh = c.End(), true
	}
	if p.tracker.Known(came) {
		p.tracker.Accepted(came)
		p.known = append(p.known, c)
		return
	}
	b := p.batch(run)
	c.Place = len(b.collectives)
	b.collectives = append(b.collectives, c)
	b.came = append(b.came, came...)
	b.ends = append(b.ends, len(b.came))
	p.records += len(came)
}

// batch returns the batch of a run to be sent next, made if there is none.
func (p *partition) batch(run string) *batch {
	b := p.batches[run]
	if b == nil {
		b = &batch{p: p, service: cmp.Or(p.services[run], p.t.r.cfg.ServiceName)}
		p.batches[run] = b
	}
	return b
}

// maxBatch bounds a batch, in records: about a message of the usual size.
const maxBatch = spans.MaxMessageSpans / 2

// maxRetry bounds the time until a batch is tried again.
const maxRetry = 5 * time.Second

// send sends the batches of all runs, and tries until they are accepted or refused for good: until then nothing more is read. Then their messages are accepted,
// too. false: the partition was given up before.
func (p *partition) send() bool {
	p.watermarks()
	for run, b := range p.batches {
		b.points = p.joiner.Learned(b.points, b.collectives)
		if !p.deliver(p.t.r.Deliver(b)) {
			return false
		}
		from := 0
		for _, to := range b.ends {
			p.tracker.Accepted(b.came[from:to])
			from = to
		}
		delete(p.batches, run)
	}
	p.records = 0
	return true
}

// deliver sends a batch, and tries again with growing pauses, until it is accepted or refused for good. Refused collectives are counted, each once, and
// skipped. It returns false if the partition was given up before.
func (p *partition) deliver(d tail.Delivery) bool {
	for wait := p.t.retry; ; wait = min(2*wait, maxRetry) {
		err := d.Send(p.ctx)
		if err == nil {
			return true
		}
		if refused, ok := errors.AsType[*tail.Refused](err); ok {
			n := 0
			for _, places := range refused.Places { // a collective has several spans at one place
				distinct := make(map[tail.Place]bool)
				for _, place := range places {
					distinct[place] = true
				}
				n += len(distinct)
			}
			p.t.r.tel.TrainbridgeNcclKafkaRefused.Add(p.ctx, int64(n))
			p.t.warn("refused", fmt.Sprintf("collectives were refused for good, and are passed over: %v", err))
			return true
		}
		if p.ctx.Err() != nil {
			return false
		}
		p.t.warn("send", fmt.Sprintf("what leaves is not accepted, so that partition %d of topic %s is not read on until it is: %v", p.id, p.t.cfg.Topic, err))
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-p.quit:
			timer.Stop()
			return false
		}
	}
}

// batch is the collectives of one run that are sent together.
type batch struct {
	p           *partition
	service     string
	collectives []*collectives.Collective
	points      []collectives.Point
	came        []int64 // offsets, collective by collective
	ends        []int   // where the offsets of each collective end in came
	mark        watermark
	marked      bool // with a watermark: mark
}

// Traces implements filereceiver.Batch: the spans of the collectives, and a watermark, if due. A watermark without a time (until 0), as the run's first one,
// goes before the collectives; one with a time goes after them, as it states that they were sent.
func (b *batch) Traces(out *spans.Batch, from filereceiver.From) {
	if b.marked && b.mark.until == 0 {
		b.mark.add(out)
	}
	collectives.AddSpans(out, b.service, b.collectives, func(place int) { from(tail.Place(place)) })
	if b.marked && b.mark.until > 0 {
		b.mark.add(out)
	}
}

// Metrics implements filereceiver.Batch: what the collectives tell (scores of ranks, clock offsets, traffic of links).
func (b *batch) Metrics() pmetric.Metrics {
	return collectives.Metrics(b.points, b.service, metadata.ScopeName, b.p.t.r.Set.BuildInfo.Version)
}

// Done implements filereceiver.Batch: Done counts the collectives, and returns them to their pool.
func (b *batch) Done() {
	b.p.t.r.count(collectives.Count(b.collectives))
	b.p.joiner.Free(b.collectives)
}
