package flagscalereceiver

import (
	"testing"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
)

func TestOddTimes(t *testing.T) {
	filereceivertest.OddTimes(t, func(path string) *filereceivertest.Result { return read(t, config(path)) },
		"[1970-01-01 08:00:04] iteration        2/     100 | elapsed time per iteration (ms): 15100.4 | lm loss: 9.87 |",
		"[1970-01-01 00:00:04] iteration        3/     100 | elapsed time per iteration (ms): 15100.4 | lm loss: 9.87 |",
		"iteration        4/     100 | elapsed time per iteration (ms): 15100.4 | lm loss: 9.87 |",
	)
}
