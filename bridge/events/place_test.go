package events

import "testing"

func TestGlued(t *testing.T) {
	const trace = "Traceback (most recent call last):"
	for line, want := range map[string]string{
		"Epoch 0:  50%|█████     | 10/20 [00:00<00:00, 11.60it/s, train_loss=0.0444][rank2]: " + trace:                                                                                          "[rank2]: " + trace,
		"train: 10/20 [00:00<00:00, 11.60it/s]" + trace + "\r":                                                                                                                                  trace,
		"10/20 [00:00<00:00][rank3]:[E1126 16:35:41.066 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog":                                                                                            "[rank3]:[E1126 16:35:41.066 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog",
		" 59%|█████▊    | 1663/2840 [6:59:31<4:51:53, 14.88s/it]W1229 16:43:25.650000 190834 torch/distributed/elastic/agent/server/api.py:723] Received 1 death signal, shutting down workers": "W1229 16:43:25.650000 190834 torch/distributed/elastic/agent/server/api.py:723] Received 1 death signal, shutting down workers",
		"Epoch 1:  77%|███████▋  | 27/35 [00:12<00:03,  2.08it/s, loss=6.617]/usr/lib/distributed.py:25: UserWarning: Detected KeyboardInterrupt, attempting graceful shutdown...":              "/usr/lib/distributed.py:25: UserWarning: Detected KeyboardInterrupt, attempting graceful shutdown...",
		" 59%|█████▊    | 1663/2840 [6:59:31<4:51:53, 14.88s/it]{'loss': 0.06}":                                                                                                                 "",
		" 59%|█████▊    | 1663/2840 [6:59:31<4:51:53, 14.88s/it]  ":                                                                                                                             "",
		"step 3 at 2.1 it/s] Killed":                 "",
		"[rank2]: " + trace:                          "",
		trace:                                        "",
		"[rank2]: iter 5: loss 1.2, time 3ms":        "",
		"{\"step\": 1, \"text\": \"" + trace + "\"}": "",
	} {
		if got := string(Glued([]byte(line))); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
