package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A job that ran out of GPU memory, whose memory grew in all its steps, keeps tensors. Memory that the allocator takes in the first steps, and the peak of
// batches of any size, do not grow all along.
func TestGrownMemory(t *testing.T) {
	const died = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
	rnd := rand.New(rand.NewPCG(1, 2))
	peak := 0.0
	for name, tt := range map[string]struct {
		memory func(step int) float64 // GiB
		end    string
		want   bool
	}{
		"a leak":                   {func(step int) float64 { return 40 + 0.1*float64(step) + rnd.Float64() }, died, true},
		"a leak without an end":    {func(step int) float64 { return 40 + 0.1*float64(step) }, "Training finished.", false},
		"the allocator's memory":   {func(step int) float64 { return 70 - 40*math.Exp(-float64(step)/20) }, died, false},
		"steady":                   {func(int) float64 { return 70 + rnd.Float64() }, died, false},
		"a step up":                {func(step int) float64 { return map[bool]float64{false: 40, true: 70}[step > 200] }, died, false},
		"the largest batch so far": {func(int) float64 { peak = max(peak, 40+8*rnd.NormFloat64()); return peak }, died, false},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			for n := 1; n <= 300; n++ {
				fmt.Fprintf(&log, `{"step": %d, "loss": 2.5, "step_time": 0.5, "memory_allocated_gb": %.3f}`+"\n", n, tt.memory(n))
			}
			log.WriteString(tt.end + "\n")
			text := strings.Join(strings.Fields(reported(t, write1(t, "train.jsonl", log.String()))), " ")
			if tt.want {
				assert.Regexp(t, `GPU memory grew all along: 4\d\.\d GiB at step 1, 7\d\.\d GiB at step 300\.`, text)
			} else {
				assert.NotContains(t, text, "GPU memory grew")
			}
		})
	}
}
