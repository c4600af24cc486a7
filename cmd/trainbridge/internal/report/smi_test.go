package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A table of nvidia-smi beside the logs tells which GPU's clock fell where steps became longer. Of as many samples in longer steps, that makes a loss.
func TestSlowGPUs(t *testing.T) {
	for name, tt := range map[string]struct {
		clock   int // MHz of GPU 2 while steps are longer
		want    string
		wantNot string
	}{
		"held down": {1290, "(GPU 2 in dmon.log ran at 1,290 MHz instead of 1,965 MHz, held down by heat), for the same work: 50 s more in all", "had nothing that is known"},
		"as before": {1950, "From step 61 on a step takes 3.01 s instead of 2.01 s, for as many samples.", "GPU 2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var log, dmon strings.Builder
			fmt.Fprintln(&dmon, "#Date       Time        gpu    pwr  gtemp   mclk   pclk  pviol  tviol \n#YYYYMMDD   HH:MM:SS    Idx      W      C    MHz    MHz      %   bool ")
			start := time.Date(2026, 9, 14, 8, 30, 0, 0, time.Local) // no stamp has a zone
			at := start
			for i := 1; i <= 110; i++ {
				took := 2 + 0.01*float64(i%3)
				if i > 60 {
					took++
				}
				at = at.Add(time.Duration(took * 1e9))
				for gpu := range 4 {
					clock, heat := 1965, 0
					if gpu == 2 && i > 60 {
						clock = tt.clock
						if clock < 1900 {
							heat = 1
						}
					}
					fmt.Fprintf(&dmon, " %s %6d    640     64   2619 %6d      0 %6d\n", at.Format("20060102   15:04:05"), gpu, clock, heat)
				}
				stamp := strings.Replace(at.Format("2006-01-02 15:04:05.000"), ".", ",", 1)
				fmt.Fprintf(&log, "[%s] [INFO] [logging.py:96:log_dist] [Rank 0] step=%d, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n", stamp, i)
				fmt.Fprintf(&log, "[%s] [INFO] [timer.py:260:stop] epoch=0/micro_step=%d/global_step=%d, RunningAvgSamplesPerSec=%f, CurrSamplesPerSec=%f, MemAllocated=1GB, MaxMemAllocated=2GB\n",
					stamp, i, i, 256/took, 256/took)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "train.log"), []byte(log.String()), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "dmon.log"), []byte(dmon.String()), 0o600))
			text := reported(t, dir)
			assert.Contains(t, text, tt.want)
			assert.NotContains(t, text, tt.wantNot)
		})
	}
}
