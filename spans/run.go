package spans

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// RunConfig names the job whose logs a receiver reads. It is squashed into every receiver's config.
type RunConfig struct {
	// RunID is ml.run.id. It salts every hashed id. Default: the run named by the collector's environment (JobRunID), else a stable hash of the log's
	// directory: without a name, logs in two directories cannot be known to be of one job, and two jobs merged into one run could not be separated.
	RunID string `mapstructure:"run_id"`
	// ServiceName is the service.name of the job in Jaeger, Tempo and Prometheus.
	ServiceName string `mapstructure:"service_name"`
	// SpanLinks links roots to the span of their run, and an RPC pass to the pass before. Default false: Jaeger's page takes the first link of a root for its
	// parent, and then draws no critical path.
	SpanLinks bool `mapstructure:"span_links"`
}

// Run returns the run id of a log file.
func (c RunConfig) Run(path string) string {
	if c.RunID != "" {
		return Name(c.RunID)
	}
	if run, _ := JobRunID(); run != "" {
		return run
	}
	return DirectoryRun(path)
}

// checkpoint is a checkpoint directory of the Trainer of Hugging Face, inside the run's directory: checkpoint-500 (transformers, trainer_utils.py,
// PREFIX_CHECKPOINT_DIR).
var checkpoint = regexp.MustCompile(`^checkpoint-\d+$`)

// podLogs is the kubelet's directory of a pod's logs: /var/log/pods/<namespace>_<pod>_<uid>/<container>/<restarts>.log. Each log has a link in
// /var/log/containers (kubernetes/kubernetes 16913111 pkg/kubelet/kuberuntime/helpers.go, BuildPodLogsDirectory, and legacy.go). A static pod's uid is a hash.
var podLogs = regexp.MustCompile(`^[a-z0-9-]+_[a-z0-9.-]+_([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$`)

// isOfPod reports whether a directory is a container's in the logs of a pod.
func isOfPod(dir string) bool { return podLogs.MatchString(filepath.Base(filepath.Dir(dir))) }

