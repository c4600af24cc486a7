package trainlogreceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// TestSeriesOfManyRanks: labels that never repeat do not make a series each in Prometheus. Fields unknown to the receiver make none at all.
func TestSeriesOfManyRanks(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n /= 10
	}
	for name, line := range map[string]func(i int) string{
		"ranks": func(i int) string {
			return fmt.Sprintf(`{"timestamp": "2026-06-12T10:30:00.250Z", "step": 10, "rank": %d, "loss": 2.5, "lr": 1e-5, "step_time_s": 0.25}`, i)
		},
		"launcher's ranks": func(i int) string { return fmt.Sprintf(`[rank%d]: {"step": 10, "loss": %[1]d.5, "lr": 1e-5}`, i) },
		"fields":           func(i int) string { return fmt.Sprintf(`{"step": %d, "loss": 2.5, "field_%d": 1.5}`, i, i) },
		"gpus": func(i int) string {
			return fmt.Sprintf(`{"step": %d, "loss": 2.5, "gpu_util": [%s]}`, i%1000, strings.Repeat("97, ", i%1000)+"97")
		},
	} {
		t.Run(name, func(t *testing.T) {
			lines := make([]string, n)
			if name == "gpus" {
				lines = lines[:n/20]
			}
			for i := range lines {
				lines[i] = line(i)
			}
			r := read(t, nil, filereceivertest.Write(t, "train.jsonl", lines...))
			scraped := r.Scraped(t)
			assert.LessOrEqual(t, len(scraped), filereceiver.DefaultCardinalityLimit+1, "and target_info")
			assert.Len(t, r.All(spans.SpanStep), len(lines), "the spans are all there")
			if name == "fields" {
				assert.LessOrEqual(t, len(scraped), 3)
			}
		})
	}
}
