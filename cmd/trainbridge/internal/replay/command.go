// Package replay is `trainbridge replay`: finished logs are sent to Jaeger or Tempo and to Prometheus, with their own times, as if read live.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/exporters/otlpackedexporter"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/refusal"
)

// options are the flags of `trainbridge replay`.
type options struct {
	endpoint, metrics string // where to send traces and metrics; "": not
	reading.Flags
}

// NewCommand is `trainbridge replay`.
func NewCommand() *cobra.Command {
	var opt options
	cmd := &cobra.Command{
		Use:   "replay PATH…",
		Short: "Send finished logs to Jaeger or Tempo and to Prometheus, with their own times",
		Long: `Reads logs from their first line to their last and sends what they tell with the times that stand in them: traces over OTLP, metrics by
Prometheus' remote write. Sent again, the same logs give the same traces and samples.

Servers take old data only where they are set to: docs/reference/replay.md has the settings of Tempo and Prometheus.`,
		Example: `  trainbridge replay /data/job --endpoint 127.0.0.1:4317
  trainbridge replay /data/job --endpoint 127.0.0.1:4317 --metrics http://127.0.0.1:9090`,
		SilenceUsage: true,
		Args:         reading.Paths,
		RunE:         func(cmd *cobra.Command, args []string) error { return run(cmd, args, opt) },
	}
	f := cmd.Flags()
	f.StringVar(&opt.endpoint, "endpoint", "", "`HOST:PORT` of an OTLP/gRPC server for the traces; https://HOST:PORT for one with TLS")
	f.StringVar(&opt.metrics, "metrics", "", "`URL` of a Prometheus, or of another server's remote write, for the metrics")
	opt.Add(cmd)
	return cmd
}

// run reads the logs of paths and sends what they say. Servers are tried before the reading. A server that does not accept the data within patience ends the
// reading, and so does one that refuses metrics; spans refused for good are left out, and are an error at the end (report).
func run(cmd *cobra.Command, paths []string, opt options) (err error) {
	if opt.endpoint == "" && opt.metrics == "" {
		return reading.Errorf(cmd, "say where to send: --endpoint HOST:PORT for traces, --metrics URL for metrics, or both")
	}
	how, err := opt.Options(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	s := &sending{cancel: cancel, first: ^pcommon.Timestamp(0)}
	if opt.metrics != "" {
		to, err := remoteURL(opt.metrics)
		if err != nil {
			return reading.Errorf(cmd, "--metrics %q: %w", opt.metrics, err)
		}
		s.remote, s.stated, s.history = newRemote(to), newTable(), newHistory(openIntervals)
		if err := s.remote.check(ctx); err != nil {
			return reading.Errorf(cmd, "--metrics %s: %w", to.Redacted(), err)
		}
	}
	if opt.endpoint != "" {
		s.traces, err = connect(ctx, opt.endpoint)
		if err != nil {
			return reading.Errorf(cmd, "--endpoint %s: %w", opt.endpoint, err)
		}
		defer func() { err = errors.Join(err, s.traces.Shutdown(context.WithoutCancel(ctx))) }()
	}
	in, err := reading.Open(cmd, paths)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = reading.Read(ctx, cmd, in, how, s.sink())
	if failed := context.Cause(ctx); failed != nil {
		return fmt.Errorf("replay: %w", failed)
	}
	if err != nil {
		return err
	}
	if err := s.finish(ctx); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return s.report(cmd.OutOrStdout(), opt)
}

// remoteURL is the URL of Prometheus' remote write, from a URL or only an address.
func remoteURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("write http://HOST:PORT, or the whole URL of a remote write")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/api/v1/write"
	}
	return u, nil
}

