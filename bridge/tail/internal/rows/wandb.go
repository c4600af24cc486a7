package rows

import (
	"bytes"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/wandb"
)

// wandbBlock is the length of a block: fragments begin at multiples of it.
const wandbBlock = 32 << 10

// nextWandB reads the record at the beginning of b, at an offset in the file. A row of metrics (history) or a sample of the system becomes the line's text; any
// other record is a line without text. An incomplete record is no line, unless final and damaged.
func nextWandB(dst, b []byte, offset int64, final bool) Line {
	line := Line{Text: dst[:0]}
	d := wandb.NewDecoder(offset, wandb.Handler{
		History: func(h *wandb.History) { line.Text = history(dst, h) },
		Stats:   func(s *wandb.Stats) { line.Text = sample(dst, s) },
	})
	n, whole := d.Next(b)
	c := d.Counts()
	if !whole && (!final || c.Damaged == 0) { // the rest of a damaged block is skipped
		return Line{}
	}
	line.N = n
	line.Bad = c.Malformed+c.TooLong+c.Damaged > 0
	return line
}

// steps are the names under which trainers log their own step: transformers (integrations/integration_utils.py, WandbCallback) and Lightning
// (pytorch/loggers/wandb.py). W&B's own step then counts the calls of wandb.log.
var steps = map[string]bool{"train/global_step": true, "trainer/global_step": true}

// history returns a row of metrics as JSON, with the values that are numbers: {"_step": 12, "_timestamp": 1785748462.046834, "loss": 2.25}. The trainer's own
// step replaces W&B's. The text is empty if no value beside the step is a number. Megatron's throughput is renamed (flopThroughput).
func history(dst []byte, h *wandb.History) []byte {
	dst = append(dst[:0], '{')
	own, megatron := false, false // whether the row has the trainer's own step, and is Megatron's
	for _, item := range h.Items {
		megatron = megatron || string(item.Key) == iterationTime
		if !own && steps[string(item.Key)] && isNumber(item.Value) {
			dst, own = append(appendKey(dst, string(item.Key)), item.Value...), true
		}
	}
	if !own && h.Step >= 0 {
		dst = strconv.AppendInt(appendKey(dst, "_step"), h.Step, 10)
	}
	if h.Timestamp > 0 {
		dst = appendTime(appendKey(dst, "_timestamp"), h.Timestamp)
	}
	head := len(dst) // what comes after is the row's own
	for _, item := range h.Items {
		key := string(item.Key)
		if steps[key] || !isNumber(item.Value) {
			continue
		}
		if key == throughput && megatron {
			key = flopThroughput
		}
		dst = append(appendKey(dst, key), item.Value...)
	}
	if len(dst) == head {
		return dst[:0]
	}
	return append(dst, '}')
}

// system is W&B's own prefix of samples' names on upload (0.16.6, wandb/sdk/internal/sender.py, send_stats).
const system = "system."

var ofGPU, ofProcess = []byte("gpu."), []byte("gpu.process.")

// sample returns the GPU values of a sample, as JSON; empty without a time or any value. Values of GPUs used by the run's own process occur twice in a sample.
func sample(dst []byte, s *wandb.Stats) []byte {
	dst = append(dst[:0], '{')
	if s.Timestamp <= 0 {
		return dst[:0]
	}
	dst = appendTime(appendKey(dst, "_timestamp"), s.Timestamp)
	head := len(dst)
	for _, item := range s.Items {
		if bytes.HasPrefix(item.Key, ofGPU) && !bytes.HasPrefix(item.Key, ofProcess) && isNumber(item.Value) {
			dst = append(appendKey(dst, system+string(item.Key)), item.Value...)
		}
	}
	if len(dst) == head {
		return dst[:0]
	}
	return append(dst, '}')
}

// isNumber reports whether a value in Python's JSON is a number, with NaN and Infinity: tables, pictures and texts are not.
func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] >= '0' && value[0] <= '9' || value[0] == '-' || value[0] == 'N' || value[0] == 'I')
}
