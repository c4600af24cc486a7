package trainlogreceiver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestConfig(t *testing.T) {
	cfg := filereceivertest.Configs(t, NewFactory(), map[string]string{
		"train_log":              "",
		"train_log/all":          "",
		"train_log/zone":         "'timezone': unknown time zone Mars/Olympus: use an IANA name",
		"train_log/include":      "'include'",
		"train_log/dead_letter":  `'dead_letter': "/logs/refused.log" is read itself`,
		"train_log/format":       "'format' must be auto, jsonl, openrlhf, slime, hf, ",
		"train_log/metric":       "'fields::reward/mean::metric' must be the name of a metric",
		"train_log/nothing":      "'fields::reward/mean::metric' must be the name of a metric",
		"train_log/unit":         "'fields::my_loss::unit' must be left out",
		"train_log/scale":        "'fields::x::scale' must be a finite number",
		"train_log/id":           "",
		"train_log/no_id":        "'trace_id_field' must be the name of a field",
		"train_log/id_twice":     "'trace_id_field' must be the name of a field, and not one of 'fields'",
		"train_log/redact":       "",
		"train_log/redact_off":   "",
		"train_log/redact_keys":  "'redact::keys::0' must be a regular expression",
		"train_log/redact_hosts": "'redact::hash_key' must have 16 bytes or more",
	})["train_log/all"].(*Config)
	assert.Equal(t, "sft", cfg.ServiceName)
	assert.Equal(t, "sft-17", cfg.RunID)
	assert.Equal(t, "Asia/Shanghai", cfg.Timezone)
	assert.Equal(t, "hf", cfg.Format)
	assert.Equal(t, FieldConfig{Metric: "dataloader.wait", Unit: "s", Scale: 0.001}, cfg.Fields["wait_ms"])
}

// The Trainer's state is a document wherever the globs match.
func TestDocuments(t *testing.T) {
	files := []string{"/out/trainer_state.json", "/out/checkpoint-500/trainer_state.json", "out/trainer_state.json", "trainer_state.json", "/out/a.jsonl", "/out/old_trainer_state.json"}
	for include, want := range map[string][]int{
		"/out/**":                        {0, 1},
		"/out/**/*.json*":                {0, 1},
		"/out/**/{*.log,trainer_*.json}": {0, 1},
		"/out/trainer_state.json":        {0},
		"./out//trainer_state.json":      {2},
		"trainer_state.json":             {3},
		"/out/*.jsonl":                   nil,
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Include = []string{include}
		var got []int
		for i, path := range files {
			if cfg.Includes(path) && isState(path) {
				got = append(got, i)
			}
		}
		assert.Equal(t, want, got, include)
	}
}

// sinks take the receiver's output, one channel a signal.
type sinks struct {
	traces  chan ptrace.Traces
	metrics chan pmetric.Metrics
}

// started starts a receiver for both signals.
func started(t *testing.T, cfg *Config) sinks {
	t.Helper()
	s := sinks{make(chan ptrace.Traces, 100), make(chan pmetric.Metrics, 100)}
	tc, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error { s.traces <- td; return nil })
	require.NoError(t, err)
	mc, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error { s.metrics <- md; return nil })
	require.NoError(t, err)
	ctx := context.Background()
	set := receivertest.NewNopSettings(metadata.Type)
	f := NewFactory()
	tr, err := f.CreateTraces(ctx, set, cfg, tc)
	require.NoError(t, err)
	mr, err := f.CreateMetrics(ctx, set, cfg, mc)
	require.NoError(t, err)
	require.Same(t, tr, mr)
	for _, r := range []component.Component{tr, mr} {
		require.NoError(t, r.Start(ctx, componenttest.NewNopHost()))
	}
	t.Cleanup(func() {
		for _, r := range []component.Component{tr, mr} {
			assert.NoError(t, r.Shutdown(ctx))
		}
	})
	return s
}

// next returns the next n steps, from any number of batches.
func (s sinks) next(t *testing.T, n int) []ptrace.Span {
	t.Helper()
	b := &filereceivertest.Result{}
	for {
		if got := b.All(spans.SpanStep); len(got) >= n {
			return got
		}
		require.NoError(t, b.Traces.ConsumeTraces(context.Background(), <-s.traces))
	}
}

