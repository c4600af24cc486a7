package trainlogreceiver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trainbridge/trainbridge/internal/secrets"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

const hubToken = "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"

// Texts of loggers beside the numbers: settings, environments and messages, flat, nested and as text.
func TestSecretsDoNotLeave(t *testing.T) {
	path := write(t, "x.log",
		`{"timestamp": "2026-06-12T10:30:00Z", "step": 1, "loss": 2.3, "api_key": "plain-key-1", "hub_token": "`+hubToken+`", "tokens_per_sec": 512, "eos_token": "</s>", "max_tokens": 4096}`,
		`{"timestamp": "2026-06-12T10:30:01Z", "step": 2, "loss": 2.2, "env": {"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG", "HOME": "/root"}, "db_password": "12345678", "note": "pushed with `+hubToken+`"}`,
		`{"timestamp": "2026-06-12T10:30:02Z", "step": 3, "loss": 2.1, "cfg": [{"wandb_api_key": "listed-key-2"}], "url": "https://me:hunter2@git.example/x", "authorization": "Basic dXNlcjpwYXNz"}`,
		`{"timestamp": "2026-06-12T10:30:03Z", "step": 4, "loss": 2.0, "`+hubToken+`": "a name"}`,
		`{'loss': 0.66, 'learning_rate': 3e-05, 'epoch': 1.0, 'hub_token': 'dict-token-3'}`,
	)
	r := filereceivertest.Secrets(t, func(c redact.Config) *filereceivertest.Result {
		return read(t, func(cfg *Config) { cfg.Redact = c }, path)
	}, 10, "plain-key-1", hubToken, "wJalrXUtnFEMI/K7MDENG", "listed-key-2", "hunter2", "dXNlcjpwYXNz", "dict-token-3", "12345678")
	first := r.All(spans.SpanStep)[0]
	for name, want := range map[string]string{"api_key": redact.Redacted, "hub_token": redact.Redacted, "eos_token": "</s>", "max_tokens": "4096"} {
		assert.Equal(t, want, attr(first, spans.AttrTrainFieldPrefix+name), name)
	}
	assert.Equal(t, "512", attr(first, spans.AttrTokenThroughput))
}

// Redacted texts are counted, and the samples of broken lines in the collector's own log have no secrets.
func TestRedactedIsCountedAndSamplesAreRedacted(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	set.Logger = zap.New(core)
	readWith(t, set, nil, write(t, "x.jsonl",
		`{"step": 1, "loss": 2.3, "api_key": "k1", "note": "`+hubToken+`"}`,
		`{"step": 2, "loss": 2.3, "api_key": "k2"}`,
		`{"step": 3, "api_key": "plain-key-1", "note": "`+strings.Repeat("x", 100)+`", "hub": "`+hubToken+`", "loss": `,
	))
	rejected := logs.FilterMessage("Lines cannot be read").All()
	require.Len(t, rejected, 1)
	sample, ok := rejected[0].ContextMap()["sample"].(string)
	require.True(t, ok)
	assert.Equal(t, `{"step": 3, "api_key": "[redacted]", "note": "`+strings.Repeat("x", 100)+`", "hub": "[redacted]", "loss": `, sample)
	m, err := tel.GetMetric("trainbridge.redacted")
	require.NoError(t, err)
	by := func(reason string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("receiver", set.ID.String()), attribute.String("reason", reason))}
	}
	metricdatatest.AssertEqual(t, metricdata.Sum[int64]{
		Temporality: metricdata.CumulativeTemporality, IsMonotonic: true, DataPoints: []metricdata.DataPoint[int64]{by("key", 2), by("value", 1)},
	}, m.Data.(metricdata.Sum[int64]), metricdatatest.IgnoreTimestamp())
}

// A line that the backend refuses is logged without its secrets, and is the refused line, not a neighbour in its message.
func TestSampleOfRefusedIsRedacted(t *testing.T) {
	const secret = "sk-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
	core, logs := observer.New(zap.WarnLevel)
	set := receivertest.NewNopSettings(metadata.Type)
	set.Logger = zap.New(core)
	tc, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		var r filereceivertest.Result
		if err := r.Traces.ConsumeTraces(t.Context(), td); err != nil || !slices.Contains(attrs(r.All(spans.SpanStep), spans.AttrIteration), "2") {
			return err
		}
		return consumererror.NewPermanent(status.Error(codes.InvalidArgument, "no"))
	})
	require.NoError(t, err)
	cfg := live(write(t, "x.jsonl",
		`{"step": 1, "loss": 2.3}`,
		`{"step": 2, "loss": 2.3, "api_key": "`+secret+`"}`,
		`{"step": 3, "loss": 2.3}`,
	))
	c, err := filereceiver.ReadAll(t.Context(), set, cfg, makeParts, func() time.Time { return filereceivertest.Written }, tc, nil)
	require.NoError(t, err)
	filereceivertest.Accounts(t, c)
	assert.EqualValues(t, 1, c.Refused)
	said := logs.FilterMessage("The next component refused records for good").All()
	require.Len(t, said, 1)
	assert.JSONEq(t, `{"step": 2, "loss": 2.3, "api_key": "[redacted]"}`, fmt.Sprint(said[0].ContextMap()["sample"]))
	assert.NotContains(t, fmt.Sprint(said[0].ContextMap()), secret)
}

