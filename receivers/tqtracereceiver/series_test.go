package tqtracereceiver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
)

// TestSeriesOfManyTasks: names that never repeat do not make a series each in Prometheus.
func TestSeriesOfManyTasks(t *testing.T) {
	lines := make([]string, 20_000)
	for i := range lines {
		lines[i] = fmt.Sprintf("INFO:2026-03-05 09:30:00,345:Task task_%d (pid=54223) is getting len_samples=256, cost time: 0.18342280387878418", i)
	}
	scraped := read(t, nil, filereceivertest.Write(t, "worker.err", lines...)).Scraped(t)
	assert.LessOrEqual(t, len(scraped), filereceiver.DefaultCardinalityLimit+1, "and target_info")
	assert.Greater(t, len(scraped), filereceiver.DefaultCardinalityLimit/2, "the room is used")
}
