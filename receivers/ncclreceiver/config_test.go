package ncclreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
)

// errorsOf has the error of each configuration of testdata/config.yaml.
var errorsOf = map[string]string{
	"nccl":         "",
	"nccl/all":     "",
	"nccl/include": "'include'",
	"nccl/zone":    "'timezone': unknown time zone Mars/Olympus: use an IANA name",
	"nccl/format": "'format' must be one of auto, nccl_inspector, nccl_profiler, flight_recorder, vccl_json, vccl_csv, vccl_flow, vccl_packed, " +
		"vccl_mean, vccl_text",
	"nccl/rank":         "'ranks' must be 0 to 65535, such as [0, 1, 2, 3]",
	"nccl/large_rank":   "'ranks' must be 0 to 65535",
	"nccl/min":          "'min_size' and 'max_size' must not be negative, and 'max_size' not below 'min_size': leave one out for no bound",
	"nccl/max":          "'min_size' and 'max_size' must not be negative",
	"nccl/rate":         "'sample_rate' must be 0 to 1, such as 0.1",
	"nccl/no_rate":      "'sample_rate' must be 0 to 1",
	"nccl/window":       "'window_size' must be 10 to 512, 50 by default",
	"nccl/large_window": "'window_size' must be 10 to 512",
	"nccl/threshold":    "'anomaly_threshold' must be greater than zero: standard deviations, 3.5 by default",
	"nccl/no_threshold": "'anomaly_threshold' must be greater than zero",
	"nccl/hang":         "'hang_timeout' must be greater than zero, such as 5m",
	"nccl/state":        "'max_state_bytes' must be at least 1048576",
	"nccl/operation":    "'operations' has an empty name: list operations such as [allreduce, broadcast]",
	"nccl/several":      "'format' must be one of",
	"nccl/join":         "'join' must be local or remote: local joins the ranks' records here",
	"nccl/remote":       "",
	"nccl/remote_rate":  "with 'join: remote' nothing is joined here: 'sample_rate', ",

	"nccl/kafka":            "",
	"nccl/kafka_all":        "",
	"nccl/kafka_files":      "'kafka' is read in place of files: leave out 'include', 'include_by_content' and 'document', or make two receivers of it",
	"nccl/kafka_remote":     "'kafka' is where the records of other collectors are joined: leave out 'join: remote'",
	"nccl/kafka_topic":      "'kafka::topic' must name a topic, such as otlp_nccl",
	"nccl/kafka_group":      "'kafka::group_id' must name a consumer group",
	"nccl/kafka_look_back":  "'kafka::look_back' must not be negative",
	"nccl/kafka_autocommit": "'kafka::autocommit::enable' must be true, and 'kafka::autocommit::interval' above zero",
	"nccl/kafka_brokers":    "brokers must be specified",
	"nccl/kafka_rank":       "'ranks' must be 0 to 65535",

	"nccl/ras":          "",
	"nccl/ras_all":      "",
	"nccl/ras_kafka":    "",
	"nccl/ras_endpoint": "'ras::endpoint' must be host:port, such as localhost:28028: what NCCL_RAS_ADDR says in the job",
	"nccl/ras_timeout":  "'ras::timeout' must be at least 11s, 20s by default",
	"nccl/ras_interval": "'ras::interval' must not be shorter than 'ras::timeout': 60s by default",
}

