package tqdm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/tqdm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func show(text string) string {
	bar, n := tqdm.Parse([]byte(text))
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%q %g/%g %gs %.4gs/it %q +%d", bar.Desc, bar.Done, bar.Total, bar.Elapsed, bar.Per, bar.Postfix, len(text)-n)
}

var bars = map[string]string{
	"Epoch 0:  12%|█▎        | 1/8 [00:00<00:00, 41.65it/s, v_num=0, train_loss_step=16.20]": `"Epoch 0" 1/8 0s 0.02401s/it "v_num=0, train_loss_step=16.20" +0`,
	"  2%|▏         | 1/60 [00:55<54:36, 55.53s/it]{'loss': 1}":                              `"" 1/60 55s 55.53s/it "" +11`,
	"Epoch 1: : 1it [00:04,  4.36s/it, v_num=d3c7, reduced_train_loss=0.674]":                `"Epoch 1" 1/0 4s 4.36s/it "v_num=d3c7, reduced_train_loss=0.674" +0`,
	"Epoch 0: : 100%|██████████| 2000/2000 [43:24:54<00:00, reduced_train_loss=0.139]":       `"Epoch 0" 2000/2000 156294s 0s/it "reduced_train_loss=0.139" +0`,
	"Sanity Checking: |          | 0/? [00:00<?, ?it/s]":                                     `"Sanity Checking" 0/0 0s 0s/it "" +0`,
	"Epoch 0: |          | 5/? [00:01<?,  5.00it/s, loss=1]":                                 `"Epoch 0" 5/0 1s 0.2s/it "loss=1" +0`,
	"Epoch 0:   0%|          | 0/8 [00:00<?, ?it/s]":                                         `"Epoch 0" 0/8 0s 0s/it "" +0`,
	" 16%|█▌        | 1.25k/8.00k [00:10<00:54, 125it/s]":                                    `"" 1250/8000 10s 0.008s/it "" +0`, // unit_scale
	"  0%|          | 5.00/8.03k [00:10<4:26:30, 2.00s/it]":                                  `"" 5/8030 10s 2s/it "" +0`,
	"  2%|▏         | 123k/8.00M [00:10<10:38, 12.3kit/s]":                                   `"" 123000/8e+06 10s 8.13e-05s/it "" +0`,
	"  2%|▏         | 123k/8.00M [00:10<10:38, 12.3kex/s]":                                   `"" 123000/8e+06 10s 8.13e-05s/it "" +0`,
	"  2%|▏         | 5.00/8.00k [00:10<10:38, 1.25s/ex]":                                    `"" 5/8000 10s 1.25s/it "" +0`,
	"  2%|▏         | 5/80 [00:10<10:38, 1.25kex/s]":                                         `"" 5/80 10s 0.8s/it "" +0`,
	"  2%|▏         | 123k/8.00M [00:10<10:38, 1.25Tokens/s]":                                `"" 123000/8e+06 10s 0.8s/it "" +0`,
	"Epoch 0: |          | 1.25k/? [00:10<?,  125it/s]":                                      `"Epoch 0" 1250/0 10s 0.008s/it "" +0`,
	"1.25kit [00:10, 125it/s]":                                                               `"" 1250/0 10s 0.008s/it "" +0`,
	"17ex [01:40,  5.88s/ex]":                                                                `"" 17/0 100s 5.88s/it "" +0`,
	"17k [01:40,  5.88s/k]":                                                                  `"" 17/0 100s 5.88s/it "" +0`,
	"50%|##| 5/8x [00:10<00:54, 125it/s]":                                                    "",
	"17it [00:02,  6.21it/s]":                                                                `"" 17/0 2s 0.161s/it "" +0`,
	"1|5|Loss: 2.345:  10%|█ | 5/50 [00:05<00:45,  1.00s/it]":                                `"1|5|Loss: 2.345" 5/50 5s 1s/it "" +0`,
	"Epoch 0: 100%|███| 994/994 [03:44<00:00,  4.42batch/s, avg_loss=0.34]":                  `"Epoch 0" 994/994 224s 0.2262s/it "avg_loss=0.34" +0`,
	"steps:   5%|██    | 891/17824 [22:07<7:00:00,  1.49s/it, loss=0.123]":                   `"steps" 891/17824 1327s 1.49s/it "loss=0.123" +0`,
	"":                                       "",
	"50%|":                                   "",
	"50%|##|":                                "",
	"50%|##| 5/10 [":                         "",
	"50%|##| 5/10 [x<y, 3it/s]":              "",
	"loss went down 50%|about| half [today]": "",
	"[INFO] step 3/8 [worker]":               "",
	"step 17 [loss]":                         "",
}

func TestParse(t *testing.T) {
	for in, want := range bars {
		assert.Equal(t, want, show(in), in)
	}
}

func FuzzParse(f *testing.F) {
	for in := range bars {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if bar, n := tqdm.Parse(b); n < 0 || n > len(b) || n > 0 && (bar.Per < 0 || bar.Elapsed < 0) {
			t.Fatalf("%q: %d %+v", b, n, bar)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{
		"lightning": "Epoch 0:  12%|█▎        | 1/8 [00:00<00:00, 41.65it/s, v_num=0, train_loss_step=16.20]",
		"other":     "The attention mask and the pad token id were not set. As a consequence, you may observe unexpected behavior.",
	} {
		b.Run(name, func(b *testing.B) {
			in := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				tqdm.Parse(in)
			}
		})
	}
}
