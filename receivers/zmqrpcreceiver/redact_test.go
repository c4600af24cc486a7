package zmqrpcreceiver

import (
	"testing"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
)

const hubToken = "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"

// Methods, columns of one's own and the details of the summary are texts of the log.
func TestSecretsDoNotLeave(t *testing.T) {
	filereceivertest.Secrets(t, func(c redact.Config) *filereceivertest.Result {
		return text(t, func(cfg *Config) { cfg.Redact = c }, "Log - Transport: IPC", "ID Method Total(ms) api_key note", "1 Embedding 1 plain-key-1 "+hubToken, "2 "+hubToken+" 1 x1 n")
	}, 5, "plain-key-1", hubToken)
}
