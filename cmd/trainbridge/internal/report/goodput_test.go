package report

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A log of steps has the goodput of Google's library, in text and page too. The library's answers are recorded beside the account's tests.
func TestGoodputOfALog(t *testing.T) {
	text, err := os.ReadFile("../../../../internal/account/testdata/goodput/jobs.json")
	require.NoError(t, err)
	var jobs []struct {
		Name      string
		Steps     [][3]int64 // number, start and end, µs
		StepsOnly float64    `json:"steps_only"`
	}
	require.NoError(t, json.Unmarshal(text, &jobs))
	tried := 0
	for _, j := range jobs {
		if !strings.HasSuffix(j.Name, "seed 0") || strings.Contains(j.Name, "left-out") {
			continue
		}
		tried++
		var rows strings.Builder
		for _, s := range j.Steps {
			fmt.Fprintf(&rows, `{"timestamp": %q, "step": %d, "step_time": %f, "loss": 2}`+"\n", time.UnixMicro(s[2]).UTC().Format(time.RFC3339Nano), s[0], float64(s[2]-s[1])/1e6)
		}
		log := write1(t, "train.jsonl", rows.String())
		stdout, err := report(t, "", log, "--format", "json")
		require.NoError(t, err)
		var doc struct {
			Jobs []struct {
				Account struct {
					Google float64  `json:"goodput_google"`
					CRE    *float64 `json:"goodput_nvidia_cre"`
					ETTR   *float64 `json:"ettr_meta"`
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
		require.Len(t, doc.Jobs, 1)
		assert.InDelta(t, j.StepsOnly, doc.Jobs[0].Account.Google, 1e-9, j.Name)
		assert.NotNil(t, doc.Jobs[0].Account.CRE, j.Name)
		assert.NotNil(t, doc.Jobs[0].Account.ETTR, j.Name)
		for _, flags := range [][]string{{"--full"}, {"--full", "--lang", "zh"}, {"--format", "html"}} {
			stdout, err = report(t, "", append(flags, log)...)
			require.NoError(t, err)
			for _, by := range []string{"trainbridge", "Google", "NVIDIA CRE", "Meta (ETTR)"} {
				assert.Contains(t, stdout, by, j.Name)
			}
		}
	}
	assert.Greater(t, tried, 10)
}

// Without a clock only our own goodput is known, of the time of the steps.
func TestGoodputWithoutAClock(t *testing.T) {
	log := write1(t, "train.jsonl", strings.Repeat(`{"step": 1, "loss": 2.5, "step_time_s": 0.5}`+"\n", 1)+`{"step": 2, "loss": 2, "step_time_s": 0.5}`+"\n")
	stdout, err := report(t, "", log, "--format", "json")
	require.NoError(t, err)
	for _, key := range []string{`"goodput_google": null`, `"goodput_nvidia_cre": null`, `"ettr_meta": null`, `"goodput": 1`} {
		assert.Contains(t, stdout, key)
	}
}
