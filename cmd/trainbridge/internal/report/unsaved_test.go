package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A job that died did steps after its last checkpoint. A checkpoint counts once a step follows: the job may have died of saving. A job that ended well has lost
// nothing.
func TestUnsaved(t *testing.T) {
	const died = "RuntimeError: CUDA error: an illegal memory access was encountered"
	for name, tt := range map[string]struct {
		every, last int // a checkpoint at each so many steps; the last step
		end         string
		want        string // "": nothing is said
	}{
		"two steps per second":   {100, 260, died, "The last checkpoint that the logs tell of is of step 200: a restart does 60 steps again (30 s)."},
		"died of saving":         {100, 300, died, "The last checkpoint that the logs tell of is of step 200: a restart does 100 steps again (50 s)."},
		"no checkpoint":          {1000, 260, died, ""},
		"the job ended as usual": {100, 260, "Training finished.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			at := time.Date(2026, 9, 14, 8, 30, 0, 0, time.UTC)
			say := func(text string) { fmt.Fprintf(&log, "%s INFO %s\n", at.Format("2006-01-02 15:04:05.000"), text) }
			for n := 1; n <= tt.last; n++ {
				at = at.Add(500 * time.Millisecond)
				say(fmt.Sprintf("step %d loss %.4f step_time 0.5s", n, 7-0.01*float64(n)))
				if n%tt.every == 0 {
					at = at.Add(2 * time.Second)
					say(fmt.Sprintf("Saved checkpoint to /ckpt/step_%d.pt", n))
				}
			}
			log.WriteString(tt.end + "\n")
			text := strings.Join(strings.Fields(reported(t, write1(t, "train.log", log.String()))), " ")
			if tt.want == "" {
				assert.NotContains(t, text, "last checkpoint")
			} else {
				assert.Contains(t, text, tt.want)
			}
		})
	}
}
