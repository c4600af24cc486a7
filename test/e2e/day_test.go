//go:build e2e && release

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/porttest"
	"github.com/trainbridge/trainbridge/spans"
)

// system is this host in a mount namespace with private /etc, /usr and /var: packages installed there vanish with the namespace. No systemd runs in it.
type system struct{ pid string }

func newSystem(tb testing.TB) system {
	tb.Helper()
	p := start(tb, "system", "unshare", nil, "--mount", "sh", "-euc", `
mount -t tmpfs none "$1"
for dir in /etc /usr /var; do
  mkdir -p "$1/upper$dir" "$1/work$dir"
  mount -t overlay overlay -o "lowerdir=$dir,upperdir=$1/upper$dir,workdir=$1/work$dir" "$dir"
done
mount -t tmpfs none /run
echo ready
exec sleep infinity`, "sh", tb.TempDir())
	eventually(tb, func() error {
		if !p.running() {
			return fatal(errors.New(p.output(tb)))
		}
		if !p.logged("ready") {
			return errors.New("the namespace is not ready")
		}
		return nil
	})
	return system{strconv.Itoa(p.cmd.Process.Pid)}
}

// run runs commands as root, and returns their output.
func (s system) run(tb testing.TB, commands string) string {
	tb.Helper()
	out, err := exec.Command("nsenter", "--target", s.pid, "--mount", "sh", "-euc", commands).CombinedOutput()
	require.NoErrorf(tb, err, "%s\n%s", commands, out)
	return string(out)
}

// systemctl starts trainbridge.service as systemd does: with its user, state directory, environment and command.
func (s system) systemctl(tb testing.TB) *process {
	tb.Helper()
	return start(tb, "trainbridge", "nsenter", nil, "--target", s.pid, "--mount", "sh", "-ec", `
unit() { sed -n "s/^$1=//p" /usr/lib/systemd/system/trainbridge.service; }
set -a
. "$(unit EnvironmentFile | sed s/^-//)"
eval "$(unit Environment)"
set +a
umask "$(unit UMask)"
install -d -m "$(unit StateDirectoryMode)" -o "$(unit User)" -g "$(unit Group)" "/var/lib/$(unit StateDirectory)"
cd "$(unit WorkingDirectory)"
eval "exec setpriv --reuid=$(unit User) --regid=$(unit Group) --init-groups --no-new-privs --bounding-set=-all --pdeathsig=KILL $(unit ExecStart)"`)
}