func TestConfig(t *testing.T) {
	all := filereceivertest.Configs(t, NewFactory(), errorsOf)
	want := createDefaultConfig().(*Config)
	want.Include = []string{"logs/nccl/*"}
	assert.Equal(t, want, all["nccl"])
	// The defaults, as in the documentation.
	assert.Equal(t, "nccl", want.ServiceName)
	assert.Equal(t, "local", want.Join)
	assert.Equal(t, "auto", want.Format)
	assert.InDelta(t, 1, want.SampleRate, 0)
	assert.Equal(t, 50, want.WindowSize)
	assert.True(t, want.AnomalyDetection)
	assert.InDelta(t, 3.5, want.AnomalyThreshold, 0)
	assert.Equal(t, 5*time.Minute, want.HangTimeout)
	assert.False(t, want.CorrectClock)
	assert.EqualValues(t, 64<<20, want.MaxStateBytes)

	want.ServiceName, want.RunID, want.Timezone = "pretrain", "pretrain-17", "Asia/Shanghai"
	want.Format, want.Operations, want.Ranks, want.MinSize, want.MaxSize = "vccl_json", []string{"allreduce", "ncclAllGather"}, []int32{0, 8}, 1024, 1024
	want.SampleRate, want.WindowSize, want.AnomalyDetection, want.AnomalyThreshold = 0.25, 100, false, 2
	want.HangTimeout, want.CorrectClock, want.MaxStateBytes = 90*time.Second, true, 1<<20
	assert.Equal(t, want, all["nccl/all"])

	// Records of other collectors.
	kafka := all["nccl/kafka"].(*Config).Kafka.Get()
	assert.Equal(t, "otlp_nccl", kafka.Topic)
	assert.Equal(t, "trainbridge-nccl", kafka.GroupID)
	assert.Equal(t, "earliest", kafka.InitialOffset)
	assert.EqualValues(t, 4096, kafka.LookBack)
	assert.Equal(t, []string{"localhost:9092"}, kafka.Brokers)
	kafka = all["nccl/kafka_all"].(*Config).Kafka.Get()
	assert.Equal(t, "records", kafka.Topic)
	assert.Equal(t, "SCRAM-SHA-512", kafka.Authentication.SASL.Mechanism)
	assert.Equal(t, 45*time.Second, kafka.SessionTimeout)
	assert.EqualValues(t, 100, kafka.LookBack)

	// A live job.
	assert.Nil(t, all["nccl"].(*Config).RAS.Get(), "off")
	assert.Equal(t, &RASConfig{Endpoint: "localhost:28028", Interval: time.Minute, Timeout: 20 * time.Second}, all["nccl/ras"].(*Config).RAS.Get())
	assert.Equal(t, &RASConfig{"[::1]:28029", 30 * time.Second, 15 * time.Second, true}, all["nccl/ras_all"].(*Config).RAS.Get())

	// All errors come at once.
	require.ErrorContains(t, confmap.Validate(all["nccl/several"]), "'sample_rate' must be 0 to 1")
	// No bound above.
	want.MinSize, want.MaxSize = 1<<40, 0
	require.NoError(t, want.Validate())
}

// Dumps of the Flight Recorder are documents wherever the globs match.
func TestDocuments(t *testing.T) {
	dumps := []string{
		"/logs/nccl_trace_rank_0", "/logs/nccl_trace_rank_1.json", "/logs/a/job7_nccl_trace_rank_3", "/logs/b/nccl_trace_rank_4", "/tmp/nccl_trace_rank_5",
		"logs/nccl/nccl_trace_rank_6", "/cache/torch/comm_lib_trace_rank_7", "/cache/torch/hccl_trace_rank_8",
	}
	for include, want := range map[string][]int{
		"/logs/**":                       {0, 1, 2, 3},
		"/logs/*":                        {0, 1},
		"/logs/*.json":                   {1},
		"/logs/**/*.json":                {1},
		"/tmp/nccl_trace_rank_*":         {4},
		"/logs/a/job7_nccl_trace_rank_3": {2},
		"logs//nccl/*":                   {5},
		"/cache/**":                      {6, 7},
		"/logs/*.log":                    nil,
		"/logs/rank_*.json":              nil,
		"/logs/{*.log,nccl_trace_ra*}":   {0, 1},
		"/logs/{a/*.log,b/nccl_trace*}":  {3},
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Include = []string{include}
		var got []int
		for i, path := range dumps {
			if cfg.Includes(path) && cfg.isDump(path) {
				got = append(got, i)
			}
		}
		assert.Equal(t, want, got, include)
	}
	cfg := createDefaultConfig().(*Config)
	cfg.Include = []string{"/a/*", "/b/x"}
	assert.False(t, cfg.isDump("/a/rank_0.json"))
	cfg.Format = formatRecorder
	assert.True(t, cfg.isDump("/a/rank_0.json"), "all are, where the format is set")
	assert.True(t, cfg.isDump("/b/x"))
	assert.False(t, cfg.isDump("/c/x"))
}
