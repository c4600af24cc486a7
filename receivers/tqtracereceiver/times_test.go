package tqtracereceiver

import (
	"testing"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
)

func TestOddTimes(t *testing.T) {
	for _, lines := range [][]string{{
		"[TQ-TRACE] trace_id=a1 | func=rollout | stage=FUNCTION_START",
		"[TQ-TRACE] trace_id=a1 | func=rollout | stage=GET_START",
		"[TQ-TRACE] trace_id=a1 | func=rollout | stage=GET_END | duration=5000.0s",
		"[TQ-TRACE] trace_id=a1 | func=rollout | stage=FUNCTION_END | duration=6000.0s",
	}, {
		"INFO:1970-01-01 00:00:01,000:[TQ-LOG] op=TQ_PUT | func=fit | stage=END | duration=31.0s",
	}, {
		"(TaskRunner pid=1) INFO:1970-01-01 00:00:01,000:[TQ-TRACE] trace_id=a2 | func=f | stage=FUNCTION_START | timestamp=1000.000000",
		"(TaskRunner pid=1) INFO:1970-01-01 00:00:02,000:[TQ-TRACE] trace_id=a2 | func=f | stage=FUNCTION_END | duration=1.0s | timestamp=1001.000000",
		"(TaskRunner pid=1) INFO:1970-01-01 00:00:03,000:[TQ-DETAIL] trace_id=a2 | stage=TQ_CLIENT_GET_END | duration=900.0s | data_size_mb=10.00 | timestamp=10.000000",
	}} {
		filereceivertest.OddTimes(t, func(path string) *filereceivertest.Result { return read(t, nil, path) }, lines...)
	}
}
