package spans

import "go.opentelemetry.io/collector/pdata/pcommon"

// Window is the breakdown of a window that was not slow, and of which no log tells a part, for programs that sum up and need no span for each window: all of
// its time is unattributed.
type Window struct {
	Service, RunID string
	Of             string // a Window… value; "": of a service
	Trace          pcommon.TraceID
	ID             pcommon.SpanID // of the span left out
	Start          int64          // ns since the epoch
	Seconds        float64
	Iteration      int64   // of a step; -1: none
	Ranks          int64   // of the job; 0: not known
	Usual          float64 // s; NaN: not judged
}
