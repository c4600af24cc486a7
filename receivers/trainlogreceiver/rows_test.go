package trainlogreceiver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// rowTests are rows of steps, epoch by epoch, with another row behind each epoch. The shapes are those of Lightning's CSVLogger
// (lightning/fabric/loggers/csv_logs.py), of MAE's log.txt (facebookresearch/mae, main_pretrain.py and main_finetune.py), of MMEngine's scalars.json
// (open-mmlab/mmengine, mmengine/hooks/logger_hook.py) and of scripts that print JSON.
var rowTests = map[string]struct {
	file              string
	head              string
	step, other       func(epoch, i int) string
	steps, evaluation int
}{
	"Lightning, train_loss_epoch and train_acc": {
		file: "metrics.csv", head: "epoch,step,train_acc,train_loss_epoch,train_loss_step,val_loss",
		step:  func(e, i int) string { return fmt.Sprintf("%d,%d,,,%d.5,", e, e*115+i*10+9, i) },
		other: func(e, _ int) string { return fmt.Sprintf("%d,%d,0.7,2.5,,", e, e*115+114) },
		steps: 30, evaluation: 3,
	},
	"objects, train_loss_epoch": {
		file: "train.jsonl",
		step: func(e, i int) string {
			return fmt.Sprintf(`{"epoch": %d, "step": %d, "train_loss_step": 2.5}`, e, e*115+i*10+9)
		},
		other: func(e, _ int) string {
			return fmt.Sprintf(`{"epoch": %d, "step": %d, "train_loss_epoch": 2.25}`, e, e*115+114)
		},
		steps: 30, evaluation: 3,
	},
	"objects of epochs among those of steps": {
		file: "train.jsonl",
		step: func(e, i int) string {
			return fmt.Sprintf(`{"epoch": %d, "step": %d, "loss": 2.5, "step_time": 1}`, e, e*10+i)
		},
		other: func(e, _ int) string {
			return fmt.Sprintf(`{"epoch": %d, "train_loss": 2.5, "val_loss": 2.75, "epoch_time": 100}`, e)
		},
		steps: 30, evaluation: 3,
	},
	"MAE's log.txt": {
		file: "log.txt",
		step: func(e, i int) string {
			return fmt.Sprintf(`{"train_lr": 0.0001, "train_loss": 2.5, "test_loss": 1.9, "test_acc1": 50.0, "epoch": %d, "n_parameters": 86567656}`, e*10+i)
		},
		evaluation: 30,
	},
	"a split": {
		file:  "train.jsonl",
		step:  func(e, i int) string { return fmt.Sprintf(`{"split": "train", "step": %d, "loss": 2.5}`, e*10+i) },
		other: func(e, _ int) string { return fmt.Sprintf(`{"split": "val", "step": %d, "loss": 2.75}`, e*10+9) },
		steps: 30, evaluation: 3,
	},
	"MMEngine's mode": {
		file: "scalars.json",
		step: func(e, i int) string {
			return fmt.Sprintf(`{"mode": "train", "epoch": %d, "iter": %d, "lr": 0.01, "loss": 2.5, "time": 1.0}`, e, e*10+i)
		},
		other: func(e, _ int) string {
			return fmt.Sprintf(`{"mode": "val", "epoch": %d, "iter": %d, "lr": 0.01, "mAP": 0.2}`, e, e*10+9)
		},
		steps: 30, evaluation: 3,
	},
	"steps with the mean of the epoch so far": {
		file: "train.jsonl",
		step: func(e, i int) string {
			return fmt.Sprintf(`{"step": %d, "epoch": %d, "loss": 2.5, "avg_loss_epoch": 2.25}`, e*10+i, e)
		},
		steps: 30,
	},
	"steps without a number": {
		file:  "train.jsonl",
		step:  func(e, _ int) string { return fmt.Sprintf(`{"epoch": %d, "loss": 2.5}`, e) },
		steps: 30,
	},
}

// TestRowsThatAreNoSteps: rows of an epoch and of held-out data, among rows of steps, are evaluations.
func TestRowsThatAreNoSteps(t *testing.T) {
	for name, tt := range rowTests {
		t.Run(name, func(t *testing.T) {
			var lines []string
			if tt.head != "" {
				lines = append(lines, tt.head)
			}
			for e := range 3 {
				for i := range 10 {
					lines = append(lines, tt.step(e, i))
				}
				if tt.other != nil {
					lines = append(lines, tt.other(e, 0))
				}
			}
			r := read(t, nil, filereceivertest.Write(t, tt.file, lines...))
			assert.Len(t, r.All(spans.SpanStep), tt.steps)
			assert.Len(t, r.All(spans.SpanEvaluation), tt.evaluation)
		})
	}
}

// TestDeepSpeedBelowMegatron: DeepSpeed's lines and Megatron's line of one step, in either order, are one step with the values of all lines.
func TestDeepSpeedBelowMegatron(t *testing.T) {
	for _, megatronFirst := range []bool{false, true} {
		var lines []string
		for i := 1; i <= 40; i++ {
			at := fmt.Sprintf("2026-06-12 10:%02d:%02d", 30+i*3/60, i*3%60)
			of := []string{
				fmt.Sprintf("[%s,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=%d, skipped=0, lr=[0.0001, 0.0001], mom=[(0.9, 0.95), (0.9, 0.95)]", at, i),
				fmt.Sprintf("[%s,124] [INFO] [timer.py:260:stop] epoch=0/micro_step=%d/global_step=%d, RunningAvgSamplesPerSec=10.5, CurrSamplesPerSec=10.6, "+
					"MemAllocated=20.1GB, MaxMemAllocated=30.2GB", at, 2*i, i),
			}
			megatron := fmt.Sprintf(" iteration %8d/     100 | consumed samples: %12d | elapsed time per iteration (s): 3.02 | learning rate: 1.000E-04 | "+
				"global batch size:    32 | lm loss: 2.500000E+00 | loss scale: 1.0 | grad norm: 1.2 |", i, i*32)
			if megatronFirst {
				of = append([]string{megatron}, of...)
			} else {
				of = append(of, megatron)
			}
			lines = append(lines, of...)
		}
		r := read(t, nil, filereceivertest.Write(t, "train.log", lines...))
		got := r.All(spans.SpanStep)
		assert.Len(t, got, 40)
		for _, s := range got {
			for _, name := range []string{spans.AttrLoss, spans.AttrMemoryPeak, spans.AttrSkippedIterations} {
				_, has := s.Attributes().Get(name)
				assert.True(t, has, "%s, Megatron first %t", name, megatronFirst)
			}
		}
	}
}
