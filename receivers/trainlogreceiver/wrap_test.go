package trainlogreceiver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/spans"
)

// sink is a recordtest.Sink for a parser of all formats.
type sink struct {
	recordtest.Sink
	prefix line.Prefix
}

func (s *sink) Prefix() *line.Prefix { return &s.prefix }
func (*sink) Model(*spans.Model)     {}
func (*sink) Restarted()             {}

// recordsOf are the records of a log, by a parser restarted at every line.
func recordsOf(text string) []string {
	var state []byte
	var peeler line.Peeler
	out := &sink{}
	for l := range strings.SplitSeq(text, "\n") {
		p := newParser(formatAuto, nil, nil)
		p.Restore(state)
		p.Line(peeler.Peel([]byte(l), &out.prefix), out)
		state = p.Save()
	}
	return out.Got
}

func TestWrap(t *testing.T) {
	first := "[12:14:31] INFO     Epoch [1/2] Step [1/12] loss: 2.5 note: 3 lr:        frames.py:15\n"
	below := strings.Repeat(" ", 20)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"three lines": {
			first + below + "5.00e-02 step_time: 250ms tokens/s: 1477   \n" + below + "grad_norm: 1.234\n" + below + "memory: 1GB\n",
			[]string{
				"keyvalue step open iteration=1 iterations=24 epoch=1 loss=2.5 extra:note=3",
				"keyvalue side iteration=1 iterations=24 epoch=1 duration=0.25(ms) loss=2.5 lr=0.05 tokens/s=1477",
				"keyvalue side iteration=1 iterations=24 epoch=1 duration=0.25(ms) loss=2.5 lr=0.05 grad_norm=1.234 tokens/s=1477",
			},
		},
		"the loss is in the second": {
			"           INFO     Step: 5, a: 3,   frames.py:15\n" + below + "loss: 2.5\n",
			[]string{"keyvalue step open iteration=5 loss=2.5 extra:a=3"},
		},
		"behind a time that was taken off": {
			"[2026-08-03 09:14:22] INFO     step: 5, loss: 2.5,  frames.py:15\n" + strings.Repeat(" ", 31) + "lr: 0.1\n",
			[]string{"keyvalue step open iteration=5 loss=2.5", "keyvalue side iteration=5 loss=2.5 lr=0.1"},
		},
		"another column, another line between, sentences": {
			"[12:14:31] INFO     step: 5, loss: 2.5\n" + below + "  lr: 0.1\n[12:14:31] INFO     step: 6, loss: 2.5\nother\n" + below + "lr: 0.1\n" +
				"[12:14:31] INFO     step: 7, loss: 2.5\n" + below + "is the best so far\n",
			[]string{"keyvalue step open iteration=5 loss=2.5", "keyvalue step open iteration=6 loss=2.5", "keyvalue step open iteration=7 loss=2.5"},
		},
		"not rich's": {"INFO step: 5, loss: 2.5, lr:\n" + below + "5.00e-02\n", nil},
	} {
		assert.Equal(t, c.want, recordsOf(c.text), name)
	}
}

// Text of any program below a line that names a step is no record.
func TestNoBlocks(t *testing.T) {
	for _, text := range []string{
		"Step 1/3 : FROM python:3.12\n ---> 5b3421cc8455\n", "| step | loss | lr |\nwords\n", "step: 100\nloss: 2.3\n", "Step 5\n    loss = criterion(out, y)\n",
		"for step in range(5):\n    loss = 2\n", "Step 3:\n  - open the door\n  - time: 5 s\n", "Epoch 3\n  lr: 1e-4\n", "=== Step 2 ===\n• the loss: none\n",
		"+-----+\n| a | b |\n+-----+\n", "--------------------\n| GPU  | 3 |\n| loss | 2 |\n--------------------\n", "pipeline step 3 start...\n{\"loss_fn\": \"mse\"}\n",
		"Traceback (most recent call last):\n  File \"train.py\", line 5\n    loss = 2\n",
	} {
		assert.Empty(t, recordsOf(text), text)
	}
}
