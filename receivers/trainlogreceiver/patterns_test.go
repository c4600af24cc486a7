package trainlogreceiver

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pattern"
)

// lines have the form of the trainers, with invented numbers.
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

// sourced are lines of trainers with a source of their own.
var sourced = map[string]map[string]string{
	"nanogpt": {
		"iter 100: loss 2.3456, time 45.23ms, mfu 30.12%":  "step iteration=100 duration=0.04523(ms) loss=2.3456 mfu=0.3012(%)",
		"iter 4: loss 10.9, time 31212.01ms, mfu -100.00%": "step iteration=4 duration=31.21201(ms) loss=10.9",
		"iter 7: loss nan, time 45.23ms, mfu 0.00%":        "step iteration=7 duration=0.04523(ms) loss=NaN mfu=0(%)",
		"iter 7: loss 2.1, time 45.23ms":                   "step iteration=7 duration=0.04523(ms) loss=2.1",
		"iter 7: loss 2.1, time 45.23ms, mfu 30.12%, lr 1": "step iteration=7 duration=0.04523(ms) loss=2.1 mfu=0.3012(%)",
		"step 250: train loss 2.3012, val loss 2.4103":     "evaluation iteration=250 val_loss=2.4103 extra:train_loss=2.3012",
	},
	"nanochat": {
		"step 00012/21400 (0.06%) | loss: 4.512345 | lrm: 1.00 | dt: 345.67ms | tok/sec: 1,516,789 | bf16_mfu: 45.12 | epoch: 1 pq: 0 rg: 3 | total time: 0.05m | eta: 120.0m": "step iteration=12 iterations=21400 epoch=1 duration=0.34567(ms) loss=4.512345 tokens/s=1516789 mfu=0.4512(%) extra:lrm=1",
		// October 2025, with the gradient's norm; mfu was of the same devices.
		"step 00000/21400 (0.00%) | loss: 11.090355 | grad norm: 0.1234 | lrm: 1.00 | dt: 24100.50ms | tok/sec: 21,754 | mfu: 0.65 | total time: 0.00m": "step iteration=0 iterations=21400 duration=24.1005(ms) loss=11.090355 grad_norm=0.1234 tokens/s=21754 mfu=0.0065(%) extra:lrm=1",
		"step 00001/21400 (0.00%) | loss: 11.090355 | lrm: 1.00 | dt: 24100.50ms | tok/sec: 21,754 | mfu: 0.65 | total time: 0.00m":                     "step iteration=1 iterations=21400 duration=24.1005(ms) loss=11.090355 tokens/s=21754 mfu=0.0065(%) extra:lrm=1",
		"step 00101 (3.25%) | loss: 1.100000 | lrm: 0.50 | dt: 500.00ms | tok/sec: 1,048,576 | mfu: 50.00 | epoch: 2 | total time: 1.50m":               "step iteration=101 epoch=2 duration=0.5(ms) loss=1.1 tokens/s=1048576 mfu=0.5(%) extra:lrm=0.5",
		"step 00101 (3.25%) | loss: nan | lrm: 0.50 | dt: 500.00ms | tok/sec: 1,048,576 | mfu: inf":                                                     "step iteration=101 duration=0.5(ms) loss=NaN tokens/s=1048576 mfu=+Inf(%) extra:lrm=0.5",
		"Step 00250 | Validation bpb: 0.912345":                                         "evaluation iteration=250 extra:Validation bpb=0.912345",
		"Step 02000 | CORE metric: 0.1234":                                              "evaluation iteration=2000 extra:CORE metric=0.1234",
		"Step 00100 | Validation loss: 1.012345":                                        "evaluation iteration=100 val_loss=1.012345",
		"Step 00100 | ChatCORE: 0.1000 | ChatCORE_cat: 0.2000":                          "evaluation iteration=100 extra:ChatCORE=0.1 extra:ChatCORE_cat=0.2",
		"Step 60 | Pass@1: 0.0125, Pass@2: 0.0250":                                      "evaluation iteration=60 extra:Pass@1=0.0125",
		"Step 00101/00700 | Training loss: 1.100000| lrm: 0.500000| num_tokens: 12,345": "step iteration=101 iterations=700 loss=1.1 tokens=12345 extra:lrm=0.5",
		"Step 5/467 | Average reward: 0.28125 | Average sequence length: 199.50":        "step iteration=5 iterations=467 extra:Average reward=0.28125 extra:Average sequence length=199.5",
	},
	"litgpt": {
		"Epoch 1 | iter 100 step 25 | loss train: 1.913, val: n/a | iter time: 120.12 ms (step) remaining time: 0:01:02": "step iteration=100 epoch=1 duration=0.12012(ms) loss=1.913 extra:step=25",
		"Epoch 2 | iter 101 step 25 | loss train: nan, val: 2.013 | iter time: 98.00 ms":                                 "step iteration=101 epoch=2 duration=0.098(ms) loss=NaN extra:step=25",
		"iter 100 step 25 | loss train: 1.913, val: n/a | iter time: 120.12 ms (step) remaining time: 0:01:02":           "step iteration=100 duration=0.12012(ms) loss=1.913 extra:step=25",
		"iter 100 step 25: loss 1.9134, iter time: 120.12ms (optimizer.step)":                                            "step iteration=100 duration=0.12012(ms) loss=1.9134 extra:step=25",
		"iter 100: val loss 2.0134, val time: 1234.56 ms":                                                                "evaluation iteration=100 duration=1.23456(ms) val_loss=2.0134",
		"iter 100: val loss 2.0134, val time: 1234.56ms":                                                                 "evaluation iteration=100 duration=1.23456(ms) val_loss=2.0134",
		"iter 100: val loss 2.0134":                           "evaluation iteration=100 val_loss=2.0134",
		"Final evaluation | val loss: 1.853 | val ppl: 6.379": "evaluation val_loss=1.853 ppl=6.379",
	},
	"torchtune": {
		"Step 12 | loss:2.3456 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_active:10.5 peak_memory_alloc:10.5 peak_memory_reserved:11.25 grad_norm:1.5 ": "step iteration=12 loss=2.3456 lr=2e-05 grad_norm=1.5 device_tokens/s=1234.5 mem_peak=11274289152(GiBy) mem_reserved_peak=12079595520(GiBy) extra:peak_memory_active=10.5",
		"Step 12 | loss:2.3456 peak_memory_active:10.5 peak_memory_alloc:10.5 peak_memory_reserved:11.25":                                                          "step iteration=12 loss=2.3456 mem_peak=11274289152(GiBy) mem_reserved_peak=12079595520(GiBy) extra:peak_memory_active=10.5",
		"Step 12 | val_loss:2.25 ":                                       "evaluation iteration=12 val_loss=2.25",
		"Step 1 | loss:tensor(1.5, device='cuda:0') grad_norm:tensor(2)": "step iteration=1 loss=1.5 grad_norm=2",
		"Step 3 | loss:0.6 rewards/chosen:tensor(0.0125) rewards/accuracies:tensor(0.5000, device='npu:0') kind:dpo": `step iteration=3 loss=0.6 extra:rewards/chosen=0.0125 extra:rewards/accuracies=0.5 extra:kind="dpo"`,
		"Step 3 | scores:tensor(nan) loss:nan": "step iteration=3 loss=NaN extra:scores=NaN",
	},
	"keyvalue": {
		"completed step: 1, seconds: 0.277, TFLOP/s/device: 370.707, Tokens/s/device: 14774.896, total_weights: 31850, loss: 12.939": "step iteration=1 duration=0.277 loss=12.939 device_tokens/s=14774.896 device_flop/s=3.70707e+14(TFLOP/s) extra:total_weights=31850",
		"completed step: 2, seconds: 3.033, TFLOP/s/device: 340.650, loss: 1.989":                                                    "step iteration=2 duration=3.033 loss=1.989 device_flop/s=3.4065e+14(TFLOP/s)",
		"eval metrics after step: 99, loss=2.345, total_weights=65536":                                                               "evaluation iteration=99 val_loss=2.345 extra:total_weights=65536",
	},
}

