package trainmetricsconnector

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/spans"
)

// target_info has the job of a run by the run's spans, of a gateway elsewhere too; without one, the job in this collector's environment. The location of the
// collector is a series of its own.
func TestJobOfRun(t *testing.T) {
	for _, name := range append(spans.JobVariables(), "SLURM_JOB_NAME", "POD_NAME", "K8S_NODE_NAME", "POD_NAMESPACE", "K8S_NAMESPACE") {
		t.Setenv(name, "")
	}
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "")
	t.Setenv("SLURM_JOB_ID", "7")
	t.Setenv("SLURM_JOB_NAME", "here")
	t.Setenv("K8S_POD_NAME", "gateway-0")
	exp, address := startPrometheus(t)
	c := newBed(t, func(cfg *Config) { cfg.Collector = "gateway-0" })
	c.next = exp
	c.clock = time.Now()
	b := spans.NewBatch("test", "")
	for i, run := range []string{"slurm-7", "slurm-8"} {
		addStepSpan(b, spans.Resource{Service: "train", RunID: run, Host: "gpu-node-1"}, i+1, "jsonl", 3, 1, nil)
		addStepSpan(b, spans.Resource{Service: "train", RunID: run, Host: "gpu-node-2"}, i+11, "jsonl", 11, 1, nil)
	}
	td := b.Traces()
	for _, rs := range td.ResourceSpans().All() {
		if m := rs.Resource().Attributes(); spans.AttrText(m, spans.AttrRunID) == "slurm-8" { // as its agents send a job
			m.PutStr(spans.AttrSlurmJobID, "8")
			m.PutStr(spans.AttrK8SPodName, "agent-3")
		}
	}
	c.consume(td)
	c.flush(context.Background())
	var got []string
	for l := range strings.SplitSeq(scrape(t, address, openMetrics), "\n") {
		for _, name := range []string{"target_info", "trainbridge_run_collector_info", "ml_train_steps_total"} {
			if strings.HasPrefix(l, name+"{") {
				got = append(got, strings.Split(l, " ")[0])
			}
		}
	}
	assert.ElementsMatch(t, []string{
		`target_info{instance="slurm-7",job="train",ml_run_id="slurm-7",slurm_job_id="7",slurm_job_name="here"}`,
		`target_info{instance="slurm-8",job="train",ml_run_id="slurm-8",slurm_job_id="8"}`,
		`trainbridge_run_collector_info{instance="slurm-7",job="train",k8s_pod_name="gateway-0",trainbridge_collector="gateway-0"}`,
		`trainbridge_run_collector_info{instance="slurm-8",job="train",k8s_pod_name="gateway-0",trainbridge_collector="gateway-0"}`,
		`ml_train_steps_total{dl_rank="3",host_name="gpu-node-1",instance="slurm-7",job="train",trainbridge_collector="gateway-0",trainbridge_source="jsonl"}`,
		`ml_train_steps_total{dl_rank="11",host_name="gpu-node-2",instance="slurm-7",job="train",trainbridge_collector="gateway-0",trainbridge_source="jsonl"}`,
		`ml_train_steps_total{dl_rank="3",host_name="gpu-node-1",instance="slurm-8",job="train",trainbridge_collector="gateway-0",trainbridge_source="jsonl"}`,
		`ml_train_steps_total{dl_rank="11",host_name="gpu-node-2",instance="slurm-8",job="train",trainbridge_collector="gateway-0",trainbridge_source="jsonl"}`,
	}, got)
}
