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
// leave; while they are not accepted, the goroutine reads nothing and the partition is paused.
type partition struct {
	t         *kafkaTopic
	id        int32
	floor     int64 // messages before were sent in an earlier life
	resume    int64 // messages before were read in an earlier life; 0: all are read again
	ctx       context.Context
	cancel    context.CancelFunc
	quit      chan struct{} // closed: the partition is given up
	done      chan struct{} // closed when the goroutine has ended
	signalled chan struct{} // something has come

	// Of the goroutine.
	tracker   *offsets.Tracker
	inputs    map[inputKey]*logInput
	comms     map[commKey]bool // communicators without a known size
	services  map[string]string
	others    *collectives.Input[int64] // in place of the inputs without a record so far
	settled   time.Time                 // time when all live inputs have been read
	marks     map[string]*watermark     // by run
	unclaimed bool                      // no gateway has read the partition before
	since     time.Time                 // start of this reading
	batches   map[string]*batch         // by run: an exporter that keys messages by their run gets each run separately
	records   int                       // in batches
	left      int                       // all collectives that have left
	known     []*collectives.Collective // collectives that left and were sent in an earlier life
	read      int64                     // messages
	passed    int64                     // messages among them without a readable record
	accepted  int64                     // of the others, as counted
	published time.Time                 // last time the position was published
	parser    ptrace.ProtoUnmarshaler

	joiner *collectives.Joiner[int64] // a record is identified by the offset of its message

	committed offsets.Position // guarded by kafkaTopic.committing

	mu      sync.Mutex // guards all below
	queue   [][]*kgo.Record
	queued  int // bytes
	paused  bool
	at      offsets.Position
	begun   bool // at is known
	head    int64
	holes   int64
	end     int64     // where the partition ended …
	endedAt time.Time // … at this time
}

// inputKey is a log.
type inputKey struct{ run, host, path, family string }

// logInput is the input of a log.
type logInput struct {
	*collectives.Input[int64]
	lastRead time.Time
	until    int64 // start of the last record, or end of the log read without a record, Unix ns
}

type commKey struct{ run, comm string }

// Bounds of the memory; forgotten entries may be made again.
const (
	maxInputs = 1 << 16
	maxComms  = 1 << 12
)

func newPartition(t *kafkaTopic, id int32, committed offsets.Position, from int64) *partition {
	settings := t.r.settings()
	settings.Remote = true // and no run has a span: gateways that share a run would each send a different one
	if settings.Collector != "" {
		settings.Collector = fmt.Sprintf("%s/%d", settings.Collector, id) // results of several joiners of one run are separate series
	}
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

// awaitOthers has collectives of an unknown number of ranks wait until all collectors had time to say something.
func (p *partition) awaitOthers() {
	if p.others != nil {
		p.others.Heard()
	}
	p.others, p.settled = p.joiner.Input(collectives.From{}, p.take), p.t.now().Add(p.t.settle)
}

// give takes fetched records.
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

func (p *partition) signal() {
	select {
	case p.signalled <- struct{}{}:
	default:
	}
}

// next takes records from the queue.
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

func bytesOf(records []*kgo.Record) (n int) {
	for _, r := range records {
		n += len(r.Value)
	}
	return n
}

// reaches says where the partition ended at a time.
func (p *partition) reaches(end int64, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end, p.endedAt = end, at
	p.signal()
}

// position is the committable position; false: nothing was read yet.
func (p *partition) position() (offsets.Position, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at, p.begun
}

// lag is the number of unread messages.
func (p *partition) lag() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun {
		return 0
	}
	return max(p.end-p.head, 0)
}

// pending is the number of messages read but not completely accepted.
func (p *partition) pending() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holes
}

// run reads until the partition is given up.
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
			if p.message(r); p.records >= maxBatch && !p.send() {
				return
			}
		}
		if records == nil && (!p.expire() || !p.send()) { // small batches are joined while there is more to read
			return
		}
		p.publish(records == nil)
		if records != nil {
			continue
		}
		select {
		case <-p.quit:
			return
		case <-p.signalled:
		}
	}
}

// release counts the messages that the next reader of the partition will read again.
func (p *partition) release() {
	p.publish(true)
	add(p.ctx, p.t.r.tel.TrainbridgeNcclKafkaMessages, int64(p.tracker.Behind()), messageReleased)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holes = 0
}

// publishEvery is the interval of publishing the position while there is much to do.
const publishEvery = 250 * time.Millisecond

