package table_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tables = map[string]struct {
	text     string
	want     []string
	rejected int
}{
	// Lightning 2.6: a row for the step, one for the results, one for the epoch's mean.
	"CSVLogger": {
		"epoch,lr,step,train_loss_epoch,train_loss_step,val_loss\n0,0.01,1,,11.587385177612305,\n1,,15,,,5.326930046081543\n1,,15,6.955822467803955,,\n",
		[]string{
			"csv step open join dedup iteration=1 epoch=0 loss=11.58738517761 lr=0.01", "csv evaluation dedup iteration=15 epoch=1 val_loss=5.326930046082",
			"csv evaluation dedup iteration=15 epoch=1 extra:train_loss_epoch=6.955822467804",
		},
		0,
	},
	// LitGPT counts batches from 1 in its own column, and from 0 in CSVLogger's.
	"LitGPT": {
		"iter,iter_time,loss,step,total_tokens,val_loss,val_ppl\n4,0.5,4.5,3,256,,\n,,,7,,4.25,70\n",
		[]string{
			"csv step open join dedup iteration=3 duration=0.5 loss=4.5 consumed_tokens=256 extra:iter=4", "csv evaluation dedup iteration=7 val_loss=4.25 ppl=70",
		},
		0,
	},
	"quotes, CRLF, byte order mark and words": {
		"\xef\xbb\xbf\"step\",\"loss\",\"note\"\r\n1,\"2.5\",\"a, \"\"b\"\"\"\r\n2,nan,\r\n3,inf,x y\r\n",
		[]string{
			`csv step open join dedup iteration=1 loss=2.5 extra:note="a, \"b\""`, "csv step open join dedup iteration=2 loss=NaN",
			`csv step open join dedup iteration=3 loss=+Inf extra:note="x y"`,
		},
		0,
	},
	"tabs, and times": {
		"timestamp\tglobal_step\ttrain/loss\ttokens_per_sec\n2026-06-12 10:30:00\t5\t2.5\t1000\n",
		[]string{`csv step open join dedup stamp="2026-06-12 10:30:00" iteration=5 loss=2.5 tokens/s=1000`},
		0,
	},
	"semicolons, and another header": {
		"Iteration;Loss\n1;2.5\nIteration;Loss;mfu\n2;2.25;0.5\n",
		[]string{"csv step open join dedup iteration=1 loss=2.5", "csv step open join dedup iteration=2 loss=2.25 mfu=0.5"},
		0,
	},
	"Markdown, again and with sentences between": {
		"| step | loss | lr | time |\n|---:|:---:|---|---:|\n| 1 | 2.5 | 1e-4 | 0.25 |\n| evaluated | in | 2 | s |\n| step | loss | lr | time |\n| 2 | 2.25 | | 0.5 |\n| 3 | 2 |\n| x | 2 | 3 | 4 |\n1 2 3 4\n",
		[]string{
			`csv step open join dedup iteration=1 duration=0.25 loss=2.5 lr=0.0001 extra:time="0.25"`, `csv step open join dedup iteration=2 duration=0.5 loss=2.25 extra:time="0.5"`,
		},
		0,
	},
	"blanks": {
		"    step       loss         lr   s/step\n----------------------------------------\n       1     2.3641   5.00e-02    0.042\n       2  and  some words\n     2.5          1          2        3\n       3          1          2\n",
		[]string{"csv step open join dedup iteration=1 duration=0.042 loss=2.3641 lr=0.05"},
		0,
	},
	"mlx-lm": {
		"  iter   train_loss     tok/s     tokens\n     1    val 6.249    0.21s\n    10    6.243 ▼      903       1.2k\n    20    6.239 ▲    1,119       2.4k\n",
		[]string{
			"csv step open join dedup iteration=10 loss=6.243 tokens=1200 tokens/s=903", "csv step open join dedup iteration=20 loss=6.239 tokens=2400 tokens/s=1119",
		},
		0,
	},
	"fastai": {
		"epoch     train_loss  valid_loss  accuracy  time    \n0         0.531800    0.412700    0.81  00:12     \n1         0.431800    0.352700    0.85  1:02:03   \n2  0.4  0.3  x  y\n",
		[]string{
			"csv step open join dedup iteration=0 epoch=0 duration=12 loss=0.5318 val_loss=0.4127 extra:accuracy=0.81", "csv step open join dedup iteration=1 epoch=1 duration=3723 loss=0.4318 val_loss=0.3527 extra:accuracy=0.85",
		},
		0,
	},
	"skorch": {
		"  epoch    train_loss    valid_loss     dur\n-------  ------------  ------------  ------\n      1        0.7111        0.6894  0.1345\n",
		[]string{
			"csv step open join dedup iteration=1 epoch=1 duration=0.1345 loss=0.7111 val_loss=0.6894 extra:dur=0.1345",
		},
		0,
	},
	"Chainer": {
		"epoch       main/loss   validation/main/loss  elapsed_time\n1           0.192       0.0951                12.3\n",
		[]string{
			`csv step open join dedup iteration=1 epoch=1 loss=0.192 val_loss=0.0951 extra:elapsed_time="12.3"`,
		},
		0,
	},
	"spaCy": {
		"E    #       LOSS TOK2VEC  LOSS NER  SCORE \n---  ------  ------------  --------  ------\n  0     200         23.54   1204.11    0.45\n",
		[]string{
			"csv step open join dedup iteration=200 extra:E=0 extra:LOSS TOK2VEC=23.54 extra:LOSS NER=1204.11 extra:SCORE=0.45",
		},
		0,
	},
	"YOLO": {
		"      Epoch    GPU_mem   box_loss  Instances       Size\n        1/2      2.51G      3.538          4        640: 83% ━━━ 5/6 5.3it/s 1.4s<0.2s\n" +
			"        1/2      2.51G      3.538          4        640: 100% ━━━ 6/6 4.4it/s 1.4s\n        2/2      2.51G      3.238          4        640: 100%|███| 6/6 [01:05<00:00,  4.4it/s]\n",
		[]string{
			"csv step open join dedup iteration=1 iterations=2 epoch=1 duration=1.4 mem_reserved=2510000000 extra:box_loss=3.538 extra:Instances=4 extra:Size=640",
			"csv step open join dedup iteration=2 iterations=2 epoch=2 duration=65 mem_reserved=2510000000 extra:box_loss=3.238 extra:Instances=4 extra:Size=640",
		},
		0,
	},
	"Ultralytics' results.csv": {
		"                  epoch,             time,    train/box_loss,  val/box_loss\n                      1,          12.5,           3.5,   3.2\n",
		[]string{
			"csv step open join dedup iteration=1 epoch=1 extra:train/box_loss=3.5 extra:val/box_loss=3.2",
		},
		0,
	},
	// A truncated row is not a row of fewer cells.
	"broken": {"step,loss,lr\n1,2.5\n2,2.5,1e-4,7\n3,\"2.5,1e-4\nx\n1,2,text\n", []string{`csv step open join dedup iteration=1 loss=2 extra:lr="text"`}, 2},
	"none": {
		"step,time\n1,2\nloss,lr\n1,2\nstep, and then the loss of it all, which is here\n1,2,3\nstep,step,loss\n1,1,2\nstep,loss: 5\n1,2\n1,2,3\nstep,loss=2\nstep,loss\nhello, world\n,\n,2\n5,\n\"\n" +
			"| step | time |\n| 1 | 2 |\nstep loss lr\n1 2 3\n  step  loss\n  1  2\n  a step and  its loss here\n  1  2  3\n|\n||\n",
		nil, 0,
	},
}

