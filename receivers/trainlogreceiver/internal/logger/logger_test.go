package logger

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// strip removes all pieces, and says of each whether a record may begin behind.
func strip(text string) (rests []string, p Prefix) {
	p.Reset()
	for b := []byte(text); ; {
		rest, ok := Next(b, &p)
		if !ok || len(rest) >= len(b) {
			return rests, p
		}
		b = rest
		if p.Sure {
			rests = append(rests, string(trim(rest)))
		}
	}
}

func trim(b []byte) []byte {
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	return b
}

func TestNext(t *testing.T) {
	const message = "step 0 loss 2.3641 time 0.023s"
	for _, prefix := range []string{
		"INFO trainer: ", "INFO:root:", "INFO:trainer.loop:", "WARNING:root:", "[__main__][INFO] - ", "INFO     ", "1795695222.196 7152 INFO ", "64891 INFO ",
		"11/26/2026 12:13:00 - INFO - __main__ - ", "11/26/2026 12:13:30 PM INFO     ", "[Nov 26 12:13:22 train INFO] ", "12:13:19 ", "| INFO     | __main__:loop:9 - ",
		"frames.py:15: ", "[12:14:31] INFO     ", "[info     ] ", "I1120 10:00:02.500000 139872345678912 logging_writer.py:48] ", "[11/26 12:29:12 d2.utils.events]:  ",
		"[11/26 12:29:14] d2.utils.events INFO:  ", "11/26 12:28:17 - mmengine - INFO - ", "2026/11/26 12:28:17 - mmengine - INFO - ",
		"- mindformers./output/log[mindformers/core/callback/callback.py:490] - INFO - ", "[node01] 2026-11-20 10:00:18,528 (trainer:732) INFO: ",
		"[rlvr_pipeline.py (840)] [INFO] [DRIVER 0 / 1][PID 21877] ", "model.py:918 - ", "| INFO | train_inner | ", "[12:22:27.148393] ", "09:14:36 SUCCESS ",
		"08/03 09:14:33 [INFO|DP=0]: ", "[rank 7] ", "[RANK0] ", "INFO     INFO:t:",
	} {
		rests, _ := strip(prefix + message)
		assert.Contains(t, rests, message, prefix)
	}
	rests, _ := strip("INFO     step 0 loss 2.3641 time 0.029s                   frames.py:9 ")
	assert.Contains(t, rests, "step 0 loss 2.3641 time 0.029s")
}

func TestRank(t *testing.T) {
	for text, want := range map[string]bool{
		"[rank2] step 5": true, "[RANK 2]  step 5": true, "[rank2]: step 5": false, "[step 2] loss 5": false, "[rank2, 3] step": false, "[rank2]": false,
		"rank2] step": false, "[": false,
	} {
		var p Prefix
		assert.Equal(t, want, Rank([]byte(text), &p), text)
		assert.Equal(t, Prefix{HasRank: want, Rank: map[bool]int64{true: 2}[want]}, p, text)
	}
}

func TestPrefix(t *testing.T) {
	for text, want := range map[string]Prefix{
		"[RANK3] x":                    {Sure: true, Rank: 3, HasRank: true, Seconds: math.NaN()},
		"[12:00:01.5] x":               {Sure: true, Seconds: 43201.5},
		"1795695222.196 71 INFO ":      {Sure: true, Seconds: 1795695222.196},
		"I1102 00:00:02.5 1 a.py:1] x": {Sure: true, Seconds: 2*86400 + 2.5},
	} {
		_, got := strip(text)
		if math.IsNaN(want.Seconds) {
			assert.True(t, math.IsNaN(got.Seconds), text)
			got.Seconds, want.Seconds = 0, 0
		}
		assert.Equal(t, want, got, text)
	}
}

// Text that is no logger's stays.
func TestStays(t *testing.T) {
	for _, text := range []string{
		"step: 5 loss: 2", "[2/20] loss: 2.4165", "[1,    20] loss: 2.091", "[train] step 5 loss 2", "[Epoch 0/2] [Batch 1/20]", "step 5 loss 2", "10/ 60: 2.0954",
		"Epoch: [0]  [ 10/45]", "epoch:1 step:5", "- 1s - 54ms/step", "| epoch   1 |", "(epoch: 1, iters: 10)", "loss: 2.36  [   64/ 3800]", "", "x", "[", "12:", "I1",
		"gpt-2 train loss 2.3", "gpt-2 epoch 3 loss 2.3", "gpt-2 loss 2.3",
	} {
		rests, p := strip(text)
		assert.Empty(t, rests, text)
		assert.False(t, p.Sure, text)
	}
}

func FuzzNext(f *testing.F) {
	f.Add("[12:14:31] INFO     step 0 loss 2.3641   frames.py:9")
	f.Add("I1120 10:00:02.500000 139872345678912 logging_writer.py:48] x")
	f.Fuzz(func(t *testing.T, text string) {
		var p Prefix
		p.Reset()
		for b, n := []byte(text), 0; ; n++ {
			rest, ok := Next(b, &p)
			if !ok {
				return
			}
			if len(rest) >= len(b) {
				t.Fatalf("%q: nothing was taken off", b)
			}
			b = rest
		}
	})
}

func TestRich(t *testing.T) {
	for in, want := range map[string]int{
		"[12:14:31] INFO     message": 20, "[08/03/26 09:14:22] WARNING  message": 29, "           INFO     message": 20, "INFO     message": 9,
		"INFO message": 0, "[12:14:31] INFO": 0, "[12:14:31] message": 0, "[step] INFO     message": 0, "": 0, "[": 0, "   ": 0, "[12:14:31]": 0, "[12:14:31] INFO      more": 0,
	} {
		if got := Rich([]byte(in)); got != want {
			t.Errorf("%q: %d", in, got)
		}
	}
	for in, want := range map[string]string{
		"lr: 1 train.py:41": "lr: 1", "lr: 1        train.py:41   ": "lr: 1", "lr: 1": "lr: 1", "train.py:41": "train.py:41", "lr: train.py": "lr: train.py", "": "",
	} {
		if got := string(CutPath([]byte(in))); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
