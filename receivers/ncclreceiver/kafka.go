package ncclreceiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/internal/health"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/broker"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/offsets"
)

// kafkaTopic reads a topic with the records that other collectors read from logs, as a member of a consumer group. All records of a communicator are in one
// partition, so that each partition is joined separately (partition.go), and moves to another gateway as a whole: waiting records need no transfer, because
// their messages come again.
type kafkaTopic struct {
	r      *ncclReceiver
	cfg    *KafkaConfig
	now    func() time.Time
	health health.Reporter

	lookEvery time.Duration // between two questions for the ends of the partitions
	settle    time.Duration // until all collectors have had time to send something: partition.awaitOthers
	retry     time.Duration // until a batch is tried again, the first time
	patience  time.Duration // for sending what is under way when partitions are given up
	markEvery time.Duration // between two watermarks of a run

	ready  chan struct{} // closed when the following fields are set; the client's callbacks wait for it
	client *kgo.Client
	admin  *kadm.Client
	life   context.Context // of everything below; ends with Shutdown
	end    context.CancelFunc
	loops  sync.WaitGroup

	// committing is held while offsets are committed, and while partitions are given up: only owned partitions are committed.
	committing sync.Mutex

	mu         sync.Mutex // guards all below
	partitions map[int32]*partition
	fetched    map[int32]offsets.Position // as fetched from the group, until the partition begins
	warned     map[string]time.Time       // last time of each kind of warning
	count      int                        // of the topic's partitions; 0: not known yet
	grown      time.Time                  // when the count was first seen to be higher than before; zero: never
}

// newTopic returns the reader of a topic, with the receiver's own metrics: the sums over its partitions.
func newTopic(r *ncclReceiver, cfg *KafkaConfig) (*kafkaTopic, error) {
	t := &kafkaTopic{
		r: r, cfg: cfg, now: time.Now, retry: 200 * time.Millisecond, patience: 5 * time.Second, markEvery: time.Second,
		lookEvery: min(time.Second, r.cfg.HangTimeout/4), // a known end is young compared with hang_timeout, and watermarks wait for a look
		settle:    25 * time.Second,                      // heartbeats come every 10 to 15 s
		ready:     make(chan struct{}), partitions: make(map[int32]*partition),
		fetched: make(map[int32]offsets.Position), warned: make(map[string]time.Time),
	}
	sum := func(of func(p *partition) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			var n int64
			for _, p := range t.partitionsNow() {
				n += of(p)
			}
			o.Observe(n)
			return nil
		}
	}
	return t, errors.Join(
		r.tel.RegisterTrainbridgeNcclStateCallback(sum(func(p *partition) int64 { return p.joiner.Waiting() })),
		r.tel.RegisterTrainbridgeNcclKafkaLagCallback(sum((*partition).lag)),
		r.tel.RegisterTrainbridgeNcclKafkaPendingCallback(sum((*partition).pending)),
	)
}

// Start begins to read as a member of the consumer group: the client calls back when partitions are assigned and revoked. Unreachable brokers are waited for.
// An error is one of the configuration.
func (t *kafkaTopic) Start(ctx context.Context, host component.Host) error {
	client, err := broker.Options(ctx, host, &t.cfg.ClientConfig, t.r.Set.Logger)
	if err != nil {
		return err
	}
	group, err := broker.Group(host, &t.cfg.ConsumerConfig)
	if err != nil {
		return err
	}
	t.health.Start(host)
	t.client, err = kgo.NewClient(append(append(client, group...),
		kgo.ConsumeTopics(t.cfg.Topic), kgo.DisableAutoCommit(), kgo.WithHooks(answers{&t.health}),
		kgo.BlockRebalanceOnPoll(), // a partition is not given up between a poll and the partition's queue
		kgo.OnOffsetsFetched(t.offsetsFetched), kgo.AdjustFetchOffsetsFn(t.assigned),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, added map[string][]int32) {
			if len(added) == 0 { // no partition for this member: the brokers answer all the same; with partitions, assigned has said so
				t.health.Through(true)
			}
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, _ *kgo.Client, gone map[string][]int32) {
			t.giveUp(ctx, gone[t.cfg.Topic], true)
		}),
		kgo.OnPartitionsLost(func(ctx context.Context, _ *kgo.Client, lost map[string][]int32) {
			t.giveUp(ctx, lost[t.cfg.Topic], false)
		}),
	)...)
	if err != nil {
		return fmt.Errorf("'kafka': %w", err)
	}
	t.admin = kadm.NewClient(t.client)
	t.life, t.end = context.WithCancel(context.Background())
	close(t.ready)
	t.loops.Go(t.poll)
	t.loops.Go(t.mind)
	return nil
}

