package spans

import (
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// jobAttributes describe the job of a collector, with their variables in order of preference; OTEL_RESOURCE_ATTRIBUTES comes first. Each is the same in all
// processes of the job and after a restart: a line read again makes the same span, and a run has one target_info in Prometheus.
//
// Slurm: SchedMD/slurm, doc/man/man1/sbatch.1, "OUTPUT ENVIRONMENT VARIABLES". Kubernetes has no names of its own for the downward API; the names here are the
// semantic conventions' in capitals, and names common in manifests (POD_NAMESPACE: kubernetes/website, "Expose Pod Information to Containers Through
// Environment Variables").
var jobAttributes = [...]fromEnvironment{
	{AttrSlurmJobID, []string{"SLURM_JOB_ID"}},
	{AttrSlurmJobName, []string{"SLURM_JOB_NAME"}},
	{AttrSlurmJobPartition, []string{"SLURM_JOB_PARTITION"}},
	{AttrSlurmJobAccount, []string{"SLURM_JOB_ACCOUNT"}},
	{AttrSlurmArrayJobID, []string{"SLURM_ARRAY_JOB_ID"}},
	{AttrSlurmArrayTaskID, []string{"SLURM_ARRAY_TASK_ID"}},
	{AttrSlurmClusterName, []string{"SLURM_CLUSTER_NAME"}},
	{AttrK8SClusterName, []string{"K8S_CLUSTER_NAME"}},
	{AttrK8SNamespaceName, []string{"K8S_NAMESPACE_NAME", "K8S_NAMESPACE", "POD_NAMESPACE"}},
	{AttrK8SJobName, []string{"K8S_JOB_NAME"}},
	{AttrK8SJobUID, []string{"K8S_JOB_UID"}},
}

// placeAttributes say where a collector of a job runs; they differ between the collectors.
var placeAttributes = [...]fromEnvironment{
	{AttrK8SPodName, []string{"K8S_POD_NAME", "POD_NAME"}},
	{AttrK8SNodeName, []string{"K8S_NODE_NAME", "NODE_NAME"}},
}

// fromEnvironment is an attribute with the variables that may have its value.
type fromEnvironment struct {
	name      string
	variables []string // the first that is set counts
}

// IsJobAttribute reports whether PutJob may write the attribute.
func IsJobAttribute(name string) bool {
	if !strings.HasPrefix(name, "slurm.") && !strings.HasPrefix(name, "k8s.") { // most are not
		return false
	}
	for i := range jobAttributes {
		if jobAttributes[i].name == name {
			return true
		}
	}
	return false
}

// PutJob writes the job described by the environment to the resource of a run: of the run named by the environment (JobRunID), or of any run if none is named.
func PutJob(m pcommon.Map, run string) {
	if named, _ := JobRunID(); named != "" && named != run {
		return
	}
	put(m, jobAttributes[:])
}

// JobLabels returns the labels that the environment has for a run: what PutJob writes, and all else in OTEL_RESOURCE_ATTRIBUTES; empty where the environment
// names another run.
func JobLabels(run string) map[string]string {
	labels := make(map[string]string)
	if named, _ := JobRunID(); named != "" && named != run {
		return labels
	}
	for name, value := range resourceAttributes() {
		labels[name] = Label(value)
	}
	job := pcommon.NewMap()
	put(job, jobAttributes[:])
	for name, value := range job.All() {
		labels[name] = value.Str()
	}
	return labels
}

// PutPlace writes where this process runs, by the environment, and returns whether anything was written.
func PutPlace(m pcommon.Map) bool { return put(m, placeAttributes[:]) }

// put writes the attributes of a list that the environment states, and returns whether there are any.
func put(m pcommon.Map, list []fromEnvironment) (some bool) {
	stated := resourceAttributes()
	for i := range list {
		a := &list[i]
		value := stated[a.name]
		for _, variable := range a.variables {
			if value != "" {
				break
			}
			value = strings.TrimSpace(os.Getenv(variable))
		}
		if value != "" {
			m.PutStr(a.name, Label(value))
			some = true
		}
	}
	return some
}

// parsed is OTEL_RESOURCE_ATTRIBUTES, read.
type parsed struct {
	text       string
	attributes map[string]string
}

// lastParsed saves reading the same variable for each resource.
var lastParsed atomic.Pointer[parsed]

// resourceAttributes reads OTEL_RESOURCE_ATTRIBUTES: key=value,… with percent-encoded values (OpenTelemetry specification, Resource SDK, "Specifying resource
// information via an environment variable"). Malformed pairs are skipped: the SDKs in this process log them.
func resourceAttributes() map[string]string {
	text := os.Getenv("OTEL_RESOURCE_ATTRIBUTES")
	if text == "" {
		return nil
	}
	if p := lastParsed.Load(); p != nil && p.text == text {
		return p.attributes
	}
	p := &parsed{text: text, attributes: make(map[string]string)}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if value, err := url.PathUnescape(strings.TrimSpace(value)); ok && err == nil {
			p.attributes[strings.TrimSpace(key)] = value
		}
	}
	lastParsed.Store(p)
	return p.attributes
}
