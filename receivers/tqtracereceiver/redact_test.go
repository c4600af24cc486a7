package tqtracereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

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

// Names and labels have no invisible character, and no text has NUL: checked by read.
func TestHiddenCharacters(t *testing.T) {
	r := read(t, nil, write(t, "x.log",
		"(TaskRunner pid=1, ip=10.\u200b1) INFO:2026-03-05 09:30:00,120:[TQ-TRACE] trace_id=N/A | func=gene\u202erate\x00 | stage=FUNCTION_START | timestamp=1000.000000",
		"(TaskRunner pid=1, ip=10.\u200b1) INFO:2026-03-05 09:30:01,120:[TQ-TRACE] trace_id=N/A | func=gene\u202erate\x00 | stage=FUNCTION_END | duration=1.0s | timestamp=1001.000000",
		"INFO:2026-03-05 09:30:00,120:[TQ-LOG] op=TQ_PUT | func=fit:\u2067\u0085 | stage=START",
		"INFO:2026-03-05 09:30:00,151:[TQ-LOG] op=TQ_PUT | func=fit:\u2067\u0085 | stage=END | duration=0.031187s | par\ufefftition=tr\x00ain",
	))
	assert.Len(t, r.All("gene\uFFFDrate"), 1)
	assert.Equal(t, "tr\uFFFDain", filereceivertest.Attr(r.All("tq.client.put")[0], "tq.field.par\uFFFDtition"))
}
