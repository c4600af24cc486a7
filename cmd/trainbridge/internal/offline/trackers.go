package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
)

const (
	// trackerHead and trackerSteps bound the compared part of a tracker's file: bytes, and steps.
	trackerHead  = 4 << 20
	trackerSteps = 200
	// besideHead is how many bytes of a log beside are compared, and mostBeside how many logs.
	besideHead = 64 << 20
	mostBeside = 32
	// A tracker's file repeats a log if at least leastSame of its values are in the log, and sameShare of the common steps agree. Consoles round to four digits.
	leastSame = 3
	sameShare = 0.9
	rounding  = 1e-3
	// exact is how far two trackers' values may be apart: W&B writes float64, TensorBoard float32.
	exact = 1e-6
)

// isTracker reports whether a file may be TensorBoard's or W&B's, by its name.
func isTracker(path string) bool {
	name := filepath.Base(path)
	return strings.Contains(name, "tfevents") || strings.HasSuffix(name, ".wandb") || strings.HasSuffix(name, ".wandb.gz")
}

// said is the loss that a log says of a step, or the gradient norm from a line without a loss.
type said struct{ iteration, value float64 }

// saidBy reads the losses of a log, from its first bytes, up to a number of steps; of trainer_state.json all. An iteration is NaN if the log's line has none.
func saidBy(path string, size int64, steps int) (list []said) {
	if filepath.Base(path) == state {
		for _, row := range rowsOf(path) {
			var r struct{ Step, Loss *float64 }
			if json.Unmarshal(row, &r) == nil && r.Step != nil && r.Loss != nil {
				list = append(list, said{*r.Step, *r.Loss})
			}
		}
		return list
	}
	line := trainlogreceiver.Losses(func(iteration, value float64) { list = append(list, said{iteration, value}) })
	_ = tail.Head(path, size, func(text []byte) bool { // errors are reported by the reading itself
		line(text)
		return len(list) < steps
	})
	return list
}

// standsIn reports whether a log has the losses that a tracker's file has, some: at least leastSame of them, and sameShare of the steps that both know. Values
// are the same up to a relative rounding. Losses of a log without step numbers are compared by their order: then the share is of all of some.
func standsIn(some, log []said, rounding float64) bool {
	byStep := make(map[float64][]float64)
	inOrder := 0 // place in log behind the last match without a step number; 0: there was none
	for _, s := range log {
		byStep[s.iteration] = append(byStep[s.iteration], s.value)
	}
	near := func(a, b float64) bool { // the inner max: a loss near 0 is printed as 0.000
		return math.Abs(a-b) <= rounding*max(math.Abs(a), rounding) || math.IsNaN(a) && math.IsNaN(b)
	}
	same, all := 0, 0 // steps with the same value, and steps that both know
	for _, s := range some {
		values, known := byStep[s.iteration]
		if known {
			all++
			if slices.ContainsFunc(values, func(v float64) bool { return near(s.value, v) }) {
				same++
			}
			continue
		}
		for at := inOrder; at < len(log); at++ {
			if math.IsNaN(log[at].iteration) && near(s.value, log[at].value) {
				same, all, inOrder = same+1, all+1, at+1
				break
			}
		}
	}
	if inOrder > 0 { // values found by order prove less: nearly all must be found
		all = max(all, len(some))
	}
	return same >= leastSame && float64(same) >= sameShare*float64(all)
}

