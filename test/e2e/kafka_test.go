//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// broker is a real single-node Kafka that creates topics on first use. It survives kill -9: up starts it again with the same data.
type broker struct {
	*process
	addr string
	args []string // of tools/kafka/start.sh
	env  []string
}

func startKafka(tb testing.TB, partitions int) *broker {
	tb.Helper()
	b := newKafka(tb, freeAddr(tb), partitions)
	b.up(tb)
	return b
}

// newKafka prepares a broker, optionally with a second listener: its address, and its advertised address.
func newKafka(tb testing.TB, addr string, partitions int, other ...string) *broker {
	tb.Helper()
	libs, err := filepath.Abs(filepath.Join(repoRoot, "bin/tools/kafka"))
	require.NoError(tb, err)
	require.DirExists(tb, libs, "Kafka is not there: run `make kafka`")
	return &broker{addr: addr, args: append([]string{libs, tb.TempDir(), addr, freeAddr(tb), strconv.Itoa(partitions)}, other...)}
}

// up starts the broker and waits until it answers.
func (b *broker) up(tb testing.TB) {
	tb.Helper()
	script, err := filepath.Abs(filepath.Join(repoRoot, "tools/kafka/start.sh"))
	require.NoError(tb, err)
	b.process = start(tb, "kafka", script, b.env, b.args...)
	eventually(tb, func() error {
		if !b.running() {
			return fatal(errors.New("kafka ended while starting:\n" + b.tail(15)))
		}
		conn, err := net.Dial("tcp", b.addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// topics creates topics, as docs/reference/scale.md does: a topic created by its first message may be too late for that message.
func (b *broker) topics(tb testing.TB, names ...string) {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	require.NoError(tb, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	made, err := admin.CreateTopics(tb.Context(), -1, -1, nil, names...)
	require.NoError(tb, errors.Join(err, made.Error()))
	eventually(tb, func() error {
		known, err := admin.ListTopics(tb.Context(), names...)
		return errors.Join(err, known.Error())
	})
}

// shared waits until each group has the given number of members, and each member has partitions: a partition that moves loses step_join's state.
func (b *broker) shared(tb testing.TB, members int, groups ...string) {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	require.NoError(tb, err)
	defer client.Close()
	eventually(tb, func() error {
		all, err := kadm.NewClient(client).DescribeGroups(tb.Context(), groups...)
		err = errors.Join(err, all.Error())
		if err != nil {
			return err
		}
		for name, g := range all {
			reading := 0
			for _, m := range g.Members {
				if a, ok := m.Assigned.AsConsumer(); ok && len(a.Topics) > 0 {
					reading++
				}
			}
			if g.State != "Stable" || reading != members {
				return fmt.Errorf("group %s is %s, %d of %d members read", name, g.State, reading, members)
			}
		}
		return nil
	})
}

// rights has the broker check its clients' rights: everything is allowed until deny.
func (b *broker) rights(tb testing.TB) (deny, allow func()) {
	tb.Helper()
	b.env = append(b.env, "KAFKA_CONFIG=authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nallow.everyone.if.no.acl.found=true")
	const everyone = "User:ANONYMOUS"
	denied := kadm.NewACLs().Topics("*").ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpWrite).Deny(everyone).DenyHosts("*")
	idempotent := kadm.NewACLs().Clusters().ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpIdempotentWrite).Deny(everyone).DenyHosts("*")
	// Whatever a resource has rules for is forbidden to all others.
	rest := kadm.NewACLs().Clusters().Topics("*").ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpAll).Allow(everyone).AllowHosts("*")
	admin := func(do func(ctx context.Context, admin *kadm.Client) error) {
		tb.Helper()
		client, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
		require.NoError(tb, err)
		defer client.Close()
		require.NoError(tb, do(tb.Context(), kadm.NewClient(client)))
	}
	deny = func() {
		tb.Helper()
		admin(func(ctx context.Context, admin *kadm.Client) error {
			for _, acls := range []*kadm.ACLBuilder{rest, denied, idempotent} {
				made, err := admin.CreateACLs(ctx, acls)
				for _, r := range made {
					err = errors.Join(err, r.Err)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	allow = func() {
		tb.Helper()
		admin(func(ctx context.Context, admin *kadm.Client) error {
			for _, acls := range []*kadm.ACLBuilder{denied, idempotent} {
				if _, err := admin.DeleteACLs(ctx, acls); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return deny, allow
}

// Agents and gateways that start before they may write to Kafka continue on their own once they may.
func TestKafkaRightsComeLate(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "8", "--steps", "10", "--seed", "3")
	b := newKafka(t, freeAddr(t), 4)
	deny, allow := b.rights(t)
	b.up(t)
	b.topics(t, "otlp_spans", "otlp_nccl")
	deny()
	bed := tr.through(t, b)
	bed.gateway.up(t)
	bed.agent.up(t)
	bed.grow(0, 1)
	bed.agent.says(t, "CLUSTER_AUTHORIZATION_FAILED")
	allow()
	bed.check()
}

// kafkaBed is an agent whose logs grow, a broker and a gateway, with the files of deploy/.
type kafkaBed struct {
	*testing.T
	tr             *jobTruth
	logs           string // of the agent
	broker         *broker
	agent, gateway *collector
	jaeger         *jaeger
	forgets        bool // the gateway ends while steps are under way: of some the root alone is told
}

// through prepares the way of a job's logs by a broker.
func (tr *jobTruth) through(t *testing.T, b *broker) *kafkaBed {
	t.Helper()
	bed := &kafkaBed{T: t, tr: tr, logs: t.TempDir(), broker: b, jaeger: startJaeger(t)}
	kafka := "TRAINBRIDGE_KAFKA=" + b.addr
	bed.agent = deployed(t, "kafka/agent.yaml", kafka, "TRAINBRIDGE_RUN_ID="+tr.RunID, "TRAINBRIDGE_LOGS="+bed.logs+"/*/*")
	bed.agent.merge(t, otlpPorts(t))
	bed.gateway = deployed(t, "kafka/gateway.yaml", kafka, "TRAINBRIDGE_OTLP_ENDPOINT="+bed.jaeger.otlp, "TRAINBRIDGE_COLLECTOR=gateway-0")
	// A step waits for longer than a broker takes to come back, or it would be told in two parts. No collectives are among the logs, and no longer waited for.
	bed.gateway.merge(t, "{processors: {step_join: {wait: 20s, wait_limit: 20s}}, connectors: {train_metrics: {metrics_flush_interval: 1s}}}")
	return bed
}

// grow appends a part of each log.
func (bed *kafkaBed) grow(part, parts int) {
	bed.Helper()
	grow(bed.T, bed.tr.dir+"/[tz]*/*", bed.logs, part, parts)
}

// check waits until the gateway's backend has the content of one collector that reads all logs.
func (bed *kafkaBed) check() {
	bed.Helper()
	direct := startJaeger(bed)
	c := newCollector(bed, trainbridgeBin(bed), "", direct.otlp)
	c.env = append(c.env, "TRAINBRIDGE_RUN_ID="+bed.tr.RunID, "TRAINBRIDGE_LOGS="+bed.logs+"/*/*")
	c.up(bed)
	eventually(bed, func() error {
		want, err := told(direct)
		if err != nil {
			return err
		}
		got, err := told(bed.jaeger)
		if err != nil {
			return err
		}
		if bed.forgets {
			maps.DeleteFunc(want, func(ids [2]string, text string) bool { return text == joinedSpan && got[ids] == "" })
		}
		if !maps.Equal(want, got) {
			missing, more := maps.Clone(want), maps.Clone(got)
			maps.DeleteFunc(missing, func(ids [2]string, text string) bool { return got[ids] == text })
			maps.DeleteFunc(more, func(ids [2]string, text string) bool { return want[ids] == text })
			return fmt.Errorf("of %d spans %d are not there: %.1000v; of %d by Kafka %d should not be: %.1000v", len(want), len(missing), missing, len(got),
				len(more), more)
		}
		if n := len(bed.tr.Steps); len(want) < 10*n {
			return fmt.Errorf("%d spans of %d steps", len(want), n)
		}
		return nil
	})
	bed.agent.stop(bed)
	bed.gateway.stop(bed)
	c.stop(bed)
	c.assertQuiet(bed)
}

// A job's logs arrive through Kafka and a gateway as from one collector that reads and sends everything itself, while the broker is killed twice.
func TestKafka(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "8", "--steps", "50", "--seed", "3", "--fault-every", "4", "--faults", "data_loading,get,put")
	bed := tr.through(t, startKafka(t, 4))
	bed.gateway.up(t)
	bed.agent.up(t)
	const parts = 3
	for part := range parts {
		bed.grow(part, parts)
		lasts(2 * time.Second)
		if part > 0 {
			bed.broker.kill()
			lasts(2 * time.Second)
			bed.broker.up(t)
		}
	}
	// The gateway's counters are exact: repeats have the same ids.
	steps := map[string]float64{}
	eventually(t, func() error {
		list, err := metricsOf(bed.gateway.metrics)
		clear(steps)
		for _, m := range list {
			if m.name == "ml_train_steps_total" {
				steps[m.labels["trainbridge_source"]] += m.value
			}
		}
		if err == nil && steps["jsonl"] != float64(len(tr.Steps)) {
			err = fmt.Errorf("%v steps, want %d", steps, len(tr.Steps))
		}
		return err
	})
	bed.check()
}
