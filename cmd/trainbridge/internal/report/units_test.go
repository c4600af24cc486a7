package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Logs with values alone, of storage units and of NICs, are no empty logs: the unit that differs from the others is told.
func TestUnits(t *testing.T) {
	storage := func(slow float64) string {
		var log strings.Builder
		for i := range 5 {
			for _, unit := range []struct {
				name string
				took float64
			}{{"4f1c09ab", 0.004}, {"77aa01cd", 0.0042}, {"9e3b55f0", slow}} {
				fmt.Fprintf(&log, "2026-08-20 10:%02d:00,123 - INFO - transfer_queue.utils.perf_utils - TQ_STORAGE_UNIT_%s: [Performance] Total success requests: 900, "+
					"Total req/min: 180.00, Total avg process time: %.4fs; \nTime range: last 5.00 minutes; \nPer-operation statistics: PUT_DATA: req_count=900, "+
					"req/min=180.00, avg_time=%.6fs, max_time=0.5s, min_time=0.0001s\n", 5*i, unit.name, unit.took, unit.took)
			}
		}
		return log.String()
	}
	packed := func(bad int) string {
		var log strings.Builder
		log.WriteString("64 bits data: status(63) | bandwidth(62 - 54) | timestamp(53 - 0) \n")
		for i := range 100 {
			v := uint64(190)<<54 | uint64(i)*1e9
			if i < bad {
				v = 1<<63 | uint64(40)<<54 | uint64(i)*1e9
			}
			fmt.Fprintln(&log, v)
		}
		return log.String()
	}
	for name, tt := range map[string]struct{ file, log, want string }{
		"storage unit":          {"controller.log", storage(0.06), "Storage unit TQ_STORAGE_UNIT_9e3b55f0 takes 60 ms for PUT_DATA, the 2 others 4.1 ms (medians)."},
		"usual storage units":   {"controller.log", storage(0.005), ""},
		"abnormal NIC":          {"node01-mlx5_0-Port0-A.log", packed(10), "calls 10 of 100 records abnormal; it sends at 23.8 GB/s (median), at least at 5 GB/s."},
		"usual NIC":             {"node01-mlx5_0-Port0-A.log", packed(0), ""},
		"all records are alike": {"node01-mlx5_0-Port0-A.log", packed(100), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.log), 0o600))
			text := reported(t, dir)
			assert.NotContains(t, text, "There is nothing in these logs")
			if tt.want != "" {
				assert.Contains(t, text, tt.want)
				return
			}
			assert.NotContains(t, text, "abnormal")
			assert.NotContains(t, text, "others")
		})
	}
}