// isBeside reports whether a log may be of the training behind a tracker's file: the log's directory, of a checkpoint the run's, has the tracker's file below.
func isBeside(log, tracker string) bool {
	dir := filepath.Dir(log)
	if filepath.Base(log) == state && checkpoint.MatchString(filepath.Base(dir)) {
		dir = filepath.Dir(dir)
	}
	return strings.HasPrefix(tracker, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// comparison finds, for leaveTrackers, the files with the same records.
type comparison struct {
	logs []string          // not written by trackers
	read map[string][]said // the losses of files read so far, as whole has them
	gone map[string]bool   // files that another one replaces
	in   *Input
}

// whole reads the losses of a file, up to besideHead bytes; none of a binary file. A file is read once.
func (c *comparison) whole(path string) []said {
	list, ok := c.read[path]
	if !ok {
		if !isBinary(path) {
			list = saidBy(path, besideHead, math.MaxInt)
		}
		c.read[path] = list
	}
	return list
}

// leave notes that a file is not to be read, as a copy of another.
func (c *comparison) leave(path, of string) {
	c.gone[path] = true
	c.in.Copies = append(c.in.Copies, Copy{path, of})
}

// tracker compares a tracker's file with the logs beside, and with the files of trackers before, others. The tracker's file is left if a console log or JSON
// lines have its steps, or a file of the other kind of tracker has. Else the tracker's file is kept, and each trainer_state.json with its steps is left.
// A tracker's file with fewer than leastSame steps is not compared.
func (c *comparison) tracker(path string, others []string) {
	steps := saidBy(path, trackerHead, trackerSteps)
	if len(steps) < leastSame {
		return
	}
	var states []string
	beside := 0
	for _, f := range c.logs {
		if c.gone[f] || !isBeside(f, path) || len(c.whole(f)) == 0 {
			continue
		}
		if beside++; beside > mostBeside {
			break
		}
		switch {
		case !standsIn(steps, c.whole(f), rounding):
		case filepath.Base(f) == state:
			states = append(states, f)
		default:
			c.leave(path, f)
			return
		}
	}
	for _, other := range others[:min(len(others), mostBeside)] {
		if !c.gone[other] && rank(other) != rank(path) && standsIn(steps, c.whole(other), exact) {
			c.leave(path, other)
			return
		}
	}
	for _, f := range states {
		c.leave(f, path)
	}
}

// hasBar reports whether a console has tqdm's bar of the steps of a state, "| 12/600 [": then the lines between have steps and times.
func hasBar(console, of string) bool {
	var s struct {
		Steps int64 `json:"max_steps"`
	}
	body, err := os.ReadFile(of)
	if err != nil || json.Unmarshal(bytes.ReplaceAll(body, []byte("NaN"), []byte("0")), &s) != nil {
		return false
	}
	bar, found := fmt.Appendf(nil, "/%d [", s.Steps), false
	_ = tail.Head(console, besideHead, func(text []byte) bool { // errors are reported by the reading itself
		found = bytes.Contains(text, bar)
		return !found
	})
	return found
}

// states leaves each trainer_state.json whose steps a console beside has, with the bar: a state has no times.
func (c *comparison) states() {
	for _, path := range c.logs {
		if filepath.Base(path) != state || c.gone[path] || len(c.whole(path)) < leastSame {
			continue
		}
		for _, f := range c.logs {
			if filepath.Base(f) == state || !isBeside(f, path) {
				continue
			}
			if standsIn(c.whole(path), c.whole(f), rounding) && hasBar(f, path) {
				c.leave(path, f)
				break
			}
		}
	}
}

// leaveTrackers removes files of TensorBoard and W&B whose steps are in another log: a training counts once. A console log or JSON lines are preferred, with
// more values per step; trainer_state.json has no times, and the tracker's file, or a console with its bar, replaces it.
func (in *Input) leaveTrackers() {
	c := comparison{read: make(map[string][]said), gone: make(map[string]bool), in: in}
	var trackers []string
	for _, f := range in.Files {
		if isTracker(f) {
			trackers = append(trackers, f)
		} else {
			c.logs = append(c.logs, f)
		}
	}
	slices.SortStableFunc(trackers, func(a, b string) int { return rank(a) - rank(b) })
	for i, t := range trackers {
		c.tracker(t, trackers[:i])
	}
	c.states()
	in.leave(c.gone)
}

// rank orders the kinds of trackers: of two files with the same steps TensorBoard's (0) is read, W&B's (1) is not.
func rank(path string) int {
	if strings.Contains(filepath.Base(path), "tfevents") {
		return 0
	}
	return 1
}