// answers notes whether brokers answer: while none can be reached, no fetch has an error.
type answers struct{ *health.Reporter }

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (a answers) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		a.Answered(false)
	}
}

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (a answers) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e2e kgo.BrokerE2E) {
	if e2e.Err() == nil {
		a.Answered(true)
	}
}

// Shutdown commits the accepted position, and leaves the group.
func (t *kafkaTopic) Shutdown(ctx context.Context) error {
	if t.client == nil {
		return nil
	}
	t.end()
	t.loops.Wait()
	t.client.AllowRebalance() // the last poll blocks it
	t.giveUp(ctx, slices.Collect(maps.Keys(t.partitionsNow())), true)
	t.client.Close()
	t.giveUp(ctx, slices.Collect(maps.Keys(t.partitionsNow())), false) // assigned meanwhile
	return nil
}

// partitionsNow returns the current partitions, by id.
func (t *kafkaTopic) partitionsNow() map[int32]*partition {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.partitions)
}

// poll fetches records and puts them into the queues of their partitions until Shutdown. A full queue is not waited for: its partition is paused
// (partition.give).
func (t *kafkaTopic) poll() {
	for {
		fetches := t.client.PollFetches(t.life)
		if t.life.Err() != nil {
			return
		}
		failed := false
		fetches.EachError(func(_ string, _ int32, err error) {
			failed = true
			t.warn("fetch", fmt.Sprintf("topic %s cannot be read, and is tried again: %v", t.cfg.Topic, err))
		})
		if failed || !fetches.Empty() {
			t.health.Through(!failed)
		}
		partitions := t.partitionsNow()
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			if p := partitions[f.Partition]; p != nil && len(f.Records) > 0 {
				p.give(f.Records)
			}
		})
		t.client.AllowRebalance()
	}
}

// mind runs beside poll until Shutdown: it commits the accepted positions in each autocommit interval, and asks where the partitions end (look) in each
// lookEvery.
func (t *kafkaTopic) mind() {
	commit, look := time.NewTicker(t.cfg.AutoCommit.Interval), time.NewTicker(t.lookEvery)
	defer commit.Stop()
	defer look.Stop()
	for {
		select {
		case <-t.life.Done():
			return
		case <-commit.C:
			t.committing.Lock()
			t.commit(t.life, t.partitionsNow())
			t.committing.Unlock()
		case <-look.C:
			t.askEnds()
		}
	}
}

// requestTimeout bounds a request to the brokers that is repeated anyway.
const requestTimeout = 10 * time.Second

// askEnds asks the brokers how many partitions the topic has and where each ends at present, and passes the answers to the partitions. A collective that waits
// for too long is given up only when a partition was read to such an end (partition.expire): a backlog, here or at the brokers, is no missing rank.
func (t *kafkaTopic) askEnds() {
	partitions := t.partitionsNow()
	if len(partitions) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(t.life, requestTimeout)
	defer cancel()
	asked := t.now()
	grown, err := t.lastGrown(ctx, asked)
	if err != nil {
		return // the poll reports the error too
	}
	ends, err := t.admin.ListEndOffsets(ctx, t.cfg.Topic)
	if err != nil {
		return
	}
	for id, p := range partitions {
		if end, ok := ends.Lookup(t.cfg.Topic, id); ok && end.Err == nil {
			p.setEnd(end.Offset, asked, grown)
		}
	}
}