// others are lines without a built-in pattern.
var others = []string{
	"", "iter ", "iter 5: loss 2.1", "iter x: loss 2.1, time 4ms", "the iter 5: loss 2.1, time 4ms", "step 250: train loss 2.3", "step 250: loss 2.3",
	"step 250: train loss a, val loss 2", "iter 7: loss x, time 4ms", "step 12 | loss: 2.1 | lr: 1e-5", "Step 5", "Step x | Validation loss: 1",
	"Step 12 | Saving checkpoint: now", "Step 5/467 | Example step 0 | Pass 1 | loss: -0.012345 | Average reward: 0.25", "step 00012/21400 (0.06%) | loss: 4.512345",
	"Epoch 3 | loss 2", "Epoch 1 | iter x step 2 | loss train: 1, iter time: 2 ms", "Final evaluation | val loss: ", "Epoch 3:  10%|█| 1/10 [00:00<00:01]",
	"iter 5 stepping on", "Step 5 | ", "Step x | loss:1", "Step 5 | loss: 1.5", "Step 5 | saved", "step 5 | loss:1",
}

func TestBuiltinPatterns(t *testing.T) {
	used := make([]bool, len(builtin))
	check := func(source string, lines map[string]string) {
		for line, want := range lines {
			assert.Equal(t, want, recordtest.Parser{Source: source, Parse: pattern.NewSet(builtin, nil).New(nil).Parse}.Line(line), line)
			for i := range builtin {
				var rec record.Record
				if found, _ := pattern.NewSet(builtin[i:i+1], nil).New(nil).Parse([]byte(line), &rec); found {
					used[i] = true
					break
				}
			}
		}
	}
	check(pattern.Source, lines)
	for source, lines := range sourced {
		check(source, lines)
	}
	for i := range builtin {
		assert.True(t, used[i], "no line is like pattern %d: %s", i, builtin[i])
	}
	for _, line := range others {
		assert.Empty(t, recordtest.Parser{Parse: pattern.NewSet(builtin, nil).New(nil).Parse}.Line(line), line)
	}
}