func live(path string) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Include = []string{path}
	cfg.RunID = "run"
	cfg.PollInterval = 10 * time.Millisecond
	return cfg
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// A log grows, is truncated by the job's restart (verl reopens its file), and grows again.
func TestLive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	s := started(t, live(path))
	appendTo(t, path, `{"step": 1, "loss": 2.5}`+"\n"+`{"step": 2, "lo`)
	one := s.next(t, 1)
	assert.Equal(t, []string{"1"}, attrs(one, spans.AttrIteration))
	assert.Equal(t, 2, (<-s.metrics).DataPointCount(), "iteration and loss")
	appendTo(t, path, `ss": 2.25}`+"\n")
	two := s.next(t, 1)
	assert.Equal(t, []string{"2.25"}, attrs(two, spans.AttrLoss))
	assert.Equal(t, string(spans.TimeObserved), attr(two[0], spans.AttrTimeSource))
	require.NoError(t, os.WriteFile(path, []byte(`{"step": 1, "loss": 3.5}`+"\n"), 0o600))
	again := s.next(t, 1)
	assert.Equal(t, []string{"3.5"}, attrs(again, spans.AttrLoss))
	assert.Equal(t, one[0].TraceID(), again[0].TraceID(), "a step's trace is the same")
	assert.NotEqual(t, one[0].SpanID(), again[0].SpanID())
}

// trainer_state.json is rewritten at each checkpoint, with all rows so far: each row counts once.
func TestStateIsRewritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trainer_state.json")
	s := started(t, live(filepath.Join(dir, "**")))
	replace := func(text string) {
		tmp := filepath.Join(t.TempDir(), "new")
		require.NoError(t, os.WriteFile(tmp, []byte(text), 0o600))
		require.NoError(t, os.Rename(tmp, path))
	}
	replace(`{"log_history": [{"step": 10, "loss": 2.5}, {"step": 20, "loss": 2.25}], "max_steps": 30}`)
	first := s.next(t, 2)
	assert.Equal(t, []string{"10", "20"}, attrs(first, spans.AttrIteration))
	replace(`{"log_history": [{"step": 10, "loss": 2.5}, {"step": 20, "loss": 2.25}, {"step": 30, "loss": 2}], "max_steps": 30}`)
	then := s.next(t, 1)
	assert.Equal(t, []string{"30"}, attrs(then, spans.AttrIteration))
	assert.Equal(t, []string{"10"}, attrs(then, spans.AttrStepsCovered))
}

// The same state in the directories of two checkpoints.
func TestStatesOfCheckpoints(t *testing.T) {
	dir := t.TempDir()
	rows := `{"step": 10, "loss": 2.5}, {"step": 20, "loss": 2.25}`
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "checkpoint-20"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "checkpoint-30"), 0o700))
	filereceivertest.Put(t, filepath.Join(dir, "checkpoint-20"), "trainer_state.json", `{"log_history": [`+rows+`]}`)
	filereceivertest.Put(t, filepath.Join(dir, "checkpoint-30"), "trainer_state.json", `{"log_history": [`+rows+`, {"step": 30, "loss": 2}]}`)
	tt := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, tt.Shutdown(context.Background())) })
	b := readWith(t, metadatatest.NewSettings(tt), nil, filepath.Join(dir, "**", "trainer_state.json"))
	assert.ElementsMatch(t, []string{"10", "20", "30"}, attrs(b.All(spans.SpanStep), spans.AttrIteration))
	metadatatest.AssertEqualTrainbridgeTrainLogDuplicates(t, tt, []metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())
}

// A consumer that fails for a while gets the same spans again.
func TestRetry(t *testing.T) {
	failures := 3
	var sink consumertest.TracesSink
	tc, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		if failures--; failures >= 0 {
			return errors.New("down")
		}
		return sink.ConsumeTraces(ctx, td)
	})
	require.NoError(t, err)
	cfg := live(fixture(t, "jsonl.log"))
	c, err := filereceiver.ReadAll(
		context.Background(), receivertest.NewNopSettings(metadata.Type), cfg, makeParts, func() time.Time { return filereceivertest.Written }, tc, nil,
	)
	require.NoError(t, err)
	filereceivertest.Accounts(t, c)
	assert.Equal(t, int64(5), c.Sent)
	assert.Equal(t, 7, sink.SpanCount(), "5 records, a line about saving, and the run")
}
