package nccl

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

func newPartialsCommand() *cobra.Command {
	opt := DefaultPartialsOptions()
	var when writer.TimeFlags
	cmd := &cobra.Command{
		Use:   "partials",
		Short: "Generate what the collectors of many GPU hosts send about collectives, to load gateways",
		Long: `Generates what collectors with "nccl: {join: remote}" send from the hosts of a job, without logs: packed records of collectives, a message for each host,
communicator and --interval, to Kafka or into a file. The ground truth, one JSON line per collective, goes to --truth.

Layouts, each with ten operations a step:
  3d    TP × DP × PP: six AllReduces in a TP group of neighbours, Recv and Send between stages, ReduceScatter and AllGather in DP groups
  hsdp  six AllGathers and three ReduceScatters in a shard of neighbours, an AllReduce with its replicas
  fsdp  the same in one communicator of all GPUs

A file has messages as a collector's file exporter writes them with "format: proto": the length in four bytes, the big end first, and OTLP.`,
		Example: `  gen partials --gpus 10000 --rate 100 --duration 60s --kafka kafka:9092 --live --slow-rank 1234
  gen partials --gpus 10000 --layout fsdp --out flat.bin`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := when.Parse(&opt.Start, nil); err != nil {
				return err
			}
			begun := time.Now()
			run, err := GeneratePartials(cmd.Context(), opt, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			took := time.Since(begun).Seconds()
			cmd.PrintErrf("sent %d records of %d ranks in %d messages, %.1f bytes a record: %d collectives of %d communicators in %d steps; %.0f records/s\n",
				run.Records, run.Ranks, run.Messages, float64(run.Bytes)/float64(max(1, run.Records)), run.Collectives, run.Communicators, run.Steps,
				float64(run.Records)/took)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Layout, "layout", opt.Layout, "see above")
	f.IntVar(&opt.GPUs, "gpus", opt.GPUs, "GPUs, eight on a host")
	f.IntVar(&opt.TP, "tp", opt.TP, "3d: ranks of a TP group")
	f.IntVar(&opt.PP, "pp", opt.PP, "3d: stages of the pipeline")
	f.IntVar(&opt.Shard, "shard", opt.Shard, "hsdp: ranks that share the parameters")
	f.Float64Var(&opt.Rate, "rate", opt.Rate, "records of a GPU per second")
	f.DurationVar(&opt.Duration, "duration", opt.Duration, "how long the job runs, by its own clock")
	f.DurationVar(&opt.Interval, "interval", opt.Interval, "how long a host collects records for a message")
	f.BoolVar(&opt.Live, "live", false, "sent in real time; otherwise as fast as it goes")
	f.StringVar(&opt.Run, "run", opt.Run, "ml.run.id")
	f.StringSliceVar(&opt.Kafka, "kafka", nil, "brokers, host:port, comma-separated, without TLS")
	f.StringVar(&opt.Topic, "topic", opt.Topic, "topic")
	f.StringVar(&opt.Out, "out", opt.Out, "file, where there is no --kafka; -: standard output")
	f.StringVar(&opt.Truth, "truth", "", "file for the ground truth; none: no truth (default: beside --out; with --kafka or a pipe none)")
	f.Uint64Var(&opt.Seed, "seed", opt.Seed, "same seed, flags and --start: same messages")
	when.AddStart(cmd)
	f.IntVar(&opt.SlowRank, "slow-rank", -1, "rank that computes longer; -1: none")
	f.Float64Var(&opt.SlowBy, "slow-by", opt.SlowBy, "by how much, as a fraction")
	f.IntVar(&opt.SlowFrom, "slow-from", 0, "from which step on")
	f.IntVar(&opt.Missing, "missing-rank", -1, "rank whose records stop; -1: none")
	f.IntVar(&opt.MissingAt, "missing-from", 0, "from which step on")
	f.IntVar(&opt.AwayHost, "away-host", -1, "host whose collector is cut off, and sends all later; -1: none")
	f.DurationVar(&opt.AwayFrom, "away-from", 0, "from when on, by the clock of the job")
	f.DurationVar(&opt.AwayFor, "away-for", opt.AwayFor, "for how long")
	return cmd
}

func (o *PartialsOptions) validate() error {
	var errs writer.Complaints
	bad := errs.Bad
	errs.OneOf("layout", o.Layout, Layout3D, LayoutHSDP, LayoutFSDP)
	if o.GPUs < 2 || o.GPUs > 1<<20 {
		bad("--gpus %d: use 2 to %d", o.GPUs, 1<<20)
	}
	if o.TP < 1 || o.PP < 1 || o.Shard < 1 {
		bad("--tp, --pp and --shard count from 1")
	} else if o.Layout == Layout3D && o.GPUs%(o.TP*o.PP) != 0 {
		bad("--gpus %d: use a multiple of --tp × --pp, %d", o.GPUs, o.TP*o.PP)
	} else if o.Layout == LayoutHSDP && o.GPUs%o.Shard != 0 {
		bad("--gpus %d: use a multiple of --shard, %d", o.GPUs, o.Shard)
	}
	if o.Layout == LayoutFSDP && o.GPUs > collectives.MaxRank+1 {
		bad("--gpus %d in one communicator: more than %d ranks are not joined; use --layout hsdp", o.GPUs, collectives.MaxRank+1)
	}
	if !(o.Rate > 0 && o.Rate <= 1e5) {
		bad("--rate %v: use more than 0, to 1e5", o.Rate)
	}
	errs.Positive("duration", o.Duration)
	errs.Positive("interval", o.Interval)
	if o.Run == "" {
		bad("--run is empty: gateways join by it")
	}
	if o.Live && !o.Start.IsZero() {
		bad("--live and --start: what is sent live begins now, drop one")
	}
	for _, f := range []struct {
		flag     string
		at, most int
	}{{"slow-rank", o.SlowRank, o.GPUs}, {"missing-rank", o.Missing, o.GPUs}, {"away-host", o.AwayHost, (o.GPUs + gpusOfHost - 1) / gpusOfHost}} {
		if f.at < -1 || f.at >= f.most {
			bad("--%s %d: use 0 to %d, or -1 for none", f.flag, f.at, f.most-1)
		}
	}
	if !(o.SlowBy >= 0 && o.SlowBy <= 100) {
		bad("--slow-by %v: use 0 to 100 (0.05: 5 %% more time)", o.SlowBy)
	}
	if o.SlowFrom < 0 || o.MissingAt < 0 || o.AwayFrom < 0 || o.AwayFor < 0 {
		bad("--slow-from, --missing-from, --away-from and --away-for count from 0")
	}
	return errors.Join(errs...)
}

func (o *PartialsOptions) truthPath() string {
	if len(o.Kafka) > 0 {
		return writer.TruthPath("-", o.Truth)
	}
	return writer.TruthPath(o.Out, o.Truth)
}

// open opens the target of the messages: send takes a message, finish waits for all sends.
func (o *PartialsOptions) open(ctx context.Context, stdout io.Writer) (send func(message) error, finish func() error, err error) {
	if len(o.Kafka) > 0 {
		return o.openKafka(ctx)
	}
	out, closed := stdout, func() error { return nil }
	if o.Out != "-" {
		begin := outfile.Create
		if o.Live {
			begin = outfile.Grow
		}
		f, err := begin(o.Out)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: --out: %w", logfile.ErrOptions, err)
		}
		out, closed = f, f.Commit
	}
	w := bufio.NewWriterSize(out, 1<<20)
	send = func(m message) error {
		err := binary.Write(w, binary.BigEndian, uint32(len(m.value)))
		if err == nil {
			_, err = w.Write(m.value)
		}
		if err == nil && o.Live {
			err = w.Flush()
		}
		return err
	}
	return send, func() error {
		if err := w.Flush(); err != nil {
			return err
		}
		return closed()
	}, nil
}

