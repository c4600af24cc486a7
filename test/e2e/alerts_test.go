//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const rulesFile = "deploy/prometheus/rules.yml"

var badVerdict = regexp.MustCompile("(?m)^\\| `([a-z_]+)`(?:, cause `[a-z_]+`)? \\| [a-z, ]*bad")

// ruleCases returns the alerts for which promtool's tests have a case that fires, a case that does not, and a series with a gap.
func ruleCases(t *testing.T, tests string) (fires, silent, restarts map[string]bool) {
	t.Helper()
	var cases struct {
		Tests []struct {
			Name   string
			Series []struct{ Series, Values string } `yaml:"input_series"`
			Rules  []struct {
				Alert    string `yaml:"alertname"`
				Expected []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(tests), &cases))
	fires, silent, restarts = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range cases.Tests {
		for _, s := range c.Series {
			restarts[c.Name] = restarts[c.Name] || strings.Contains(s.Values, " _x")
		}
		for _, r := range c.Rules {
			fires[r.Alert] = fires[r.Alert] || len(r.Expected) > 0
			silent[r.Alert] = silent[r.Alert] || len(r.Expected) == 0
		}
	}
	return fires, silent, restarts
}

// Each rule of deploy/prometheus has a case that fires, a case that does not, a case with a restart, and a section of docs/alerts.md.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	page := func(path string) string {
		text, err := os.ReadFile(filepath.Join(repoRoot, path))
		require.NoError(t, err)
		return string(text)
	}
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		cmd := exec.Command(promtoolBin(t), args...)
		cmd.Dir = filepath.Join(repoRoot, filepath.Dir(rulesFile))
		out, err := cmd.CombinedOutput()
		require.NoErrorf(t, err, "promtool %v:\n%s", args, out)
	}

	tests := page("deploy/prometheus/rules_test.yml")
	fires, silent, restarts := ruleCases(t, tests)
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert               string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(page(rulesFile)), &rules))
	runbook, alerts := page("docs/alerts.md"), 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			alerts++
			assert.True(t, fires[r.Alert], "a case in which %s fires", r.Alert)
			assert.True(t, silent[r.Alert], "one in which it does not: %s", r.Alert)
			assert.True(t, restarts[r.Alert], "one with a restart: %s", r.Alert)
			assert.Contains(t, runbook, "\n## "+r.Alert+"\n")
			assert.Equal(t, "https://github.com/trainbridge/trainbridge/blob/main/docs/alerts.md#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
			assert.Contains(t, []string{"critical", "warning"}, r.Labels["severity"])
		}
	}
	assert.Equal(t, alerts, strings.Count(runbook, "\n## "), "sections of docs/alerts.md")
	assert.LessOrEqual(t, len(strings.Fields(runbook)), 700, "words of docs/alerts.md")

	verdicts := badVerdict.FindAllStringSubmatch(page("docs/reference/semconv.md"), -1)
	require.Greater(t, len(verdicts), 10)
	for _, v := range verdicts {
		assert.Contains(t, tests, fmt.Sprintf("trainbridge_verdict_name=%q, trainbridge_verdict_severity=\"bad\"", v[1]))
		assert.Contains(t, runbook, "`"+v[1]+"`")
	}
}

// alert is an alert as Prometheus returns it.
type alert struct {
	Labels          map[string]string
	State, ActiveAt string
}

// alerts are the alerts of a name, by run.
func (p *prometheus) alerts(name string) (map[string]alert, error) {
	var data struct{ Alerts []alert }
	if err := p.ask("/api/v1/alerts", nil, &data); err != nil {
		return nil, err
	}
	out := map[string]alert{}
	for _, a := range data.Alerts {
		if a.Labels["alertname"] == name {
			out[a.Labels["instance"]] = a
		}
	}
	return out, nil
}

// stepsOfJob is a job for sh that logs the given number of steps to a file, or until FILE.stop exists, and states its completion.
const stepsOfJob = `
i=0
while [ $i -lt $2 ] && [ ! -e "$1.stop" ]; do
  i=$((i+1))
  echo "{\"timestamp\": \"$(date -u +%FT%T.%NZ)\", \"step\": $i, \"loss\": 2.5, \"step_time_s\": 0.2}" >> "$1"
  sleep 0.2
done
echo "Training completed." >> "$1"
`

// shortRules are the rules of deploy/prometheus with TrainStepsStopped after 5 s, evaluated every second, as a part of Prometheus's configuration.
func shortRules(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot, rulesFile))
	require.NoError(tb, err)
	rules := string(text)
	for long, short := range map[string]string{
		"_seconds[15m])) > 600\n":    "_seconds[15m])) > 5\n",
		"- name: trainbridge-runs\n": "- name: trainbridge-runs\n    interval: 1s\n",
	} {
		require.Equal(tb, 1, strings.Count(rules, long), long)
		rules = strings.Replace(rules, long, short, 1)
	}
	return fmt.Sprintf("rule_files: [%q]", write(tb, "rules.yml", rules))
}

// A stopped job raises the alert, which survives a crash of the collector, and clears with the next step. A completed job raises none.
func TestStoppedJobRaisesAlert(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	stops, done := filepath.Join(logs, "stops.jsonl"), filepath.Join(logs, "done.jsonl")
	reader := func(name, path, run string) [2]string {
		return [2]string{name, fmt.Sprintf("{include: [%q], run_id: %s, service_name: gpt, storage: state_storage}", path, run)}
	}
	c := newCollector(t, trainbridgeBin(t), "", startSink(t).addr, readersConfig(nil, [][2]string{
		reader("train_log", stops, "stops"), reader("train_log/done", done, "done"),
	}))
	c.up(t)
	prom := startPrometheusWith(t, shortRules(t), nil, c.scrape[0])
	job := start(t, "stops", "/bin/sh", nil, "-c", stepsOfJob, "job", stops, "100000")
	code, _ := start(t, "done", "/bin/sh", nil, "-c", stepsOfJob, "job", done, "10").end(t)
	require.Zero(t, code)
	prom.awaitValues(t, map[string]float64{
		`ml_run_ended{instance="done", ml_run_outcome="success"}`: 1, `ml_run_ended{instance="stops", ml_run_outcome="success"}`: 0,
	})

	const name = "TrainStepsStopped"
	require.NoError(t, job.cmd.Process.Signal(syscall.SIGSTOP))
	// firing waits until the job is quiet for least seconds, by the collector's metric, and returns the alert's start.
	firing := func(least float64) (since string) {
		eventually(t, func() error {
			quiet, err := prom.value(`time() - ml_train_step_last_time_seconds{instance="stops"}`)
			if err != nil {
				return err
			}
			got, err := prom.alerts(name)
			if err == nil && (quiet < least || got["stops"].State != "firing" || got["done"].State != "") {
				err = fmt.Errorf("quiet for %.0f s: %v", quiet, got)
			}
			since = got["stops"].ActiveAt
			return err
		})
		return since
	}
	since := firing(8)
	c.kill()
	c.up(t)
	assert.Equal(t, since, firing(20), "it fired all the time")

	require.NoError(t, job.cmd.Process.Signal(syscall.SIGCONT))
	eventually(t, func() error {
		got, err := prom.alerts(name)
		if err == nil && len(got) > 0 {
			err = errors.New("the alert is still there")
		}
		return err
	})
	c.stop(t)
}
