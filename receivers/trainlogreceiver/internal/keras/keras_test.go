package keras_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/keras"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var logs = map[string]struct{ lines, want []string }{
	"verbose 1": {
		[]string{
			"Epoch 1/2",
			" 1/18 ━━━━━━━━━━━━━━━━━━━━ 0s 44ms/step - accuracy: 0.1250 - loss: 2.5356\b\b\b\b",
			" 3/18 ━━━━━━━━━━━━━━━━━━━━ 0s 38ms/step - accuracy: 0.1250 - loss: 2.3857\b\b\b\b",
			"18/18 ━━━━━━━━━━━━━━━━━━━━ 1s 40ms/step - accuracy: 0.1198 - loss: 2.4505\b\b\b\b",
			"18/18 ━━━━━━━━━━━━━━━━━━━━ 1s 56ms/step - accuracy: 0.1198 - loss: 2.4505 - val_accuracy: 0.0938 - val_loss: 2.4823",
			"Epoch 2/2",
			" 1/18 ━━━━━━━━━━━━━━━━━━━━ 12s 2s/step - accuracy: 0.1250 - loss: 2.5",
			" 4/20 ━━━━━━━━━━━━━━━━━━━━ 0s 13ms/step - accuracy: 0.1312 - loss: 2.3985", // evaluate()
			"20/20 ━━━━━━━━━━━━━━━━━━━━ 0s 13ms/step - accuracy: 0.1312 - loss: 2.3985",
		},
		[]string{
			"keras step iteration=1 iterations=36 epoch=1 duration=0.044 loss=2.5356 extra:accuracy=0.125",
			"keras step mean iteration=3 iterations=36 epoch=1 duration=0.038 loss=2.3857 extra:accuracy=0.125",
			"keras step mean iteration=18 iterations=36 epoch=1 duration=0.04 loss=2.4505 extra:accuracy=0.1198",
			"keras evaluation iteration=18 val_loss=2.4823 extra:val_accuracy=0.0938",
			"keras step iteration=19 iterations=36 epoch=2 duration=2 loss=2.5 extra:accuracy=0.125",
		},
	},
	"verbose 2": {
		[]string{"Epoch 3/3", "18/18 - 1s - 54ms/step - accuracy: 0.1198 - loss: 2.4505 - val_loss: 2.4823"},
		[]string{
			"keras step mean iteration=54 iterations=54 epoch=3 duration=0.054 loss=2.4505 extra:accuracy=0.1198", "keras evaluation iteration=54 val_loss=2.4823",
		},
	},
	// The remaining time of a long epoch gives the duration of a step; of a short one, little.
	"keras 2": {
		[]string{
			"Epoch 1/1",
			" 1/18 [>.............................] - ETA: 1s - loss: 2.3900 - accuracy: 0.1001\b\b",
			" 4/18 [=====>........................] - ETA: 0s - loss: 2.3600 - accuracy: 0.1004",
			"18/18 [==============================] - 1s 56ms/step - loss: 2.2000 - accuracy: 0.1018 - val_loss: 2.4346",
		},
		[]string{
			"keras step iteration=1 iterations=18 epoch=1 loss=2.39 extra:accuracy=0.1001",
			"keras step iteration=4 iterations=18 epoch=1 loss=2.36 extra:accuracy=0.1004",
			"keras step mean iteration=18 iterations=18 epoch=1 duration=0.056 loss=2.2 extra:accuracy=0.1018", "keras evaluation iteration=18 val_loss=2.4346",
		},
	},
	"unknown": {
		[]string{"Epoch 1/2", "      4/Unknown - 1s 250ms/step - loss: 2.36", "Epoch 2/2", "      4/Unknown 1s 250ms/step - loss: 2.3"},
		[]string{"keras step mean iteration=4 epoch=1 duration=0.25 loss=2.36", "keras step mean iteration=8 epoch=2 duration=0.25 loss=2.3"},
	},
	"none": {
		[]string{"18/18 - 1s - 54ms/step - loss: 2.4", "Epoch 1/2", "3/18 loss: 2", "Epoch 7", "3/", "1/2 [", "18/3 - 1s - loss: 1", "", "1/4 - x - loss: 2"},
		nil,
	},
}

func TestLine(t *testing.T) {
	for name, c := range logs {
		t.Run(name, func(t *testing.T) {
			// Restarted at every line, as a collector may be.
			out := &recordtest.Sink{}
			var state []byte
			for _, line := range c.lines {
				p := keras.New(nil)
				p.Restore(state)
				before := len(out.Got)
				v, reason, mine := p.Line([]byte(line), out)
				assert.Equal(t, len(out.Got) > before, v == tail.Record, line)
				assert.Equal(t, v != tail.Record && mine, reason != "", line)
				state = p.Save()
			}
			assert.Equal(t, c.want, out.Got)
		})
	}
}

func FuzzLine(f *testing.F) {
	for _, c := range logs {
		f.Add([]byte(strings.Join(c.lines, "\n")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, out := keras.New(nil), &recordtest.Sink{}
		for line := range strings.SplitSeq(string(b), "\n") {
			before := len(out.Got)
			v, _, mine := p.Line([]byte(line), out)
			if (v == tail.Record) != (len(out.Got) > before) || v == tail.Record && !mine {
				t.Fatalf("%q: %d %v", line, v, mine)
			}
			p.Restore(p.Save())
		}
	})
}

func BenchmarkLine(b *testing.B) {
	for name, text := range map[string]string{
		"bar":   " 3/18 ━━━━━━━━━━━━━━━━━━━━ 0s 38ms/step - accuracy: 0.1250 - loss: 2.3857",
		"other": "The attention mask and the pad token id were not set. As a consequence, you may observe unexpected behavior.",
	} {
		b.Run(name, func(b *testing.B) {
			p, out, line := keras.New(nil), &recordtest.Discard{}, []byte(text)
			p.Line([]byte("Epoch 1/2"), out)
			b.ReportAllocs()
			for b.Loop() {
				p.Line(line, out)
			}
		})
	}
}
