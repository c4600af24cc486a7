//go:build e2e && verl

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
)

// verlCall is a call of a function in a worker of testdata/verl/job.py, and its batch's trace id in the driver.
type verlCall struct{ Func, ID string }

// runVerl runs the job with the real TransferQueue and returns its calls, the glob of its workers' logs, and the driver's stderr.
func runVerl(t *testing.T, dir string, env, args []string) (calls []verlCall, logs, said string) {
	t.Helper()
	python := binary(t, "TRANSFERQUEUE_PYTHON", "bin/tools/transferqueue/bin/python", "make transferqueue")
	cmd := exec.Command("timeout", append([]string{"-k", "10", "300", python, "testdata/verl/job.py", dir}, args...)...)
	cmd.Env = append(append(os.Environ(), "HOME="+dir, "RAY_USAGE_STATS_ENABLED=0"), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second // servers of Ray that outlive the job would hold the pipe
	out, err := cmd.Output()
	require.NoError(t, err, "%s%s", out, &stderr)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &calls), "%s", out)
	require.Len(t, calls, 3*2*2, "batches, functions, workers")
	return calls, filepath.Join(dir, "session_2*", "logs", "worker-*.err"), stderr.String()
}

// integrations/verl gives the batches of the real TransferQueue ids: the calls of all functions and workers of a batch are one trace, and none is N/A. Without
// the integration each call is a trace of its own. The lines are read where Ray's workers write them.
func TestVerlTraceIDs(t *testing.T) {
	t.Parallel()
	module, err := filepath.Abs(filepath.Join(repoRoot, "integrations/verl"))
	require.NoError(t, err)
	site := filepath.Dir(write(t, "sitecustomize.py", "import trainbridge_trace\n"))
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()} // a subtest's is too long for the names of Ray's sockets
	bin, j := trainbridgeBin(t), startJaeger(t)
	for i, tt := range []struct {
		name      string
		env, args []string
		named     bool // by the id of the batch
		traces    int
		errors    int // of the module, on stderr: of two errors the first is printed
	}{
		{"without", nil, nil, false, 12, 0},
		{"sitecustomize", []string{"PYTHONPATH=" + site + ":" + module}, nil, true, 3, 0}, // before transfer_queue, in every process
		{"line", []string{"PYTHONPATH=" + module}, []string{"line"}, true, 3, 1},          // after transfer_queue, in the driver only
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls, logs, said := runVerl(t, dirs[i], tt.env, tt.args)
			assert.Equal(t, tt.errors, strings.Count(said, "trainbridge_trace: "), said)
			functions := make(map[string][]string) // by the id of the trace
			for k, c := range calls {
				if c.ID == "N/A" {
					c.ID = fmt.Sprint("call ", k)
				} else {
					assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, c.ID, "a UUID4")
				}
				functions[c.ID] = append(functions[c.ID], c.Func)
			}
			require.Len(t, functions, tt.traces)
			want := listed(functions, tt.named)

			service := "verl-" + tt.name
			c := newCollector(t, bin, logs, j.otlp, fmt.Sprintf("receivers: {tq_trace: {service_name: %q}}", service))
			c.up(t)
			eventually(t, func() error {
				td, err := j.find(service)
				if err != nil {
					return err
				}
				functions := make(map[string][]string)
				for id, trace := range read(td).traces {
					for _, n := range trace {
						if n.ParentSpanID().IsEmpty() && n.Name() == n.str(spans.AttrTQFunction) {
							id := uuid.UUID(id).String()
							functions[id] = append(functions[id], n.Name())
						}
					}
				}
				if got := listed(functions, tt.named); !slices.Equal(want, got) {
					return fmt.Errorf("traces %v, want %v", got, want)
				}
				return nil
			})
			c.stop(t)
		})
	}
}

// listed writes traces with their functions in a canonical order, to compare two lists; named with their ids.
func listed(functions map[string][]string, named bool) (lines []string) {
	for id, names := range functions {
		slices.Sort(names)
		if !named {
			id = ""
		}
		lines = append(lines, id+" "+strings.Join(names, " "))
	}
	slices.Sort(lines)
	return lines
}
