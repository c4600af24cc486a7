package spans

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestPutJob(t *testing.T) {
	for _, tt := range []struct {
		name, run string
		env       map[string]string
		want      map[string]any
	}{
		{name: "nothing", run: "run-1", want: map[string]any{}},
		{
			name: "slurm", run: "slurm-81234",
			env:  map[string]string{"SLURM_JOB_ID": "81234", "SLURM_JOB_NAME": "llama", "SLURM_JOB_PARTITION": " h100 ", "SLURM_NODELIST": "node-[1-8]"},
			want: map[string]any{"slurm.job.id": "81234", "slurm.job.name": "llama", "slurm.job.partition": "h100"},
		},
		{name: "another run", run: "run-of-last-week", env: map[string]string{"SLURM_JOB_ID": "81234"}, want: map[string]any{}},
		{
			name: "a run with a name", run: "the-run",
			env:  map[string]string{"TRAINBRIDGE_RUN_ID": "the-run", "SLURM_JOB_ID": "81234", "SLURM_ARRAY_TASK_ID": "3"},
			want: map[string]any{"slurm.job.id": "81234", "slurm.array.task.id": "3"},
		},
		{
			name: "kubernetes, no run is named", run: "run-0123456789ab",
			env:  map[string]string{"POD_NAMESPACE": "ml", "K8S_POD_NAME": "llama-0", "K8S_JOB_NAME": "llama"},
			want: map[string]any{"k8s.namespace.name": "ml", "k8s.job.name": "llama"},
		},
		{
			name: "OTEL_RESOURCE_ATTRIBUTES first", run: "run-1",
			env: map[string]string{
				"OTEL_RESOURCE_ATTRIBUTES": "k8s.namespace.name=team%2Fa, k8s.cluster.name = eu ,deployment.environment.name=test,k8s.job.name=%zz,broken,slurm.job.name=",
				"K8S_NAMESPACE":            "ml", "K8S_JOB_NAME": "llama", "SLURM_JOB_NAME": "x",
			},
			want: map[string]any{"k8s.namespace.name": "team/a", "k8s.cluster.name": "eu", "k8s.job.name": "llama", "slurm.job.name": "x"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noJob(t)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			m := pcommon.NewMap()
			PutJob(m, tt.run)
			assert.Equal(t, tt.want, m.AsRaw())
			for name := range m.All() {
				assert.True(t, IsJobAttribute(name), name)
			}
			assert.False(t, IsJobAttribute(AttrK8SPodName))
			r := pcommon.NewMap()
			Resource{RunID: tt.run}.Put(r)
			tt.want[AttrRunID] = tt.run
			assert.Equal(t, tt.want, r.AsRaw())
		})
	}
}

func TestPutPlace(t *testing.T) {
	noJob(t)
	m := pcommon.NewMap()
	assert.False(t, PutPlace(m))
	t.Setenv("NODE_NAME", "gpu-node-1")
	t.Setenv("K8S_POD_NAME", "llama-0")
	t.Setenv("POD_NAME", "other")
	assert.True(t, PutPlace(m))
	assert.Equal(t, map[string]any{"k8s.pod.name": "llama-0", "k8s.node.name": "gpu-node-1"}, m.AsRaw())
}

func BenchmarkPutJob(b *testing.B) {
	for name, job := range map[string]string{"none": "", "slurm": "81234"} {
		b.Run(name, func(b *testing.B) {
			noJob(b)
			b.Setenv("SLURM_JOB_ID", job)
			b.Setenv("SLURM_JOB_NAME", job)
			b.ReportAllocs()
			for b.Loop() {
				Resource{Service: "train", RunID: "slurm-81234"}.Put(pcommon.NewMap())
			}
		})
	}
}

// noJob clears the variables that name the job or its place.
func noJob(tb testing.TB) {
	tb.Helper()
	for _, name := range append(JobVariables(), "OTEL_RESOURCE_ATTRIBUTES") {
		tb.Setenv(name, "")
	}
	for _, list := range [][]fromEnvironment{jobAttributes[:], placeAttributes[:]} {
		for _, a := range list {
			for _, name := range a.variables {
				tb.Setenv(name, "")
			}
		}
	}
}