// lastGrown counts the topic's partitions at the time now, and returns the time at which their number was last seen to grow; zero: never. The client's own
// metadata may be minutes old.
func (t *kafkaTopic) lastGrown(ctx context.Context, now time.Time) (time.Time, error) {
	req, topic := kmsg.NewPtrMetadataRequest(), kmsg.NewMetadataRequestTopic()
	topic.Topic = new(t.cfg.Topic)
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return time.Time{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(resp.Topics) == 1 && resp.Topics[0].ErrorCode == 0 {
		n := len(resp.Topics[0].Partitions)
		if t.count > 0 && n > t.count {
			t.grown = now
		}
		t.count = n
	}
	return t.grown, nil
}

// commit commits the accepted positions of partitions that have changed, with the metadata that offsets.Position needs. After an error the next commit tries
// again. The caller holds t.committing.
func (t *kafkaTopic) commit(ctx context.Context, partitions map[int32]*partition) {
	begins, texts := make(map[int32]kgo.EpochOffset), make(map[int32]string) // Epoch -1: none is stated
	for id, p := range partitions {
		if at, ok := p.position(); ok && at != p.committed {
			begins[id], texts[id] = kgo.EpochOffset{Epoch: -1, Offset: at.Begin}, at.Metadata()
		}
	}
	if len(begins) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// The client's own call has no parameter for metadata.
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		for i := range req.Topics {
			for k := range req.Topics[i].Partitions {
				p := &req.Topics[i].Partitions[k]
				text := texts[p.Partition]
				p.Metadata = &text
			}
		}
		return nil
	})
	var failed error
	t.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{t.cfg.Topic: begins},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			failed = errors.Join(err, refusals(resp))
		})
	if failed != nil {
		if t.life.Err() == nil {
			t.warn("commit", fmt.Sprintf("the offsets of topic %s cannot be committed, and will be: %v", t.cfg.Topic, failed))
		}
		return
	}
	for id, at := range begins {
		partitions[id].committed = offsets.Committed(at.Offset, texts[id])
	}
}

