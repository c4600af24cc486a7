package spans

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// environment sets these variables and clears all others that name a job.
func environment(t *testing.T, env map[string]string) {
	t.Helper()
	for _, name := range JobVariables() {
		t.Setenv(name, "")
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
}

const runOfLogs = "run-073d9c38bc47" // of /logs

type jobCase struct {
	env      map[string]string
	run, has string
}

func TestCollector(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	for value, want := range map[string]string{"": host, " ": host, " gateway-0\n": "gateway-0", "a\u200bb": "a\ufffdb"} {
		t.Setenv("TRAINBRIDGE_COLLECTOR", value)
		assert.Equal(t, want, Collector())
	}
}

// A Ray cluster leaves the name of its session among its temporary files.
func TestJobRunID(t *testing.T) {
	ray := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(ray, "ray"), 0o700))
	require.NoError(t, os.Symlink("/tmp/ray/session_2026-11-22_22-53-01_123456_789", filepath.Join(ray, "ray", "session_latest")))
	other := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(other, "ray"), 0o700))
	require.NoError(t, os.Symlink("/tmp/ray/elsewhere", filepath.Join(other, "ray", "session_latest")))
	none := t.TempDir()
	const trainer = "https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443/apis/trainer.kubeflow.org/v1alpha1/namespaces/ml/trainjobs/llama/status"

	for name, it := range map[string]jobCase{
		"nothing":              {},
		"empty":                {env: map[string]string{"TRAINBRIDGE_RUN_ID": " ", "SLURM_JOB_ID": "", "TORCHELASTIC_RUN_ID": ""}},
		"ours":                 {env: map[string]string{"TRAINBRIDGE_RUN_ID": "mine ", "SLURM_JOB_ID": "7"}, run: "mine", has: "TRAINBRIDGE_RUN_ID"},
		"ours, hidden letters": {env: map[string]string{"TRAINBRIDGE_RUN_ID": "a\u200bb"}, run: "a\ufffdb", has: "TRAINBRIDGE_RUN_ID"},
		"Slurm":                {env: map[string]string{"SLURM_JOB_ID": "4711", "TORCHELASTIC_RUN_ID": "x"}, run: "slurm-4711", has: "SLURM_JOB_ID"},
		"first task of an array": {
			env: map[string]string{"SLURM_JOB_ID": "37", "SLURM_ARRAY_JOB_ID": "36", "SLURM_ARRAY_TASK_ID": "1"}, run: "slurm-37", has: "SLURM_JOB_ID",
		},
		"last task of an array": {
			env: map[string]string{"SLURM_JOB_ID": "36", "SLURM_ARRAY_JOB_ID": "36", "SLURM_ARRAY_TASK_ID": "2"}, run: "slurm-36", has: "SLURM_JOB_ID",
		},
		"Ray": {
			env: map[string]string{"RAY_JOB_ID": "01000000", "RAY_TMPDIR": ray}, run: "ray-2026-11-22_22-53-01_123456_789-01000000", has: "RAY_JOB_ID",
		},
		"Ray in TMPDIR": {
			env: map[string]string{"RAY_JOB_ID": "02000000", "TMPDIR": ray}, run: "ray-2026-11-22_22-53-01_123456_789-02000000", has: "RAY_JOB_ID",
		},
		"Ray, another cluster's number":    {env: map[string]string{"RAY_JOB_ID": "01000000", "RAY_TMPDIR": none}},
		"Ray, a link that is no session":   {env: map[string]string{"RAY_JOB_ID": "01000000", "RAY_TMPDIR": other}},
		"Ray, a worker that waits":         {env: map[string]string{"RAY_JOB_ID": "ffffffff", "RAY_TMPDIR": ray}},
		"Ray without a session, torchrun":  {env: map[string]string{"RAY_JOB_ID": "01000000", "RAY_TMPDIR": none, "TORCHELASTIC_RUN_ID": "a1"}, run: "torchelastic-a1", has: "TORCHELASTIC_RUN_ID"},
		"torchrun":                         {env: map[string]string{"TORCHELASTIC_RUN_ID": "0f2a-77"}, run: "torchelastic-0f2a-77", has: "TORCHELASTIC_RUN_ID"},
		"torchrun's default":               {env: map[string]string{"TORCHELASTIC_RUN_ID": "none"}},
		"a static rendezvous":              {env: map[string]string{"TORCHELASTIC_RUN_ID": "100"}},
		"PyTorchJob with a rendezvous id":  {env: map[string]string{"PET_RDZV_ID": "llama-7", "PET_RDZV_ENDPOINT": "l-worker-0:23456"}, run: "torchelastic-llama-7", has: "PET_RDZV_ID"},
		"PyTorchJob, elastic":              {env: map[string]string{"PET_RDZV_ENDPOINT": "llama-worker-0:23456"}, run: "pytorchjob-llama", has: "PET_RDZV_ENDPOINT"},
		"PyTorchJob":                       {env: map[string]string{"MASTER_ADDR": "llama-master-0"}, run: "pytorchjob-llama", has: "MASTER_ADDR"},
		"any master":                       {env: map[string]string{"MASTER_ADDR": "10.0.0.1", "PET_RDZV_ENDPOINT": "host:29400"}},
		"a master without a job":           {env: map[string]string{"MASTER_ADDR": "-master-0"}},
		"TrainJob":                         {env: map[string]string{"PET_MASTER_ADDR": "llama-node-0-0.llama"}, run: "jobset-llama", has: "PET_MASTER_ADDR"},
		"another PET_MASTER_ADDR":          {env: map[string]string{"PET_MASTER_ADDR": "llama-node-0-0.other"}},
		"TrainJob that tells its progress": {env: map[string]string{"KUBEFLOW_TRAINER_SERVER_URL": trainer}, run: "jobset-llama", has: "KUBEFLOW_TRAINER_SERVER_URL"},
		"another server":                   {env: map[string]string{"KUBEFLOW_TRAINER_SERVER_URL": "https://localhost/"}},
		"TrainJob with a cache":            {env: map[string]string{"TRAIN_JOB_NAME": "llama"}, run: "jobset-llama", has: "TRAIN_JOB_NAME"},
		"JobSet":                           {env: map[string]string{"JOBSET_NAME": "llama"}, run: "jobset-llama", has: "JOBSET_NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("RAY_TMPDIR", "")
			environment(t, it.env)
			run, has := JobRunID()
			assert.Equal(t, it.run, run)
			assert.Equal(t, it.has, has)
			opens := RunConfig{}.Opens("/logs/a.log", 1, TimeLogged)
			assert.Equal(t, it.has, opens.By)
			assert.Equal(t, cmp.Or(it.run, runOfLogs), opens.Run, "receivers take it too, or the directory")
			assert.Equal(t, "set", RunConfig{RunID: "set"}.Run("/logs/a.log"), "the setting comes first")
			assert.Equal(t, "run_id", RunConfig{RunID: "set"}.Opens("/logs/a.log", 1, TimeLogged).By)
		})
	}
}