// The example of each kind of secret stays out of spans, points, the collector's own log and the dead letters, where the refused line is still a record.
func TestEachKindOfSecretStays(t *testing.T) {
	type letter struct {
		Step int               `json:"step"`
		Note string            `json:"note"`
		Cfg  map[string]string `json:"cfg"`
		PIN  any               `json:"account_password"`
	}
	for _, k := range secrets.Kinds() {
		for _, e := range k.Examples {
			core, logs := observer.New(zap.InfoLevel)
			set := receivertest.NewNopSettings(metadata.Type)
			set.Logger = zap.New(core)
			text, err := json.Marshal(e.Text)
			require.NoError(t, err)
			path := write(t, "x.jsonl",
				`{"step": 1, "loss": 2.3}`,
				fmt.Sprintf(`{"step": 2, "loss": 2.3, "note": %s, "cfg": {"cmd": %s}, "account_password": 87654321}`, text, text),
				`{"step": 3, "loss": 2.3}`,
				fmt.Sprintf(`{"step": 4, "note": %s, "loss": `, text),
			)
			var out filereceivertest.Result
			refuses := false
			tc, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
				var r filereceivertest.Result
				if err := r.Traces.ConsumeTraces(t.Context(), td); err != nil || refuses && slices.Contains(attrs(r.All(spans.SpanStep), spans.AttrIteration), "2") {
					return cmp.Or(err, consumererror.NewPermanent(status.Error(codes.InvalidArgument, "no")))
				}
				return out.Traces.ConsumeTraces(t.Context(), td)
			})
			require.NoError(t, err)
			for _, refuses = range []bool{false, true} {
				cfg := live(path)
				cfg.DeadLetter = filepath.Join(t.TempDir(), "refused.jsonl")
				_, err = filereceiver.ReadAll(t.Context(), set, cfg, makeParts, func() time.Time { return filereceivertest.Written }, tc, &out.Metrics)
				require.NoError(t, err)
				if !refuses {
					continue
				}
				line, err := os.ReadFile(cfg.DeadLetter)
				require.NoError(t, err)
				assert.NotContains(t, string(line), e.Secret, k.Name)
				assert.NotContains(t, string(line), "87654321")
				var kept letter
				require.NoError(t, json.Unmarshal(line, &kept), "%s: %s", k.Name, line)
				assert.Equal(t, 2, kept.Step)
				assert.Equal(t, redact.Redacted, kept.PIN)
				assert.Contains(t, kept.Note, redact.Redacted, k.Name)
			}
			said := 0
			for _, entry := range logs.All() {
				line := fmt.Sprint(entry.Message, entry.ContextMap())
				assert.NotContains(t, line, e.Secret, k.Name)
				said += strings.Count(line, redact.Redacted)
			}
			assert.Positive(t, said, k.Name)
			assert.NotContains(t, out.Text(t), e.Secret, k.Name)
			assert.Contains(t, out.Text(t), redact.Redacted, k.Name)
		}
	}
}

func TestHostsAreHashed(t *testing.T) {
	path := write(t, "x.log", `(TaskRunner pid=42, ip=10.1.2.3) {"step": 1, "loss": 2.3, "hostname": "node-17", "note": "peer 10.1.2.3 is slow"}`+"\n"+
		`(TaskRunner pid=42, ip=10.1.2.3) {"step": 2, "loss": 2.2}`)
	r := filereceivertest.Secrets(t, func(c redact.Config) *filereceivertest.Result {
		c.HashHosts, c.HashKey = c.Enabled, "a key of 16 bytes"
		return read(t, func(cfg *Config) { cfg.Redact = c }, path)
	}, 0, "10.1.2.3", "node-17")
	hosts := map[string]bool{} // of the record, and of Ray where the record has none
	for _, td := range r.Traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			hosts[spans.AttrText(rs.Resource().Attributes(), spans.AttrHostName)] = true
		}
	}
	assert.Len(t, hosts, 3, "and none, of the run")
	delete(hosts, "")
	for host := range hosts {
		assert.Regexp(t, "^host-[0-9a-f]{16}$", host)
	}
	note := attr(r.All(spans.SpanStep)[0], spans.AttrTrainFieldPrefix+"note")
	assert.True(t, hosts[strings.TrimSuffix(strings.TrimPrefix(note, "peer "), " is slow")], note)
}

// Names, labels and resources have no invisible character, and no text has NUL: checked by read.
func TestHiddenCharacters(t *testing.T) {
	r := read(t, nil, write(t, "x.log",
		"(TaskRunner pid=42, ip=10.1\u202e.2) "+`{"step": 1, "loss": 2.3, "a\u0000b\u202ec": "x\u0000y\tz", "`+"rtl\u2067\u200b\ufeff\u0085"+`": 2, "nested": {"k\u200d": "v"}}`,
		"step:2 - actor/pg_loss:-1.2e-05 - timing_s/g\u202een:60.5 - timing_s/step:92.4 - perf/throughput:3283.32",
		"[2026-06-12 10:30:00,720] [INFO] [logging.py:107:log_dist] [Rank 0] time (ms) | fwd\x1b\x01_micro\u200bstep: 12.34 | bwd_microstep: 25.10",
		"[2026-06-12 10:30:04] iteration        2/     100 | elapsed time per iteration (ms): 1510.4 | my\x00 loss: 9.8 | lm loss: 9.87 |",
	))
	assert.Contains(t, attrs(r.All(spans.SpanStep), spans.AttrTrainFieldPrefix+"a\uFFFDb\uFFFDc"), "x\uFFFDy\tz")
	assert.Len(t, r.All("g\uFFFDen"), 1)
}
