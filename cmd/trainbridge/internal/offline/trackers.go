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

// loss is the loss of a step in a log, or the gradient norm from a line without a loss.
type loss struct{ iteration, value float64 }

// lossesOf returns the losses in the first bytes (size) of a log, up to a number of steps; of trainer_state.json all. An iteration is NaN if the line has none.
func lossesOf(path string, size int64, steps int) (list []loss) {
	if filepath.Base(path) == stateName {
		for _, row := range rowsOf(path) {
			var r struct{ Step, Loss *float64 }
			if json.Unmarshal(row, &r) == nil && r.Step != nil && r.Loss != nil {
				list = append(list, loss{*r.Step, *r.Loss})
			}
		}
		return list
	}
	line := trainlogreceiver.Losses(func(iteration, value float64) { list = append(list, loss{iteration, value}) })
	_ = tail.Head(path, size, func(text []byte) bool { // errors are reported by the reading itself
		line(text)
		return len(list) < steps
	})
	return list
}

// repeats reports whether a log has the losses of a file of a tracker (some): at least leastSame of them, and sameShare of the steps that both have. Values are
// the same up to a relative rounding. Losses of a log without step numbers are compared in order; then the share is of all of some.
func repeats(some, log []loss, rounding float64) bool {
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

// isBeside reports whether a log may be of the same training as a file of a tracker: the file is below the directory of the log, or of the run for a
// checkpoint's log.
func isBeside(log, tracker string) bool {
	dir := filepath.Dir(log)
	if filepath.Base(log) == stateName && checkpointPattern.MatchString(filepath.Base(dir)) {
		dir = filepath.Dir(dir)
	}
	return strings.HasPrefix(tracker, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// trackerComparison finds the files with the same records, for dropTrackers.
type trackerComparison struct {
	logs []string          // not written by trackers
	read map[string][]loss // the losses of files read so far, as returned by losses
	gone map[string]bool   // files that another one replaces
	in   *Input
}

// losses returns the losses in the first besideHead bytes of a file; none for a binary file. A file is read once.
func (c *trackerComparison) losses(path string) []loss {
	list, ok := c.read[path]
	if !ok {
		if !isBinary(path) {
			list = lossesOf(path, besideHead, math.MaxInt)
		}
		c.read[path] = list
	}
	return list
}

// dropAs marks a file as not to be read, because it is a copy of another.
func (c *trackerComparison) dropAs(path, of string) {
	c.gone[path] = true
	c.in.Copies = append(c.in.Copies, Copy{path, of})
}

// compareTracker compares the file of a tracker with the logs beside, and with the files of earlier trackers, others. The file is dropped if a console log or
// JSON lines have its steps, or a file of the other kind of tracker has. Otherwise each trainer_state.json with its steps is dropped. A file with fewer than
// leastSame steps is not compared.
func (c *trackerComparison) compareTracker(path string, others []string) {
	steps := lossesOf(path, trackerHead, trackerSteps)
	if len(steps) < leastSame {
		return
	}
	var states []string
	beside := 0
	for _, f := range c.logs {
		if c.gone[f] || !isBeside(f, path) || len(c.losses(f)) == 0 {
			continue
		}
		if beside++; beside > mostBeside {
			break
		}
		switch {
		case !repeats(steps, c.losses(f), rounding):
		case filepath.Base(f) == stateName:
			states = append(states, f)
		default:
			c.dropAs(path, f)
			return
		}
	}
	for _, other := range others[:min(len(others), mostBeside)] {
		if !c.gone[other] && trackerRank(other) != trackerRank(path) && repeats(steps, c.losses(other), exact) {
			c.dropAs(path, other)
			return
		}
	}
	for _, f := range states {
		c.dropAs(f, path)
	}
}

// hasBar reports whether a console log has tqdm's progress bar of the steps of a state, "| 12/600 [": then the lines between have steps and times.
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

// dropStates drops each trainer_state.json whose steps are in a console log beside that has the progress bar: a state has no times.
func (c *trackerComparison) dropStates() {
	for _, path := range c.logs {
		if filepath.Base(path) != stateName || c.gone[path] || len(c.losses(path)) < leastSame {
			continue
		}
		for _, f := range c.logs {
			if filepath.Base(f) == stateName || !isBeside(f, path) {
				continue
			}
			if repeats(c.losses(path), c.losses(f), rounding) && hasBar(f, path) {
				c.dropAs(path, f)
				break
			}
		}
	}
}

// dropTrackers removes files with the same steps as another from the files to read, if one of the two is of TensorBoard or W&B: a training counts once. A
// console log or JSON lines are preferred, with more values per step. trainer_state.json has no times, and the file of a tracker, or a console log with the
// bar, replaces it.
func (in *Input) dropTrackers() {
	c := trackerComparison{read: make(map[string][]loss), gone: make(map[string]bool), in: in}
	var trackers []string
	for _, f := range in.Files {
		if isTracker(f) {
			trackers = append(trackers, f)
		} else {
			c.logs = append(c.logs, f)
		}
	}
	slices.SortStableFunc(trackers, func(a, b string) int { return trackerRank(a) - trackerRank(b) })
	for i, t := range trackers {
		c.compareTracker(t, trackers[:i])
	}
	c.dropStates()
	in.dropFiles(c.gone)
}

// trackerRank returns the rank of a kind of tracker: of two files with the same steps TensorBoard's (0) is read, W&B's (1) is not.
func trackerRank(path string) int {
	if strings.Contains(filepath.Base(path), "tfevents") {
		return 0
	}
	return 1
}
