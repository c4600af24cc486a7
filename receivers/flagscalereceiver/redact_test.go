package flagscalereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
)

const hubToken = "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"

// A summary's description of its session is text of the log, and so are the unknown columns of a table.
func TestSecretsDoNotLeave(t *testing.T) {
	dir := t.TempDir()
	filereceivertest.Put(t, dir, "perf_summary_20260612_103000.json", `{"session_info": {"start_time": "20260612_103000", "end_time": "2026-06-12T10:31:00", "total_iterations": 1, "hub_token": "plain-token-1", "note": "`+hubToken+`"},
"final_statistics": {"avg_tflops_per_gpu": 70.5, "api_key": "plain-key-2"},
"iteration_logs": [{"iteration": 1, "timestamp": "2026-06-12 10:30:10", "TFLOPS_per_GPU": 61.0, "step_time_ms": 5818.2, "password": "a1"}]}`)
	filereceivertest.Secrets(t, func(c redact.Config) *filereceivertest.Result {
		cfg := config(dir + "/*")
		cfg.Redact = c
		return read(t, cfg)
	}, 4, hubToken, "plain-token-1", "plain-key-2")
}

// Names have no invisible character, and no text has NUL: checked by read.
func TestHiddenCharacters(t *testing.T) {
	dir := t.TempDir()
	filereceivertest.Put(t, dir, "perf_summary_20260612_103000.json", `{"session_info": {"start_time": "20260612_103000", "end_time": "2026-06-12T10:31:00", "total_iterations": 1, "no\u202ete": "a\u0000b"},
"final_statistics": {"avg_tflops_per_gpu": 70.5, "my\u0000_avg\u200b": 1}, "iteration_logs": [{"iteration": 1, "timestamp": "2026-06-12 10:30:10", "TFLOPS_per_GPU": 61.0, "step_time_ms": 5818.2, "x\ufeff": 2}]}`)
	filereceivertest.Put(
		t, dir, "train.log",
		"[2026-06-12 10:30:04] iteration        2/     100 | elapsed time per iteration (ms): 1510.4 | my\u202e loss: 9.8 | lm loss: 9.87 |\n",
	)
	assert.NotEmpty(t, read(t, config(dir+"/*")).All(""))
}