// DirectoryRun returns the run id of a log file without a named run, made from the directory. A checkpoint directory belongs to the run's directory. All
// containers of a pod are one run, also when read through the kubelet's links: the directory of the links has the logs of all pods.
func DirectoryRun(path string) string {
	if to, err := os.Readlink(path); err == nil && filepath.IsAbs(to) && isOfPod(filepath.Dir(to)) {
		path = to
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil { // only when the working directory is gone
		dir = filepath.Dir(path)
	}
	if checkpoint.MatchString(filepath.Base(dir)) || isOfPod(dir) {
		dir = filepath.Dir(dir)
	}
	id := KeyTraceID("", "run", []byte(dir))
	return "run-" + hex.EncodeToString(id[:6])
}

// jobVariables are the variables that name the job of a process, in order of preference. A variable without a job's name is skipped.
var jobVariables = [...]struct {
	name string
	run  func(value string) string
}{
	{"TRAINBRIDGE_RUN_ID", Name[string]},
	{"SLURM_JOB_ID", as("slurm-")}, // differs between the tasks of a job array
	{"RAY_JOB_ID", rayRun},
	{"TORCHELASTIC_RUN_ID", torchRun},
	{"PET_RDZV_ID", torchRun}, // torchrun's default for --rdzv-id, passed to its workers as TORCHELASTIC_RUN_ID

	// Kubernetes: the names of a JobSet and of a PyTorchJob. A TrainJob's JobSet has the TrainJob's name.
	{"JOBSET_NAME", as("jobset-")},                    // kubernetes-sigs/jobset 08dfbdfd site/static/examples/in-place-restart: from the pod's annotation
	{"TRAIN_JOB_NAME", as("jobset-")},                 // kubeflow/trainer 8c0f5059 manifests/base/runtimes/data-cache: from the pod's label
	{"KUBEFLOW_TRAINER_SERVER_URL", trainerURLRun},    // kubeflow/trainer 8c0f5059 pkg/runtime/framework/plugins/trainjobstatus
	{"PET_MASTER_ADDR", trainerHostRun},               // kubeflow/trainer 8c0f5059 pkg/runtime/framework/plugins/torch
	{"PET_RDZV_ENDPOINT", pytorchJobRun("-worker-0")}, // kubeflow/training-operator 1417bbc3 pkg/controller.v1/pytorch/elastic.go
	{"MASTER_ADDR", pytorchJobRun("-master-0")},       // kubeflow/training-operator 1417bbc3 pkg/controller.v1/pytorch/envvar.go
}

// JobVariables returns the names of the variables that JobRunID reads, in order.
func JobVariables() []string {
	names := make([]string, len(jobVariables))
	for i, v := range jobVariables {
		names[i] = v.name
	}
	return names
}

// JobRunID returns the run id named by the environment of this process, and the variable; empty: none. Receivers and services (package bridge) use the same
// rule, so a job has one run id in all its processes.
func JobRunID() (run, variable string) {
	for _, v := range jobVariables {
		if value := strings.TrimSpace(os.Getenv(v.name)); value != "" {
			if run := v.run(value); run != "" {
				return run, v.name
			}
		}
	}
	return "", ""
}

// Collector returns the name of this process among the collectors that write metrics of the same runs: TRAINBRIDGE_COLLECTOR, else the host's name. Empty: the
// host has no name.
func Collector() string {
	name := strings.TrimSpace(os.Getenv("TRAINBRIDGE_COLLECTOR"))
	if name == "" {
		name, _ = os.Hostname()
	}
	return Name(name)
}

// as names a run by a prefix and the value of a variable.
func as(prefix string) func(string) string {
	return func(value string) string { return prefix + Name(value) }
}

// rayRun returns the run id of a job of Ray, "" if unknown. Job ids count from 01000000 in each cluster (ray src/ray/common/id.h), so only the cluster's
// session makes them unique; each node of a cluster has a link with the session's name (python/ray/_private/node.py). Without the session, the job has no name.
func rayRun(job string) string {
	if job == "ffffffff" { // of a worker without a job
		return ""
	}
	tmp := cmp.Or(os.Getenv("RAY_TMPDIR"), os.Getenv("TMPDIR"), "/tmp") // as in python/ray/_private/utils.py
	at, err := os.Readlink(filepath.Join(tmp, "ray", "session_latest"))
	session, ok := strings.CutPrefix(filepath.Base(at), "session_")
	if err != nil || !ok {
		return ""
	}
	return Name("ray-" + session + "-" + job)
}

// torchRun names a job by its rendezvous id. PyTorch asks for a unique id of the job, but defaults to "none" (torch/distributed/run.py), and its documentation
// has plain numbers in examples: such a text names no job.
func torchRun(id string) string {
	if NoTraceID(id) || strings.Trim(id, "0123456789") == "" {
		return ""
	}
	return "torchelastic-" + Name(id)
}

// trainerURLRun names a TrainJob by …/namespaces/<namespace>/trainjobs/<job>/status; "": another URL.
func trainerURLRun(url string) string {
	_, rest, _ := strings.Cut(url, "/trainjobs/")
	if job, _, _ := strings.Cut(rest, "/"); job != "" {
		return "jobset-" + Name(job)
	}
	return ""
}

// trainerHostRun names a TrainJob by the host of its first node, <job>-node-0-0.<job>; "": another host.
func trainerHostRun(host string) string {
	node, job, _ := strings.Cut(host, ".")
	if job != "" && node == job+"-node-0-0" {
		return "jobset-" + Name(job)
	}
	return ""
}

// pytorchJobRun names a PyTorchJob by an address <job><suffix>, with or without :<port>; "": another address.
func pytorchJobRun(suffix string) func(string) string {
	return func(address string) string {
		host, _, _ := strings.Cut(address, ":")
		if job, ok := strings.CutSuffix(host, suffix); ok && job != "" {
			return "pytorchjob-" + Name(job)
		}
		return ""
	}
}

// RunSpan is the content of a train.run span: where a collector first met the run.
type RunSpan struct {
	Run     string     `json:"run"`     // ml.run.id
	By      string     `json:"by"`      // the source of the name: a setting, a variable of the environment, or empty for the log's directory
	Service string     `json:"service"` // service.name
	File    string     `json:"file"`    // the log
	Start   int64      `json:"start"`   // ns, of the first record
	Time    TimeSource `json:"time"`    // where Start comes from
}

// Opens returns the train.run span of a log whose first record begins at start (Unix ns).
func (c RunConfig) Opens(path string, start int64, source TimeSource) RunSpan {
	by := "run_id"
	if c.RunID == "" {
		_, by = JobRunID()
	}
	return RunSpan{Run: c.Run(path), By: by, Service: c.ServiceName, File: path, Start: start, Time: source}
}

// runLength is the length of a run's span. When a run ends nobody knows; Jaeger keeps microseconds, and warns of spans without length.
const runLength = int64(time.Millisecond)

// IDs returns the ids of the span, in the run's own trace. They are a hash of all that AddRun writes: hosts whose collectors met the run elsewhere have spans
// of their own, and an id never has a second content.
func (r RunSpan) IDs() (pcommon.TraceID, pcommon.SpanID) {
	trace, _ := RunIDs(r.Run)
	start := binary.BigEndian.AppendUint64(nil, uint64(r.Start))
	return trace, SpanID(trace, SpanRun, []byte(r.Service), []byte(r.File), start, []byte(r.Time))
}

// Before orders two meetings of a run, to find the first: any other time comes before a synthetic one, then the earlier time; file and service decide between
// equals, for the same answer everywhere.
func (r RunSpan) Before(other RunSpan) bool {
	madeUp := func(r RunSpan) int {
		if r.Time == TimeSynthetic {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(madeUp(r), madeUp(other)), cmp.Compare(r.Start, other.Start), cmp.Compare(r.File, other.File), cmp.Compare(r.Service, other.Service),
	) < 0
}

// AddRun adds the train.run span, made from no record (NoOrigin). Equal RunSpans make equal spans, which Jaeger and Tempo show once.
func (b *Batch) AddRun(r RunSpan) {
	trace, id := r.IDs()
	defer b.From(b.origin)
	b.From(NoOrigin)
	s := b.Add(Resource{Service: r.Service, RunID: r.Run}, Span{
		Trace: trace, ID: id, Name: SpanRun, Is: KindRun, Kind: ptrace.SpanKindInternal, Start: r.Start, End: r.Start + runLength, Source: r.Time, Attributes: 1,
	})
	s.Attributes().PutStr(AttrLogFile, Text(r.File))
}
