package zmqrpcreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
)

const hubToken = "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"

// Methods, unknown columns and the details of the summary are texts of the log.
func TestSecretsDoNotLeave(t *testing.T) {
	filereceivertest.Secrets(t, func(c redact.Config) *filereceivertest.Result {
		return text(
			t, func(cfg *Config) { cfg.Redact = c }, "Log - Transport: IPC", "ID Method Total(ms) api_key note", "1 Embedding 1 plain-key-1 "+hubToken,
			"2 "+hubToken+" 1 x1 n",
		)
	}, 4, "plain-key-1", hubToken)
}

// Names and labels have no invisible character, and no text has NUL: read checks that.
func TestHiddenCharacters(t *testing.T) {
	r := text(
		t, nil, "Log - Transport: IPC\u202e", "ID Method Total(ms) no\u200bte", "1 Embe\u202edding 1 a", "2 LM\u0085Head 1 a\u2067b", "", "SUMMARY (\x00)",
		"Average Total\u2066\x00: 1.0 ms (\x00)",
	)
	assert.Len(t, r.All("Embe\uFFFDdding"), 1)
	assert.Len(t, r.All("LM\uFFFDHead"), 1)
}
