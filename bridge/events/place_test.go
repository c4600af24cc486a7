package events

import "testing"

func TestGlued(t *testing.T) {
	const trace = "Traceback (most recent call last):"
	for line, want := range map[string]string{
		"Epoch 0:  50%|█████     | 10/20 [00:00<00:00, 11.60it/s, train_loss=0.0444][rank2]: " + trace: "[rank2]: " + trace,
		"train: 10/20 [00:00<00:00, 11.60it/s]" + trace + "\r":                                         trace,
		"10/20 [00:00<00:00][rank3]:[E1126 16:35:41.066 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog":   "[rank3]:[E1126 16:35:41.066 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog",
		"[rank2]: " + trace:                   "",
		trace:                                 "",
		"[rank2]: iter 5: loss 1.2, time 3ms": "",
		"{\"step\": 1, \"text\": \"" + trace + "\"}": "",
	} {
		if got := string(Glued([]byte(line))); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