// connect makes and starts the exporter of spans to an OTLP/gRPC server, with TLS for https://. An absent server is an error at once, and not only after the
// exporter's patience. To this host itself spans are not compressed.
func connect(ctx context.Context, endpoint string) (exporter.Traces, error) {
	host := endpoint
	if _, rest, ok := strings.Cut(endpoint, "://"); ok {
		host = rest
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	_ = conn.Close()
	compression := "gzip"
	if addr, ok := conn.RemoteAddr().(*net.TCPAddr); ok && addr.IP.IsLoopback() {
		compression = "none"
	}
	f := otlpackedexporter.NewFactory()
	cfg := f.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(map[string]any{
		"endpoint": endpoint, "compression": compression, "tls": map[string]any{"insecure": true}, // https:// has TLS all the same
		"retry_on_failure": map[string]any{"max_elapsed_time": patience.String()},
	}).Unmarshal(cfg); err != nil {
		return nil, err
	}
	if err := confmap.Validate(cfg); err != nil {
		return nil, err
	}
	set := exporter.Settings{ID: component.NewID(f.Type()), TelemetrySettings: telemetry(), BuildInfo: component.NewDefaultBuildInfo()}
	traces, err := f.CreateTraces(ctx, set, cfg)
	if err != nil {
		return nil, err
	}
	return traces, traces.Start(ctx, noExtensions{})
}

// noExtensions has no extensions.
type noExtensions struct{}

func (noExtensions) GetExtensions() map[component.ID]component.Component { return nil }

// telemetry is the telemetry of components: no log, no traces and no metrics of their own.
func telemetry() component.TelemetrySettings {
	return component.TelemetrySettings{
		Logger: zap.NewNop(), TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: noopmetric.NewMeterProvider(), Resource: pcommon.NewResource(),
	}
}

// sending sends what the logs say to the targets, while the logs are read. Its consumers are called by several goroutines at once.
type sending struct {
	cancel context.CancelCauseFunc // ends the reading: a server does not accept the data

	traces  exporter.Traces // nil: not wanted
	history *history        // what is counted over spans; nil: no metrics are wanted
	remote  *remote         // the server of metrics; nil as above; used under mu while logs are read

	mu          sync.Mutex        // guards the fields below
	stated      *table            // values of logs, not sent yet
	spans       int64             // accepted ones
	first, last pcommon.Timestamp // of the accepted spans, but for made-up times
	refused     error             // why some were not accepted, the last time
}

// sink takes the spans, and the values of logs if metrics are wanted.
func (s *sending) sink() offline.Sink {
	var to offline.Sink
	to.Traces, _ = consumer.NewTraces(s.consumeTraces, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	if s.remote != nil {
		to.Metrics, _ = consumer.NewMetrics(s.consumeMetrics)
	}
	return to
}

// consumeTraces sends spans, then has those accepted counted for the metrics (history). Spans refused for good are left out of both; any other error ends the
// command. Of a batch that is accepted in part the server says only how many spans it rejected, not which: the metrics have all.
func (s *sending) consumeTraces(ctx context.Context, td ptrace.Traces) error {
	first, last := extent(td)
	n := int64(td.SpanCount())
	var err error
	if s.traces != nil {
		err = s.traces.ConsumeTraces(ctx, td)
		if err != nil && !consumererror.IsPermanent(err) {
			s.cancel(fmt.Errorf("the traces are not accepted: %w", err))
			return err
		}
		if partial, ok := refusal.AsPartial(err); ok {
			n -= partial.Rejected
		} else if err != nil {
			n = 0
		}
		s.mu.Lock()
		if err != nil {
			s.refused = err
		}
		if n > 0 {
			s.spans += n
			s.first, s.last = min(s.first, first), max(s.last, last)
		}
		s.mu.Unlock()
	}
	if s.history == nil || n <= 0 {
		return err
	}
	if failed := s.history.take(ctx, td); failed != nil {
		s.cancel(failed)
		return failed
	}
	return err
}

// extent is the first start and the last end of the spans whose times are not made up; without any, first is the largest time and last is 0.
func extent(td ptrace.Traces) (first, last pcommon.Timestamp) {
	first = ^pcommon.Timestamp(0)
	for _, rs := range td.ResourceSpans().All() {
		made := isMadeUp(rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if !made && !isMadeUp(s.Attributes()) {
					first, last = min(first, s.StartTimestamp()), max(last, s.EndTimestamp())
				}
			}
		}
	}
	return first, last
}

// consumeMetrics takes values of logs, each a sample at its own time, and sends them whenever a request is full.
func (s *sending) consumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stated.add(md, func(at pcommon.Timestamp) int64 { return int64(at) / int64(time.Millisecond) })
	if s.stated.samples < maxSamples {
		return nil
	}
	return s.flush(ctx)
}

// flush sends the values taken so far. Called under mu, or after the reading.
func (s *sending) flush(ctx context.Context) error {
	all := s.stated.take()
	for _, x := range all {
		x.adds = false // even a counter of a log has the whole value in each sample: the later one counts, no sum
		x.sort()
	}
	if err := s.remote.put(ctx, all); err != nil {
		s.cancel(err)
		return err
	}
	return nil
}

// report prints the number of spans and samples sent, and of those left out. The error says that a server refused some.
func (s *sending) report(w io.Writer, opt options) error {
	const layout = "2006-01-02 15:04:05"
	var errs []error
	if s.traces != nil && s.spans > 0 {
		_, _ = fmt.Fprintf(w, "Sent %d spans to %s, of %s to %s UTC.\n", s.spans, opt.endpoint, s.first.AsTime().Format(layout), s.last.AsTime().Format(layout))
	}
	if s.refused != nil {
		errs = append(errs, fmt.Errorf("replay: --endpoint %s refused some spans for good: %w", opt.endpoint, s.refused))
	}
	if s.remote != nil {
		_, _ = fmt.Fprintf(w, "Sent %d samples to %s: what logs state at its own times, and what is counted over spans every %s.\n",
			s.remote.sent, s.remote.url.Redacted(), human.Seconds(interval.Seconds()))
		if n := s.history.synthetic; n > 0 {
			_, _ = fmt.Fprintf(w, "Not in metrics: %d spans of logs without a clock, whose times are made up.\n", n)
		}
		if n := s.remote.there; n > 0 {
			_, _ = fmt.Fprintf(w, "Of %d more there were samples of the same time with another value, which are kept.\n", n)
		}
	}
	return errors.Join(errs...)
}

// finish sends the rest of the metrics after the reading: values of logs, and all that was counted over spans.
func (s *sending) finish(ctx context.Context) error {
	if s.remote == nil {
		return nil
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	if err := s.history.each(ctx, func(x *series) error { return s.remote.put(ctx, []*series{x}) }); err != nil {
		return err
	}
	return s.remote.flush(ctx)
}
