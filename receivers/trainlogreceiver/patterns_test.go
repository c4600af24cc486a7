package trainlogreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pattern"
)

// lines are of the form that the trainers print, and the numbers ours.
var lines = map[string]string{
	"step:1/1395 train_loss:10.8258 train_time:1000ms step_avg:nanms":                                                         "step iteration=1 iterations=1395 loss=10.8258",
	"step:2/1395 train_time:1250ms step_avg:125.00ms":                                                                         "step iteration=2 iterations=1395",
	"step:125/1395 val_loss:4.5 train_time:32000ms step_avg:125.00ms":                                                         "evaluation iteration=125 iterations=1395 val_loss=4.5",
	"step:3/1395 train_loss:9.5 train_time:1.750s step_avg:150.00ms":                                                          "step iteration=3 iterations=1395 loss=9.5",
	"step:4/1395 train_time:2.000s step_avg:150.00ms":                                                                         "step iteration=4 iterations=1395",
	"step:250/1395 val_loss:4.25 train_time:40.000s step_avg:150.00ms":                                                        "evaluation iteration=250 iterations=1395 val_loss=4.25",
	"step   12/18865 | loss 7.835219 (+1.20z)| norm 2.5000 (+nanz)| lr 1.03e-05 | 1234.50 ms | 58.1% bf16 MFU | 412345 tok/s": "step iteration=12 iterations=18865 duration=1.2345(ms) loss=7.835219 lr=1.03e-05 grad_norm=2.5 tokens/s=412345 mfu=0.581(%)",
	"step   12/18865 | loss 7.835219 (+1.20z)| norm 2.5000 (+nanz)| lr 1.03e-05 | 1234.50 ms | n/a MFU | 412345 tok/s":        "step iteration=12 iterations=18865 duration=1.2345(ms) loss=7.835219 lr=1.03e-05 grad_norm=2.5 tokens/s=412345",
	"s:12 trl:9.5 lr:0.000009 norm:5.25":                                                                                      "step iteration=12 loss=9.5 lr=9e-06 grad_norm=5.25",
	"s:12 trl:9.5 lr:0.000009":                                                                                                "step iteration=12 loss=9.5 lr=9e-06",
	"s:12 trl:9.5":                                                                                                            "step iteration=12 loss=9.5",
	"s:250 tel:6.25":                                                                                                          "evaluation iteration=250 val_loss=6.25",
	"Iter 10: Train loss 2.258, Learning Rate 5.000e-02, It/sec 40.000, Tokens/sec 19401.625, Trained Tokens 5120, Peak mem 1.500 GB":                                       "step mean iteration=10 duration=0.025 loss=2.258 lr=0.05 consumed_tokens=5120 tokens/s=19401.625 mem_peak=1610612736(GiBy)",
	"Iter 10: Train loss 2.258, It/sec 40.000, Tokens/sec 19401.625, Trained Tokens 5120":                                                                                   "step mean iteration=10 duration=0.025 loss=2.258 consumed_tokens=5120 tokens/s=19401.625",
	"Iter 10: Val loss 2.376, Val took 0.157s":                                                                                                                              "evaluation iteration=10 duration=0.157 val_loss=2.376",
	"Step 6 |   2m 11s | Loss -0.0126 | Entropy 0.4100 | Mismatch KL 0.0012 | Grad. Norm 0.2100 | LR 1.00e-06 | Throughput 41231 tokens/s | MFU 21.2% | Peak Mem. 34.1 GiB": "step iteration=6 duration=131 loss=-0.0126 tokens/s=41231 mfu=0.212(%) mem_peak=36614596198.4(GiBy)",
	"Step 6 |   874ms | Loss -0.0126 | Entropy 0.4100":                                                                                                                      "step iteration=6 duration=0.874 loss=-0.0126",
	"Step 2 |   13.3s | Reward 0.3800 | Trainable 120/128 (93.8%) | Turns 1.0":                                                                                              "step iteration=2 duration=13.3 extra:reward=0.38",
	"Step 0 | Time: 13.89s | Reward: 0.4622 | Throughput: 2408.9 tokens/s | Seq. Length: 345.6 tokens/sample":                                                               "step iteration=0 duration=13.89 tokens/s=2408.9 extra:reward=0.4622",
	"Epoch: [0][ 10/391]\tTime  0.250 ( 0.310)\tData  0.005 ( 0.010)\tLoss 6.9069e+00 (6.9100e+00)\tAcc@1   0.78 (  0.50)\tAcc@5   2.34 (  2.00)":                           "step iteration=10 iterations=391 epoch=0 duration=0.25 loss=6.9069 stage:data_time=0.005",
	"Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.305751":                                                                                                                       "step epoch=1 loss=2.305751 extra:samples=640",
	"loss: 2.364083  [   64/60000]": "step loss=2.364083 extra:samples=64",
	"Train: 0 [  50/1251 (  4%)]  Loss: 6.93 (6.94)  Time: 0.228s,  561.40/s  (0.250s,  512.00/s)  LR: 1.000e-05  Data: 0.010 (0.020)":                                                                                                                                   "step iteration=50 iterations=1251 epoch=0 duration=0.228 loss=6.93 lr=1e-05 samples/s=561.4 stage:data_time=0.01",
	"{ Epoch:[  1/  2], step:[    4/   10], loss:[10.200/10.350], per_step_time: 1026ms, lr: 9.9999e-06, overflow cond: False, loss_scale: 65536.0, global_norm: [12.345678]":                                                                                            "step iteration=4 iterations=20 epoch=1 duration=1.026(ms) loss=10.2 lr=9.9999e-06 loss_scale=65536",
	"{ Epoch:[  1/  2], step:[    4/   10], loss: 10.200, per_step_time: 1026ms, lr: 9.9999e-06, overflow cond: False, loss_scale: 65536.0, global_norm: [12.345678], train_throughput_per_npu: 112.345T":                                                                "step iteration=4 iterations=20 epoch=1 duration=1.026(ms) loss=10.2 lr=9.9999e-06 loss_scale=65536",
	"TRAIN | steps/sec 4.0| Batch 0/100 loss 116.040000 loss_att 104.436000 loss_ctc 150.852000 th_accuracy 0.109900 lr 4.9000e-06 grad_norm 12.677969 rank 0":                                                                                                           "step mean rank=0 iteration=100 epoch=0 duration=0.25 loss=116.04 lr=4.9e-06 grad_norm=12.677969",
	"CV | steps/sec 38.123| Batch 0/100 loss 80.100000 loss_att 70.100000 loss_ctc 100.200000 th_accuracy 0.200000 ":                                                                                                                                                     "evaluation iteration=100 epoch=0 val_loss=80.1",
	"trainer process   0 step        2] loss=10.88 aux={'per_label_loss': 'T(8, 2048)', 'num_targets': 16384.0}":                                                                                                                                                         "step iteration=2 loss=10.88",
	"1epoch:train:51-100batch: iter_time=1.200e-04, forward_time=0.071, loss_ctc=110.300, loss_att=83.100, acc=0.200, loss=91.770, backward_time=0.065, grad_norm=33.400, clip=100.000, loss_scale=1.000, optim_step_time=0.031, optim0_lr0=2.000e-03, train_time=0.366": "step iteration=100 epoch=1 duration=0.366 loss=91.77 grad_norm=33.4 stage:data_time=0.00012 stage:forward_time=0.071 stage:backward_time=0.065",
	"loss = 2.1, step = 100 (12.5 sec)":                "step iteration=100 loss=2.1",
	"loss = 2.3123517, step = 0":                       "step iteration=0 loss=2.3123517",
	"Training loss (for 1 batch) at step 10: 2.0954":   "step iteration=10 loss=2.0954",
	"Training loss (for one batch) at step 10: 2.0954": "step iteration=10 loss=2.0954",
	"step 50 train loss: 0.75 test loss: 0.5":          "evaluation iteration=50 val_loss=0.5",
	"Epoch Step:     41 | Accumulation Step:   5 | Loss:   0.99 | Tokens / Sec: 104322.7 | Learning Rate: 5.0e-02": "step iteration=41 loss=0.99 lr=0.05 tokens/s=104322.7",
	"0m 31s (- 9m 20s) (5000 6%) 2.8501": "step iteration=5000 loss=2.8501",
	"Ep. 1 : Up. 100 : Sen. 12,345 : Cost 9.25 * 34,567 @ 1,234 after 34,567 : Time 12.34s : 2801.23 words/s : gNorm 1.23":                                "step iteration=100 epoch=1 loss=9.25 tokens/s=2801.23",
	"Ep. 1 : Up. 100 : Sen. 12,345 : Cost 9.25 : Time 12.34s : 2801.23 words/s":                                                                           "step iteration=100 epoch=1 loss=9.25 tokens/s=2801.23",
	"Step 50/ 3000; acc: 5.54; ppl: 1234.50; xent: 7.11; lr: 0.00001; sents: 3000; bsz: 3000/3100/10; 12345/12456 tok/s;     12 sec;":                     "step iteration=50 iterations=3000 loss=7.11 lr=1e-05 extra:acc=5.54 extra:ppl=1234.5",
	"Step 50/ 3000; acc: 5.54; ppl: 1234.50; xent: 7.11; lr: 0.00001; 12345/12456 tok/s,     12 sec;":                                                     "step iteration=50 iterations=3000 loss=7.11 lr=1e-05 extra:acc=5.54 extra:ppl=1234.5",
	"epoch 1 - iter 12/120 - loss 2.34567890 - time (sec): 12.34 - samples/sec: 123.45 - lr: 0.100000":                                                    "step iteration=12 iterations=120 epoch=1 loss=2.3456789 samples/s=123.45",
	"Train loss 12 0.563423 Grad Norm 1.234567 0.56s/it":                                                                                                  "step iteration=12 duration=0.56 loss=0.563423 grad_norm=1.234567",
	"Iteration 100 (12.5 iter/s, 8s/100 iters), loss = 0.69":                                                                                              "step mean iteration=100 duration=0.08 loss=0.69",
	"Average loss at step  2000 :  113.9":                                                                                                                 "step iteration=2000 loss=113.9",
	"Average loss at step 2000: 113.9":                                                                                                                    "step iteration=2000 loss=113.9",
	`:::MLLOG {"namespace": "", "time_ms": 1577836800123, "key": "train_loss", "value": 0.25, "metadata": {"file": "a.py", "lineno": 1, "step_num": 12}}`: "step iteration=12 loss=0.25",
	"[3]\ttrain-rmse:1.00941\teval-rmse:1.17840":                                                                                                          "step iteration=3 loss=1.00941",
	"[3]\tvalidation_0-logloss:0.5":                                                                                                                       "step iteration=3 loss=0.5",
	"[3]\ttrain's l2: 0.5\tvalid's l2: 0.75":                                                                                                              "step iteration=3 loss=0.5",
	"[3]\ttrain_set's l2: 0.5":                                                                                                                            "step iteration=3 loss=0.5",
	"[3]\tvalid_0's l2: 0.5":                                                                                                                              "evaluation iteration=3 val_loss=0.5",
	"[3]\tvalid's l2: 0.5":                                                                                                                                "evaluation iteration=3 val_loss=0.5",
	"[3]\ttraining's l2: 0.5\tvalid_1's l2: 0.75":                                                                                                         "step iteration=3 loss=0.5",
	"3:\tlearn: 1.0628625\ttest: 1.1268824\tbest: 1.1268824 (3)\ttotal: 215ms\tremaining: 1.13s":                                                          "step iteration=3 loss=1.0628625",
}

func TestBuiltinPatterns(t *testing.T) {
	used := make([]bool, len(builtin))
	for line, want := range lines {
		assert.Equal(t, want, recordtest.Parser{Source: pattern.Source, Parse: pattern.New(builtin, nil).Parse}.Line(line), line)
		for i := range builtin {
			var rec record.Record
			if found, _ := pattern.New(builtin[i:i+1], nil).Parse([]byte(line), &rec); found {
				used[i] = true
				break
			}
		}
	}
	for i := range builtin {
		assert.True(t, used[i], "no line is like pattern %d: %s", i, builtin[i])
	}
}
