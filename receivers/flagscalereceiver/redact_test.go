package flagscalereceiver

import (
	"testing"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
)

const hubToken = "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"

// What a summary says of its session is text of the log, and so are the columns of a table that are not known.
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