// publish publishes the accepted position of the partition.
func (p *partition) publish(now bool) {
	if at := p.t.now(); now || at.Sub(p.published) >= publishEvery {
		p.published = at
	} else {
		return
	}
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

// message reads a message.
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

// partials reads the packed records of a message. A broken one does not affect the others.
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
				err = errors.Join(err, failed)
			}
		}
	}
	return n, err
}

// join passes packed records to the joiner.
func (p *partition) join(s *partial.Stretch, offset int64) error {
	if len(p.services) >= maxComms {
		clear(p.services)
	}
	p.services[s.From.Run] = s.Service
	in, now := p.input(s), p.t.now()
	in.lastRead, in.Known = now, offset < p.floor
	p.mark(s)
	if s.Count == 0 {
		in.Alive(now.UnixNano())
		in.until = max(in.until, s.ReadTo-heartbeat.Nanoseconds()) // logs are written in batches
		return nil
	}
	came := [1]int64{offset}
	var counts [recordKinds]int64
	err := partial.Read(s.Records, func(o *op.Op) {
		in.until = max(in.until, began(o))
		if p.t.r.unwanted(o) != "" {
			counts[recordFiltered]++
			return
		}
		if o.CommSize == 0 {
			p.unsized(s)
		}
		p.tracker.Hold()
		if in.Add(o, came[:], now.UnixNano()) {
			counts[recordJoined]++
		} else {
			p.tracker.Done()
			counts[recordRepeated]++
		}
	})
	for kind, n := range counts {
		add(p.ctx, p.t.r.tel.TrainbridgeNcclKafkaRecords, n, recordOptions[kind])
	}
	return err
}

// unsized notes a communicator without a number of ranks in the logs. The first records are of one collector: the others are waited for.
func (p *partition) unsized(s *partial.Stretch) {
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

// input finds the input of a log.
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

// forget makes room for new inputs: first by forgetting the inputs that were silent for long.
func (p *partition) forget() {
	dead := p.t.now().Add(-p.t.r.cfg.HangTimeout)
	for key, in := range p.inputs {
		if in.lastRead.Before(dead) {
			in.Heard()
			delete(p.inputs, key)
		}
	}
	for key, in := range p.inputs {
		if len(p.inputs) < maxInputs {
			return
		}
		in.Heard()
		delete(p.inputs, key)
	}
}

// expire gives up collectives that waited for too long, once everything that existed was read. false: the partition was given up.
func (p *partition) expire() bool {
	p.mu.Lock()
	end, at := p.end, p.endedAt
	p.mu.Unlock()
	if at.IsZero() || p.tracker.Head() < end {
		return true
	}
	if at.After(p.settled) {
		p.others.Heard()
	}
	before := at.Add(-p.t.r.cfg.HangTimeout).UnixNano()
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

// take takes a collective that leaves, with the offsets of its records.
func (p *partition) take(c *collectives.Collective, came []int64) {
	p.left++
	run := c.Run()
	if m := p.marks[run]; m != nil && c.End() > m.sent {
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

// batch is the next batch of a run.
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

// send sends the collectives that have left, for as long as needed. false: the partition was given up before.
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

// deliver tries until all is accepted, or refused for good.
func (p *partition) deliver(d tail.Delivery) bool {
	for wait := p.t.retry; ; wait = min(2*wait, maxRetry) {
		err := d.Send(p.ctx)
		if err == nil {
			return true
		}
		if refused, ok := errors.AsType[*tail.Refused](err); ok {
			n := 0
			for _, places := range refused.Places {
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
	ends        []int   // of each collective in came
	mark        watermark
	marked      bool
}

// Traces builds the spans.
func (b *batch) Traces(out *spans.Batch, from filereceiver.From) {
	if b.marked && b.mark.until == 0 {
		b.mark.add(out)
	}
	collectives.AddSpans(out, b.service, b.collectives, func(place int) { from(tail.Place(place)) })
	if b.marked && b.mark.until > 0 {
		b.mark.add(out)
	}
}

// Metrics makes metrics of the judgements on the collectives.
func (b *batch) Metrics() pmetric.Metrics {
	return collectives.Metrics(b.points, b.service, metadata.ScopeName, b.p.t.r.Set.BuildInfo.Version)
}

// Done counts the collectives, and returns them to their pool.
func (b *batch) Done() {
	b.p.t.r.count(collectives.Count(b.collectives))
	b.p.joiner.Free(b.collectives)
}