func TestLine(t *testing.T) {
	for name, c := range tables {
		t.Run(name, func(t *testing.T) {
			// Restarted at every line, as a collector may be.
			out := &recordtest.Sink{}
			var state []byte
			rejected := 0
			for text := range strings.SplitSeq(c.text, "\n") {
				p := table.New(nil)
				p.Restore(state)
				before := len(out.Got)
				v, reason, mine := p.Line([]byte(strings.TrimSuffix(text, "\r")), out)
				assert.Equal(t, len(out.Got) > before, v == tail.Record, text)
				assert.Equal(t, v != tail.Record && mine, reason != "", text)
				if v == tail.Rejected {
					rejected++
				}
				state = p.Save()
			}
			assert.Equal(t, c.want, out.Got)
			assert.Equal(t, c.rejected, rejected)
		})
	}
}

// CSVLogger rewrites its file with more columns: the key of a row is made of its values, not of their places.
func TestKeyOfARowWrittenAnew(t *testing.T) {
	keys := func(lines ...string) []string {
		p, out := table.New(nil), &recordtest.Sink{}
		for _, l := range lines {
			p.Line([]byte(l), out)
		}
		assert.Equal(t, 1, out.Retellings)
		return out.Keys
	}
	assert.Equal(t, keys("epoch,step,train_loss", "0,1,2.5"), keys("epoch,lr,step,train_loss,val_loss", "0,,1,2.5,"))
	assert.NotEqual(t, keys("epoch,step,train_loss", "0,1,2.5"), keys("epoch,step,train_loss", "0,1,2.25"))
	assert.NotEqual(t, keys("step,val_loss,x_loss", "1,,2.5"), keys("step,val_loss,x_loss", "1,2.5,"))
}

func FuzzLine(f *testing.F) {
	for _, c := range tables {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, out := table.New(nil), &recordtest.Sink{}
		for text := range strings.SplitSeq(string(b), "\n") {
			before := len(out.Got)
			if v, reason, mine := p.Line([]byte(text), out); (v == tail.Record) != (len(out.Got) > before) || mine && (v == tail.Record) != (reason == "") {
				t.Fatalf("%q: %d %q %v", text, v, reason, mine)
			}
			p.Restore(p.Save())
		}
	})
}

func BenchmarkLine(b *testing.B) {
	for name, text := range map[string]string{
		"row":   "0,0.01,1,,11.587385177612305,",
		"other": "The attention mask and the pad token id were not set. As a consequence, you may observe unexpected behavior.",
	} {
		b.Run(name, func(b *testing.B) {
			p, out, line := table.New(nil), &recordtest.Discard{}, []byte(text)
			p.Line([]byte("epoch,lr,step,train_loss_epoch,train_loss_step,val_loss"), out)
			b.ReportAllocs()
			for b.Loop() {
				p.Line(line, out)
			}
		})
	}
}
