package zmqrpcreceiver

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestOddTimes(t *testing.T) {
	for _, year := range []int{1960, 1970, 2300} {
		path := filereceivertest.Write(t, "zmq.log", "Log - Transport: IPC", "ID Method Ser(ms) Send(ms) Recv(ms) Des(ms) Offline(ms) Total(ms)",
			"1 Embedding 1 1 1 1 50000 5000", "2 LMHead 1 1 1 1 0 5000", "", "SUMMARY", "Average Total: 5000.0 ms")
		written := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		require.NoError(t, os.Chtimes(path, written, written))
		assert.Len(t, calls(read(t, config(path))), 2)
		path = filereceivertest.Write(t, "zmq.log", "SUMMARY", "Average Total: 5000.0 ms")
		require.NoError(t, os.Chtimes(path, written, written))
		assert.Len(t, read(t, config(path)).All(spans.SpanRPCSummary), 1)
	}
}