func FuzzBuiltinPatterns(f *testing.F) {
	seeds := slices.Concat(others, slices.Collect(maps.Keys(lines)))
	for _, lines := range sourced {
		seeds = slices.AppendSeq(seeds, maps.Keys(lines))
	}
	recordtest.Parser{Parse: pattern.NewSet(builtin, nil).New(nil).Parse}.Fuzz(f, seeds)
}

func BenchmarkBuiltinPatterns(b *testing.B) {
	recordtest.Parser{Parse: pattern.NewSet(builtin, nil).New(nil).Parse}.Bench(b, map[string]string{
		"nanogpt": "iter 100: loss 2.3456, time 45.23ms, mfu 30.12%", "nanogpt, result": "step 250: train loss 2.3012, val loss 2.4103",
		"nanochat": "step 00012/21400 (0.06%) | loss: 4.512345 | lrm: 1.00 | dt: 345.67ms | tok/sec: 1,516,789 | bf16_mfu: 45.12 | epoch: 1 pq: 0 rg: 3 | " +
			"total time: 0.05m | eta: 120.0m",
		"nanochat, result": "Step 00250 | Validation bpb: 0.912345",
		"litgpt":           "Epoch 1 | iter 100 step 25 | loss train: 1.913, val: n/a | iter time: 120.12 ms (step) remaining time: 0:01:02",
		"litgpt, result":   "iter 100: val loss 2.0134, val time: 1234.56 ms",
		"torchtune": "Step 12 | loss:2.3456 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_active:10.5 peak_memory_alloc:10.5 " +
			"peak_memory_reserved:11.25 grad_norm:1.5 ",
		"torchtune, result": "Step 12 | val_loss:2.25 ", "other": "number of parameters: 10.65M",
	})
}
