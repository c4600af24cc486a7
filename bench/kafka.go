package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/internal/stat"
)

// broker is a single-node Kafka of `make kafka`, beside the sink.
type broker struct {
	cmd  *exec.Cmd
	addr string // host:port
	data string // directory
}

// startBroker starts the broker on the sink's core and returns when it takes connections.
func startBroker(libs, dir string) (*broker, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	b := &broker{addr: ports[0], data: filepath.Join(dir, "data")}
	said := filepath.Join(dir, "kafka.out")
	out, err := os.Create(said)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	b.cmd = exec.Command("taskset", "-c", "1", "tools/kafka/start.sh", libs, dir, ports[0], ports[1], "1")
	b.cmd.Stdout, b.cmd.Stderr = out, out
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if conn, err := net.Dial("tcp", b.addr); err == nil {
			return b, conn.Close()
		}
	}
	b.stop()
	return nil, fmt.Errorf("kafka does not answer after 2 minutes; see %s", said)
}

// stop kills the broker.
func (b *broker) stop() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// size is how many bytes the broker has of a topic.
func (b *broker) size(topic string) (n int64) {
	files, _ := filepath.Glob(filepath.Join(b.data, topic+"-*", "*.log"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			n += info.Size()
		}
	}
	return n
}

// freePorts are addresses without a listener.
func freePorts(n int) (list []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list, nil
}

// kafkaRow is the cost of one part of the path of collectives' records.
type kafkaRow struct {
	name    string
	records int64
	cpu     []float64 // seconds, by round
	bytes   int64     // in Kafka
	memory
}

// kafkaTable is the path of collectives' records through Kafka.
type kafkaTable []kafkaRow

// print writes the table in Markdown.
func (t kafkaTable) print(w io.Writer) {
	fmt.Fprint(w, "### Collectives through Kafka (bench/config/collectives.yaml)\n\n"+
		"| | records | k records/s per core (rounds), a gateway's with its start | B per record in Kafka | MiB own | peak |\n|---|---|---|---|---|---|\n")
	for i := range t {
		r := &t[i]
		speed := column(r.cpu, func(cpu float64) float64 { return float64(r.records) / cpu / 1e3 })
		stored := "–"
		if r.bytes > 0 {
			stored = fmt.Sprintf("%.1f", float64(r.bytes)/float64(r.records))
		}
		fmt.Fprintf(w, "| %s | %d | %.0f (%.0f–%.0f) | %s | %.0f | %.0f |\n",
			r.name, r.records, stat.Middle(speed), slices.Min(speed), slices.Max(speed), stored, r.anon, r.peak)
	}
	fmt.Fprintln(w)
}

// kafkaJob is a generated job, of which the messages of all hosts wait in a topic of its own.
type kafkaJob struct {
	name, topic string
	flags       string   // of gen partials
	rates       []string // sample rates of the gateways
}

// jobs are one communicator, the limit of one partition, and a growing number of communicators: tensor parallelism of 8 ranks, a pipeline of 4 stages, and data
// parallelism of the rest. Each of the growing jobs has about two million records.
var jobs = []kafkaJob{
	{"160 ranks, one communicator", "job", "--layout fsdp --gpus 160 --rate 50 --duration 90s", []string{"1", "0.01"}},
	{"the same, a host cut off for 60 s", "away", "--layout fsdp --gpus 160 --rate 50 --duration 90s --away-host 3 --away-from 10s --away-for 60s", []string{"1"}},
	{"10,000 ranks, one communicator", "hot", "--layout fsdp --gpus 10000 --rate 10 --duration 8s", []string{"1"}},
	{"64 ranks, 56 communicators", "ranks64", "--pp 4 --gpus 64 --duration 320s", []string{"1", "0.01"}},
	{"512 ranks", "ranks512", "--pp 4 --gpus 512 --duration 40s", []string{"1", "0.01"}},
	{"4,096 ranks", "ranks4096", "--pp 4 --gpus 4096 --duration 5s", []string{"1", "0.01"}},
	{"16,384 ranks", "ranks16384", "--pp 4 --gpus 16384 --duration 1.3s", []string{"1", "0.01"}},
}

// generate has gen partials write the job's messages to the broker, and returns the number of records.
func (j *kafkaJob) generate(gen, broker string) (records int64, err error) {
	said, err := exec.Command(gen, append([]string{"partials", "--kafka", broker, "--topic", j.topic}, strings.Fields(j.flags)...)...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("gen partials: %w: %s", err, said)
	}
	if _, err := fmt.Sscanf(string(said), "sent %d records", &records); err != nil {
		return 0, fmt.Errorf("gen partials: %w: %s", err, said)
	}
	return records, nil
}

