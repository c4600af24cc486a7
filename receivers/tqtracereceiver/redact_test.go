package tqtracereceiver

import (
	"testing"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
)

const hubToken = "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"

// Functions and fields are texts of the log.
func TestSecretsDoNotLeave(t *testing.T) {
	path := write(t, "x.log",
		"INFO:2026-03-05 09:30:00,120:[TQ-LOG] op=TQ_PUT | func=fit:"+hubToken+" | stage=START",
		"INFO:2026-03-05 09:30:00,151:[TQ-LOG] op=TQ_PUT | func=fit:"+hubToken+" | stage=END | duration=0.031187s | partition=train | hub_token=plain-token-1 | note=postgres://me:hunter2@db/x",
	)
	filereceivertest.Secrets(t, func(c redact.Config) *filereceivertest.Result {
		return read(t, func(cfg *Config) { cfg.Redact = c }, path)
	}, 3, hubToken, "plain-token-1", "hunter2")
}
