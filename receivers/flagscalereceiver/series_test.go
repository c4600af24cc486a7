package flagscalereceiver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
)

// TestSeriesOfManyRanks: ranks that never repeat do not make a series each in Prometheus.
func TestSeriesOfManyRanks(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n /= 4
	}
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("[rank%d]: [2026-06-12 10:30:00] iteration       10/     100 | consumed samples:         2560 | elapsed time per iteration (ms): 750.0 | "+
			"learning rate: 1.000000E-05 | global batch size:   256 | lm loss: %[1]d.5 | grad norm: 0.500 |", i)
	}
	scraped := read(t, config(filereceivertest.Write(t, "train.log", lines...))).Scraped(t)
	assert.LessOrEqual(t, len(scraped), filereceiver.DefaultCardinalityLimit+1, "and target_info")
	assert.Greater(t, len(scraped), filereceiver.DefaultCardinalityLimit/2, "the room is used")
}
