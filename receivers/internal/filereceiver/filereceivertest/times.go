package filereceivertest

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// OddTimes reads a log whose clock was never set, with modification times outside any plausible span. read checks the times of spans: no wrap, no end before
// the start. OddTimes checks that no line is ignored, and that records, if any, give spans.
func OddTimes(tb testing.TB, read func(path string) *Result, lines ...string) {
	tb.Helper()
	for _, written := range []time.Time{
		time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0), time.Unix(1, 0), time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		path := Write(tb, "x.log", lines...)
		require.NoError(tb, os.Chtimes(path, written, written))
		r := read(path)
		assert.Empty(tb, r.Counts.Ignored, "%v: %+v", written, r.Counts)
		assert.Equal(tb, r.Counts.Records > 0, len(r.All("")) > 0, "%v", written)
	}
}
