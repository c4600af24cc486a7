//go:build e2e && release

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/porttest"
	"github.com/trainbridge/trainbridge/spans"
)

// A real Slurm runs the prolog, the job and the epilog of docs/reference/slurm.md: all lines of a job become spans, also with a temporarily unreachable
// backend, its report is in its folder, and nothing is left.
func TestReleaseSlurm(t *testing.T) { //nolint:funlen // a cluster starts once
	j := startJaeger(t)
	work, err := os.MkdirTemp("", "slurm") //nolint:usetesting // the jobs' user may not enter the test's
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			said, _ := exec.Command("sh", "-c", "cd "+work+"; tail -n 20 syslog slurmd.log */slurm-*.out").CombinedOutput()
			t.Logf("%s", said)
		}
		_ = os.RemoveAll(work)
	})
	require.NoError(t, os.Chmod(work, 0o755))
	bin, deploy := trainbridgeBin(t), filepath.Join(repoRoot, "deploy/slurm")
	script, err := filepath.Abs("testdata/slurm/cluster.sh")
	require.NoError(t, err)
	deploy, err = filepath.Abs(deploy)
	require.NoError(t, err)

	away := startProxy(t, j.otlp)
	away.cut()
	done := make(chan struct{})
	go func() {
		defer close(done)
		assert.NoError(t, within(patience, func() error {
			_, err := os.Stat(filepath.Join(work, "back"))
			return err
		}))
		assert.NoError(t, away.restore())
	}()
	cmd := exec.Command("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", script, work, bin, deploy, j.otlp, away.addr,
		strconv.Itoa(porttest.On(t, "127.0.0.1")), strconv.Itoa(porttest.On(t, "127.0.0.1")))
	cmd.Stdin = strings.NewReader(docBlock(t, "docs/reference/slurm.md", "setup") + `
sed -i "s#^TRAINBRIDGE_OTLP_ENDPOINT=.*#TRAINBRIDGE_OTLP_ENDPOINT=$otlp#; s@^#\(\[ .*= gpu \)@\1@" /etc/trainbridge/slurm.env
echo "[ \"\$JOB_NAME\" != away ] || TRAINBRIDGE_OTLP_ENDPOINT=$away" >>/etc/trainbridge/slurm.env
`)
	out, err := cmd.CombinedOutput()
	<-done
	require.NoError(t, err, "%s", out)
	read := func(elem ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{work}, elem...)...))
		require.NoError(t, err)
		return strings.TrimSpace(string(text))
	}

	for folder, service := range map[string]string{"a": "job a", "b": "job b", "away": "away", "own": "own"} {
		id := read(folder + ".id")
		td, err := j.find(service)
		require.NoError(t, err)
		a := readAll(td)
		require.NoError(t, a.err())
		steps := map[string]int{}
		for _, trace := range a.traces {
			for _, n := range trace {
				assert.Equal(t, "slurm-"+id, n.str(spans.AttrRunID))
				if n.Name() == spans.SpanStep {
					steps[fmt.Sprint(n.Attributes().AsRaw()[spans.AttrIteration])]++
				}
			}
		}
		assert.Len(t, steps, 40, folder)
		for step, n := range steps {
			assert.Equal(t, 1, n, "%s: step %s", folder, step)
		}
		report := read(folder, "trainbridge-"+id+".html")
		assert.Regexp(t, "Run slurm-"+id+": 40 lines in ", report, folder)
	}
	for _, folder := range []string{"a", "b"} {
		assert.Regexp(t, `^http://127\.0\.0\.1:\d+\nopen$`, read(folder, "endpoint"))
	}
	assert.NotEqual(t, read("a", "endpoint"), read("b", "endpoint"))
	assert.Equal(t, "none:", read("none", "slurm-"+read("none.id")+".out"))
	assert.Equal(t, "ran", read("broken", "slurm-"+read("broken.id")+".out"))
	assert.Equal(t, "idle\nidle", read("state"), "no script has drained the node")
	assert.Equal(t, read("away.id"), read("left"), "of jobs that ended only that one's collector is there whose backend is away")
	assert.Equal(t, "0", read("collectors"))
	assert.Regexp(t, `^job `+read("away.id")+`: the collector goes on until the backend has accepted all, .*\njob `+read("broken.id")+` has no collector: .*$`, read("syslog"))
}
