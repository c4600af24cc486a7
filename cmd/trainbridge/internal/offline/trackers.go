package offline

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
)

const (
	// trackerHead and trackerSteps are how much of a tracker's file is compared: bytes, and steps in them.
	trackerHead  = 4 << 20
	trackerSteps = 200
	// besideHead is how many bytes of a log beside are compared, and mostBeside how many logs.
	besideHead = 64 << 20
	mostBeside = 32
	// A tracker's file says the same as a log where leastSame of its values stand there, and sameShare of those that both have. Consoles round to four digits.
	leastSame = 3
	sameShare = 0.9
	rounding  = 1e-3
	// exact is how far two trackers' values may be apart: W&B writes float64, TensorBoard float32.
	exact = 1e-6
)

// isTracker says whether a file may be of TensorBoard or W&B, by its name.
func isTracker(path string) bool {
	name := filepath.Base(path)
	return strings.Contains(name, "tfevents") || strings.HasSuffix(name, ".wandb") || strings.HasSuffix(name, ".wandb.gz")
}

// said is what a log says of a step.
type said struct{ iteration, value float64 }

// saidBy reads the losses of a log.
func saidBy(path string, bytes int64, steps int) (list []said) {
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
	_ = tail.Head(path, bytes, func(text []byte) bool { // what cannot be read is said when it is read
		line(text)
		return len(list) < steps
	})
	return list
}

// standsIn says whether a log has the steps of a tracker's file.
func standsIn(some, log []said, rounding float64) bool {
	byStep := make(map[float64][]float64)
	inOrder := 0 // of log, for logs that do not number steps
	for _, s := range log {
		byStep[s.iteration] = append(byStep[s.iteration], s.value)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= rounding*max(math.Abs(a), rounding) || math.IsNaN(a) && math.IsNaN(b) }
	same, all := 0, 0
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
	return same >= leastSame && float64(same) >= sameShare*float64(all) && (inOrder == 0 || float64(same) >= sameShare*float64(len(some)))
}

// isBeside says whether a log may be of the training that wrote a tracker's file: it lies in the same directory or in one above.
func isBeside(log, tracker string) bool {
	dir := filepath.Dir(log)
	if filepath.Base(log) == state && checkpoint.MatchString(filepath.Base(dir)) {
		dir = filepath.Dir(dir)
	}
	return strings.HasPrefix(tracker, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// leaveTrackers takes from the files those of TensorBoard and W&B whose steps stand in another log: one training counts once. A console log or JSON lines say
// more of a step; trainer_state.json has no times, so it is left for the tracker's file.
func (in *Input) leaveTrackers() {
	var trackers, logs []string
	for _, f := range in.Files {
		if isTracker(f) {
			trackers = append(trackers, f)
		} else {
			logs = append(logs, f)
		}
	}
	// TensorBoard's first, before W&B's that say the same.
	slices.SortStableFunc(trackers, func(a, b string) int { return rank(a) - rank(b) })
	read := make(map[string][]said)
	whole := func(f string) []said {
		if _, ok := read[f]; !ok {
			read[f] = saidBy(f, besideHead, math.MaxInt)
		}
		return read[f]
	}
	gone := make(map[string]bool)
	for i, t := range trackers {
		steps := saidBy(t, trackerHead, trackerSteps)
		if len(steps) == 0 {
			continue
		}
		var states []string
		beside := 0
		for _, f := range logs {
			if gone[f] || !isBeside(f, t) || beside == mostBeside || isBinary(f) {
				continue
			}
			beside++
			if !standsIn(steps, whole(f), rounding) {
				continue
			}
			if filepath.Base(f) == state {
				states = append(states, f)
				continue
			}
			gone[t] = true
			in.Copies = append(in.Copies, Copy{t, f})
			break
		}
		for _, other := range trackers[:min(i, mostBeside)] {
			if !gone[t] && !gone[other] && rank(other) != rank(t) && standsIn(steps, whole(other), exact) {
				gone[t] = true
				in.Copies = append(in.Copies, Copy{t, other})
			}
		}
		for _, f := range states {
			if !gone[t] {
				gone[f] = true
				in.Copies = append(in.Copies, Copy{f, t})
			}
		}
	}
	in.leave(gone)
}

// rank orders trackers: the first is read.
func rank(path string) int {
	if strings.Contains(filepath.Base(path), "tfevents") {
		return 0
	}
	return 1
}