// An administrator's day: the deb is installed, its service reads a growing job, the job's numbers are on the page, the job stops and an alert fires, the deb
// is upgraded under the running job, and removed. Each line of the job is exactly one span.
func TestReleaseDay(t *testing.T) { //nolint:funlen // one day, hour by hour
	logs, err := os.MkdirTemp("", "day") //nolint:usetesting // the service's user may not enter the test's
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(logs) })
	require.NoError(t, os.Chmod(logs, 0o755))
	log, ports := filepath.Join(logs, "train.jsonl"), [5]int{}
	for i := range ports {
		ports[i] = porttest.On(t, porttest.Host)
	}
	j, host := startJaeger(t), newSystem(t)
	deb, err := filepath.Abs(dist("trainbridge_" + releaseVersion(t) + "_amd64.deb"))
	require.NoError(t, err)
	install := "dpkg -i "
	newer, tree := filepath.Join(t.TempDir(), "newer.deb"), t.TempDir()
	run(t, nil, "dpkg-deb", "-R", deb, tree)
	run(t, nil, "sed", "-i", "s/^Version: .*/Version: 99/", tree+"/DEBIAN/control")
	run(t, nil, "dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", tree, newer)

	// Morning: install, configure, start.
	host.run(t, install+deb)
	host.run(t, fmt.Sprintf(`cat >>/etc/trainbridge/trainbridge.env <<'EOF'
TRAINBRIDGE_LOGS=%s/**/*.jsonl
TRAINBRIDGE_OTLP_ENDPOINT=%s
TRAINBRIDGE_SERVICE=gpt
TRAINBRIDGE_RUN_ID=day
TRAINBRIDGE_LISTEN=%s
TRAINBRIDGE_METRICS_PORT=%d
TRAINBRIDGE_TELEMETRY_PORT=%d
TRAINBRIDGE_HEALTH_PORT=%d
TRAINBRIDGE_OTLP_PORT=%d
TRAINBRIDGE_OTLP_HTTP_PORT=%d
OTELCOL_OPTIONS=--set=connectors.train_metrics.metrics_flush_interval=1s
EOF`, logs, j.otlp, porttest.Host, ports[0], ports[1], ports[2], ports[3], ports[4]))
	address := func(i int) string { return fmt.Sprintf("%s:%d", porttest.Host, ports[i]) }
	service := host.systemctl(t)
	service.ready(t, "http://"+address(2))
	assert.Contains(t, host.run(t, "stat -c %U:%a /var/lib/trainbridge"), "trainbridge:750")
	assert.Equal(t, "trainbridge\n", host.run(t, fmt.Sprintf("stat -c %%U /proc/%d", service.cmd.Process.Pid)))

	// The job starts, and is on the page.
	prom := startPrometheusWith(t, shortRules(t), nil, address(0), address(1))
	job := start(t, "job", "/bin/sh", nil, "-c", stepsOfJob, "job", log, "100000")
	trained := func() (n float64, err error) {
		list, err := metricsOf("http://" + address(0) + "/metrics")
		for _, m := range list {
			if m.name == "ml_train_steps_total" && m.labels["job"] == "gpt" && m.labels["instance"] == "day" {
				n += m.value
			}
		}
		return n, err
	}
	more := func() {
		first := -1.0
		eventually(t, func() error {
			n, err := trained()
			if first < 0 {
				first = n
			}
			if err == nil && n < first+5 {
				err = fmt.Errorf("%v steps on the page", n)
			}
			return err
		})
	}
	more()

	// The job stops, and one alert fires; the job continues, and the alert clears.
	alerts := func(want string) {
		eventually(t, func() error {
			got, err := prom.alerts("TrainStepsStopped")
			if err == nil && got["day"].State != want {
				err = fmt.Errorf("alerts: %v", got)
			}
			return err
		})
	}
	require.NoError(t, job.cmd.Process.Signal(syscall.SIGSTOP))
	alerts("firing")
	require.NoError(t, job.cmd.Process.Signal(syscall.SIGCONT))
	alerts("")

	// A new version during the job: dpkg installs the files, and restarts the service.
	host.run(t, install+newer)
	assert.Contains(t, host.run(t, "dpkg-query -W trainbridge"), "99")
	assert.Contains(t, host.run(t, "cat /etc/trainbridge/trainbridge.env"), "TRAINBRIDGE_SERVICE=gpt")
	service.stop(t)
	service = host.systemctl(t)
	service.ready(t, "http://"+address(2))
	more()

	// Evening: the job is complete. Each line arrived once.
	require.NoError(t, os.WriteFile(log+".stop", nil, 0o600))
	code, _ := job.end(t)
	require.Zero(t, code)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	steps := strings.Count(string(text), "\n") - 1 // the last line states completion
	assert.Greater(t, steps, 10)
	eventually(t, func() error {
		td, err := j.find("gpt")
		if err != nil {
			return err
		}
		ids, iterations := map[string]int{}, map[string]int{}
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if s.Name() == spans.SpanRun { // sent again at each start, and the same: docs/reference/runs.md
						continue
					}
					ids[s.TraceID().String()+s.SpanID().String()+" "+s.Name()]++
					if step, ok := s.Attributes().Get(spans.AttrIteration); ok && s.Name() == spans.SpanStep {
						iterations[step.AsString()]++
					}
				}
			}
		}
		for _, counted := range []map[string]int{ids, iterations} {
			for what, n := range counted {
				if n > 1 {
					return fatal(fmt.Errorf("%s is there %d times", what, n))
				}
			}
		}
		if n, err := trained(); err != nil || n != float64(steps) || len(iterations) != steps {
			return fmt.Errorf("%d steps in Jaeger, %v on the page, want %d: %w", len(iterations), n, steps, err)
		}
		return nil
	})
	prom.awaitValues(t, map[string]float64{`ml_train_steps_total{instance="day"}`: float64(steps), `ml_run_ended{instance="day", ml_run_outcome="success"}`: 1})

	// Night: after removal, the state remains until the purge.
	service.stop(t)
	host.run(t, "dpkg -r trainbridge; test ! -e /usr/bin/trainbridge; test -n \"$(ls -A /var/lib/trainbridge)\"; test -e /etc/trainbridge/trainbridge.env")
	host.run(t, "dpkg -P trainbridge; test ! -e /var/lib/trainbridge; test ! -e /etc/trainbridge")
	again, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again), "the log is the job's")
}
