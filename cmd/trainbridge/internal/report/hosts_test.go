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

// A host whose steps load data, or compute, longer than those of the others is told; hosts of other stages of a pipeline, which load nothing, are no measure.
func TestSlowHosts(t *testing.T) {
	for name, tt := range map[string]struct {
		loads, computes [4]float64 // s, by host
		want            string
	}{
		"alike":        {[4]float64{0.05, 0.06, 0.05, 0.05}, [4]float64{1.2, 1.22, 1.2, 1.25}, ""},
		"loading data": {[4]float64{0.05, 0.06, 0.4, 0.05}, [4]float64{1.2, 1.2, 1.2, 1.2}, "Of 4 hosts n2 took up to 400 ms a step for loading data, by the logs' timers; usual is 55 ms"},
		"computing":    {[4]float64{0.05, 0.05, 0.05, 0.05}, [4]float64{1.2, 1.6, 1.2, 1.2}, "Of 4 hosts n1 took up to 1.6 s a step for computing, by the logs' timers; usual is 1.2 s"},
		"a pipeline":   {[4]float64{0.4, 0, 0, 0}, [4]float64{1.2, 1.2, 1.2, 1.2}, ""},
		"two halves":   {[4]float64{0.4, 0.4, 0.05, 0.05}, [4]float64{1.2, 1.2, 1.6, 1.6}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for host := range tt.loads {
				var log strings.Builder
				for i := 1; i <= 60; i++ {
					fmt.Fprintf(&log, `{"ts": "2026-06-12T10:%02d:%02dZ", "host": "n%d", "rank": %d, "step": %d, "loss": 2.5, "step_time_s": 2.0, "data_time_s": %g, `+
						`"compute_time_s": %g}`+"\n", i/30, i%30*2, host, 8*host, i, tt.loads[host], tt.computes[host])
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("n%d.jsonl", host)), []byte(log.String()), 0o600))
			}
			text := reported(t, dir)
			if tt.want == "" {
				assert.NotContains(t, text, "by the logs' timers")
			} else {
				assert.Contains(t, text, tt.want)
				assert.NotContains(t, text, "Healthy")
			}
		})
	}
}