const (
	// reach is how long brokers may take to answer at the start, and deliver how long for a message.
	reach, deliver = 10 * time.Second, time.Minute
	// buffered bounds the bytes on the way.
	buffered = 64 << 20
)

// openKafka sends as agents do: with acknowledgement by all in-sync replicas, and zstd.
func (o *PartialsOptions) openKafka(ctx context.Context) (send func(message) error, finish func() error, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(o.Kafka...), kgo.DefaultProduceTopic(o.Topic), kgo.ProducerBatchCompression(kgo.ZstdCompression()),
		kgo.AllowAutoTopicCreation(), kgo.MaxBufferedBytes(buffered), kgo.RecordDeliveryTimeout(deliver))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: --kafka: %w", logfile.ErrOptions, err)
	}
	limited, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	if err := client.Ping(limited); err != nil {
		client.Close()
		return nil, nil, fmt.Errorf("--kafka %s: no broker answers (%w): is it running, and may it be reached from here?", strings.Join(o.Kafka, ","), err)
	}
	var failed atomic.Pointer[error]
	ctx = context.WithoutCancel(ctx) // all messages made are sent
	send = func(m message) error {
		client.Produce(ctx, &kgo.Record{Key: m.key, Value: m.value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
		if err := failed.Load(); err != nil {
			return fmt.Errorf("topic %s does not take a message: %w", o.Topic, *err)
		}
		return nil
	}
	finish = func() error {
		defer client.Close()
		if err := client.Flush(ctx); err != nil {
			return err
		}
		if err := failed.Load(); err != nil {
			return fmt.Errorf("topic %s does not take a message: %w", o.Topic, *err)
		}
		return nil
	}
	return send, finish, nil
}