// refusals returns the errors of the partitions in a response.
func refusals(resp *kmsg.OffsetCommitResponse) (err error) {
	if resp == nil {
		return nil
	}
	for i := range resp.Topics {
		for _, p := range resp.Topics[i].Partitions {
			err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	return err
}

// offsetsFetched keeps the committed positions for assigned, which the client calls next without the metadata.
func (t *kafkaTopic) offsetsFetched(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range resp.Groups {
		for i := range g.Topics { // there is one topic
			for _, p := range g.Topics[i].Partitions {
				if p.Metadata != nil && p.Offset >= 0 {
					t.fetched[p.Partition] = offsets.Committed(p.Offset, *p.Metadata)
				}
			}
		}
	}
	return nil
}

// assigned begins to read the partitions that the group assigns to this member. from has the committed offsets; the result has the offsets to read from, which
// are lower: records of collectives that are not complete, and for comparison the look_back messages before, are read again. Messages deleted by the broker
// before they were accepted are counted as lost.
func (t *kafkaTopic) assigned(ctx context.Context, from map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	<-t.ready
	starts, err := t.admin.ListStartOffsets(ctx, t.cfg.Topic)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(ctx.Err(), t.life.Err()); err != nil { // the partitions are not ours any more
		return nil, err
	}
	for id, offset := range from[t.cfg.Topic] {
		t.giveUp(ctx, []int32{id}, false) // an interrupted assignment
		at := offset.EpochOffset().Offset
		t.mu.Lock()
		committed, ok := t.fetched[id]
		delete(t.fetched, id)
		if !ok || committed.Begin != at { // no metadata, or for another offset
			committed = offsets.Position{Begin: max(at, 0), From: max(at, 0)}
		}
		t.mu.Unlock()
		if at >= 0 { // otherwise nothing is committed, and initial_offset decides
			at = max(min(committed.From, committed.Begin-t.cfg.LookBack), 0)
			if start, ok := starts.Lookup(t.cfg.Topic, id); ok && start.Err == nil {
				if lost := start.Offset - committed.Begin; lost > 0 {
					t.r.tel.TrainbridgeNcclKafkaLost.Add(ctx, lost)
					t.warn("lost", fmt.Sprintf("%d messages of partition %d of topic %s were deleted before they were read: "+
						"keep them for longer (retention.ms), or have more gateways", lost, id, t.cfg.Topic))
				}
				at = max(at, start.Offset)
			}
			from[t.cfg.Topic][id] = kgo.NewOffset().At(at)
		}
		p := newPartition(t, id, committed, at)
		t.mu.Lock()
		t.partitions[id] = p
		t.mu.Unlock()
		t.r.Set.Logger.Info(fmt.Sprintf("%s reads partition %d of topic %s, %s", t.r.Set.ID, id, t.cfg.Topic, startText(at, committed.Begin)))
		go p.run()
	}
	t.health.Through(true)
	return from, nil
}

// startText returns the text, for the log, about where reading of a partition starts: at offset at (negative: an end of the partition), where begin is the
// first message not sent yet.
func startText(at, begin int64) string {
	switch {
	case at == -1:
		return "from its end on (initial_offset)"
	case at < 0:
		return "from its beginning"
	case at < begin:
		return fmt.Sprintf("from offset %d on: what was before %d was sent, and is read again for what follows", at, begin)
	}
	return fmt.Sprintf("from offset %d on", at)
}

// giveUp ends the reading of partitions that leave this member, or at Shutdown. What is being sent has patience to be accepted; then it is interrupted, and its
// messages come again to the next reader. With commit the accepted positions are committed: not of partitions that are lost already.
func (t *kafkaTopic) giveUp(ctx context.Context, ids []int32, commit bool) {
	<-t.ready
	t.committing.Lock()
	defer t.committing.Unlock()
	gone := make(map[int32]*partition)
	t.mu.Lock()
	for _, id := range ids {
		if p := t.partitions[id]; p != nil {
			gone[id] = p
			delete(t.partitions, id)
		}
	}
	t.mu.Unlock()
	for _, p := range gone {
		close(p.quit)
	}
	patience := time.NewTimer(t.patience)
	defer patience.Stop()
	for id, p := range gone {
		select {
		case <-p.done:
		case <-patience.C:
			patience.Reset(0) // the others have had as long: each next wait ends at once
			p.cancel()
			<-p.done
		}
		t.client.ResumeFetchPartitions(map[string][]int32{t.cfg.Topic: {id}}) // a pause outlives the assignment
	}
	if commit {
		t.commit(ctx, gone)
	}
}

// warnEvery is the interval of a kind of warning.
const warnEvery = time.Minute

// warn logs a text, at most once a minute of each kind.
func (t *kafkaTopic) warn(kind, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if last, ok := t.warned[kind]; ok && now.Sub(last) < warnEvery {
		return
	}
	t.warned[kind] = now
	t.r.Set.Logger.Warn(t.r.Set.ID.String() + ": " + text)
}

// The results of a message, as attributes: all of its records accepted; without a record; unreadable, at least a part; or left to the next reader of the
// partition.
var (
	messageAccepted = attributeOf("message", "accepted")
	messageIgnored  = attributeOf("message", "ignored")
	messageRejected = attributeOf("message", "rejected")
	messageReleased = attributeOf("message", "released")
)

// The results of a record, in the order of recordOptions.
const (
	recordJoined   = iota
	recordRepeated // the same record came before
	recordFiltered // excluded by the configuration
	recordKinds    // their number
)

var recordOptions = [recordKinds]metric.AddOption{attributeOf("record", "joined"), attributeOf("record", "repeated"), attributeOf("record", "filtered")}

// attributeOf returns the attribute of a counter as an option.
func attributeOf(key, value string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// add adds n to a counter, unless n is 0.
func add(ctx context.Context, to metric.Int64Counter, n int64, what metric.AddOption) {
	if n > 0 {
		to.Add(ctx, n, what)
	}
}