// kafkaCase is a collector of bench/config/collectives.yaml: a row of the table.
type kafkaCase struct {
	name                               string
	log                                string // path
	receiver, exporter, topic, sampled string
	records                            int64
}

// collectives runs one receiver, an agent, a gateway, and a receiver whose spans go to Kafka without a key, over one log; then gateways of generated jobs, one
// with a host cut off for 60 s.
func (o *options) collectives(libs string) (t kafkaTable, err error) {
	dir, err := os.MkdirTemp(o.out, "kafka")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b, err := startBroker(libs, dir)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	d := &duels[slices.IndexFunc(duels, func(d duel) bool { return d.name == "NCCL" })]
	logs := &table{duel: d}
	log, none := filepath.Join(o.out, "collectives.log"), filepath.Join(dir, "none")
	if err := errors.Join(logs.generate(o.gen, log, o.lines), os.WriteFile(none, nil, 0o600)); err != nil {
		return nil, err
	}
	defer os.Remove(log)
	rows := []kafkaCase{
		{"one receiver of all logs", log, "nccl", "otlp_acked", "none", "1", logs.lines},
		{"agent, `join: remote`", log, "nccl/agent", "kafka/keyed", "partials", "1", logs.lines},
		{"gateway, of what the agent sent", none, "nccl/gateway", "otlp_acked", "partials", "1", logs.lines},
		{"one receiver, spans to Kafka without a key", log, "nccl", "kafka", "spans", "1", logs.lines},
	}
	for i := range jobs {
		j := &jobs[i]
		records, err := j.generate(o.gen, b.addr)
		if err != nil {
			return nil, err
		}
		for _, rate := range j.rates {
			name := "gateway, of " + j.name
			if rate != "1" {
				name = "the same, `sample_rate: " + rate + "`"
			}
			rows = append(rows, kafkaCase{name, none, "nccl/gateway", "otlp_acked", j.topic, rate, records})
		}
	}
	for _, row := range rows {
		r, want := kafkaRow{name: row.name, records: row.records}, int64(unknown)
		for round := range o.rounds {
			topic := row.topic
			if row.exporter != "otlp_acked" && round > 0 { // an empty topic for each round; the gateway reads the topic of the first
				topic += strconv.Itoa(round)
			}
			group := fmt.Sprintf("%s-%s-%d", row.topic, row.sampled, round)
			s, err := o.measure(o.collective(b, row.receiver, row.exporter, topic, row.sampled, group), d, row.log, want)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", row.name, err)
			}
			fmt.Fprintf(os.Stderr, "%s, round %d: %.2f s\n", row.name, round+1, s.cpu)
			// Further rounds wait for as many items as the first had. Bytes in Kafka differ a little with the batches: nothing is wanted there.
			if row.exporter == "otlp_acked" {
				want = s.items
			}
			r.cpu = append(r.cpu, s.cpu)
			r.anon, r.peak = max(r.anon, s.anon), max(r.peak, s.peak)
		}
		r.bytes = b.size(row.topic)
		t = append(t, r)
	}
	return t, nil
}

// collective is a collector with bench/config/collectives.yaml. The sink hears nothing of data for Kafka: then the items are the bytes that the broker has
// written.
func (o *options) collective(b *broker, receiver, exporter, topic, sampled, group string) *contender {
	c := collector(receiver, o.bin, "none", "bench/config/collectives")
	command := c.command
	c.reads = receiver == "nccl/gateway"
	c.command = func(d *duel, dir string, s *sink) (args, env []string, err error) {
		args, env, err = command(d, dir, s)
		env = append(env, "BENCH_KAFKA="+b.addr, "BENCH_RECEIVER="+receiver, "BENCH_EXPORTER="+exporter, "BENCH_TOPIC="+topic, "BENCH_GROUP="+group,
			"BENCH_SAMPLED="+sampled)
		if c.reads {
			env = append(env, "GOGC=200") // of gateways: docs/reference/scale.md
		}
		if exporter != "otlp_acked" {
			done, stop := make(chan struct{}), s.stop
			s.stop = func() { close(done); stop() }
			go func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(5 * time.Millisecond):
						s.items.Store(b.size(topic))
					}
				}
			}()
		}
		return args, env, err
	}
	return &c
}