func TestRunOfDirectory(t *testing.T) {
	environment(t, nil)
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	assert.Equal(t, RunConfig{}.Run(a), RunConfig{}.Run(b), "the files of one directory are one run")
	assert.NotEqual(t, RunConfig{}.Run(a), RunConfig{}.Run(filepath.Join(t.TempDir(), "a.log")))
	assert.Empty(t, RunConfig{}.Opens(a, 1, TimeLogged).By)
}

// The containers of a pod and their restarts are one run, read directly or through the kubelet's links; another pod of the same name is another run.
func TestRunOfPod(t *testing.T) {
	environment(t, nil)
	dir := t.TempDir()
	pod := func(uid string, log ...string) string {
		return filepath.Join(append([]string{dir, "pods", "ml_llama-worker-0_" + uid}, log...)...)
	}
	const first, second = "0f3a1b52-7a3c-4c11-9d5e-0123456789ab", "1f3a1b52-7a3c-4c11-9d5e-0123456789ab"
	link := func(name, to string) string {
		name = filepath.Join(dir, name+".log")
		require.NoError(t, os.Symlink(to, name))
		return name
	}
	want := DirectoryRun(pod(first, "train", "0.log"))
	id := strings.Repeat("5a", 32)
	for _, path := range []string{
		pod(first, "train", "1.log"), pod(first, "istio-proxy", "0.log"), pod(first, "x"),
		link("llama-worker-0_ml_train-"+id, pod(first, "train", "0.log")), // a dangling link, as in a container without the second mount
	} {
		assert.Equal(t, want, DirectoryRun(path), path)
	}
	for _, path := range []string{
		pod(second, "train", "0.log"), pod("mirror", "train", "0.log"), filepath.Join(dir, "llama-worker-1_ml_train-"+id+".log"),
		link("llama-worker-2_ml_train-"+id, pod(second, "train", "0.log")), link("latest", "pods/x/0.log"),
	} {
		assert.NotEqual(t, want, DirectoryRun(path), path)
	}
	assert.Equal(t, DirectoryRun(filepath.Join(dir, "pods", "kube-system_etcd_"+id[:32], "etcd", "0.log")),
		DirectoryRun(filepath.Join(dir, "pods", "kube-system_etcd_"+id[:32], "etcd-2", "0.log")), "a static pod")
}

// train.run spans with different content have different ids; equal content, equal ids.
func TestRunSpanIDs(t *testing.T) {
	first := RunSpan{Run: "r", By: "run_id", Service: "verl", File: "/logs/a.log", Start: 5, Time: TimeLogged}
	trace, id := first.IDs()
	run, _ := RunIDs("r")
	assert.Equal(t, run, trace)
	met := map[pcommon.SpanID]bool{id: true}
	for _, change := range []func(*RunSpan){
		func(r *RunSpan) { r.Service = "train" },
		func(r *RunSpan) { r.File = "/logs/b.log" },
		func(r *RunSpan) { r.Start = 6 },
		func(r *RunSpan) { r.Time = TimeDerived },
	} {
		other := first
		change(&other)
		trace, id := other.IDs()
		assert.Equal(t, run, trace)
		assert.False(t, met[id], other)
		met[id] = true
	}
	again := first
	again.By = "SLURM_JOB_ID" // no attribute of the span
	_, same := again.IDs()
	assert.Equal(t, id, same)
}

// The first meeting is the run's beginning, and a logged time comes before a synthetic time.
func TestRunSpanBefore(t *testing.T) {
	at := func(start int64, file string, source TimeSource) RunSpan {
		return RunSpan{Run: "r", File: file, Start: start, Time: source}
	}
	order := []RunSpan{at(5, "a", TimeLogged), at(5, "b", TimeDerived), at(6, "a", TimeLogged), at(1, "a", TimeSynthetic), at(2, "a", TimeSynthetic)}
	for i := range order {
		for j := range order {
			assert.Equal(t, i < j, order[i].Before(order[j]), "%d, %d", i, j)
		}
	}
}
