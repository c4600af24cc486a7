package ncclreceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
)

const hubToken = "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"

// The names of communicators and the hosts are texts of the log: of spans, of labels and of resources.
func TestSecretsDoNotLeave(t *testing.T) {
	path := filereceivertest.Write(t, "inspector.log", inspectorLines("node-17", "TP "+hubToken)...)
	filereceivertest.Secrets(t, func(c redact.Config) *filereceivertest.Result {
		cfg := config(path)
		cfg.Redact = c
		return read(t, cfg)
	}, 2, hubToken)
	filereceivertest.Secrets(t, func(c redact.Config) *filereceivertest.Result {
		cfg := config(path)
		cfg.Redact = redact.Config{HashHosts: c.Enabled, HashKey: "a key of 16 bytes"}
		return read(t, cfg)
	}, 0, "node-17")
}

// Agents pack the logged texts unchanged: the gateway redacts them.
func TestSecretsOfAgents(t *testing.T) {
	c := newCluster(t, 1)
	for _, s := range agent(t, "inspector.log", strings.Join(inspectorLines("node-17", "TP "+hubToken), "\n")+"\n", func() int { return 20 }) {
		assert.Contains(t, string(s.Records), "node-17")
		c.says(0, s)
	}
	out := new(filereceivertest.Result)
	g := c.start(out.Traces.ConsumeTraces, func(cfg *Config) { cfg.Redact.HashHosts, cfg.Redact.HashKey = true, "a key of 16 bytes" })
	wait(t, "two collectives, each with its rank", func() bool { return len(out.All("AllReduce")) == 2 && len(rankSpans(out)) == 2 })
	g.stop()
	text := out.Text(t)
	assert.Contains(t, text, redact.Redacted)
	assert.NotContains(t, text, hubToken)
	assert.NotContains(t, text, "node-17")
}

func inspectorLines(host, comm string) []string {
	var out []string
	for sn := range 2 {
		out = append(out, fmt.Sprintf(`{"header":{"id":"0x5eed0000000000b2","comm_name":%q,"rank":0,"n_ranks":1,"nnodes":1},`+
			`"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":%q,`+
			`"pid":300},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":1024,"coll_exec_time_us":9,"coll_timing_source":"kernel_gpu",`+
			`"coll_algobw_gbs":0.113778,"coll_busbw_gbs":0.113778}}`,
			comm, 1781000000000000+sn*1000, host, sn+1))
	}
	return out
}

// The names of hosts and communicators have no invisible character: checked by read.
func TestHiddenCharacters(t *testing.T) {
	r := read(t, config(
		filereceivertest.Write(t, "inspector.log", inspectorLines("node\u202e-17\x00", "TP \u200b\x07")...),
		filereceivertest.Write(t, "rank_0.jsonl", `{"timestamp": 1693958400.001, "rank": 0, "operation": "my\u202e_op\u0000", "algorithm": "ri\u2067ng",`+
			` "message_size": 4194304, "duration_us": 1250.5, "bandwidth_gbps": 26.8, "error_count": 1, "retry_count": 0}`),
	))
	assert.NotEmpty(t, r.All("my\uFFFD_op\uFFFD"))
}
