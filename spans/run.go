package spans

import (
	"encoding/hex"
	"os"
	"path/filepath"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// RunConfig names the job whose logs a receiver reads. It is squashed into every receiver's config.
type RunConfig struct {
	// RunID is ml.run.id. It salts every hashed id. Default: the SLURM_JOB_ID of the collector's environment, else a
	// stable hash of the log's directory.
	RunID string `mapstructure:"run_id"`
	// ServiceName is the service.name of the job in Jaeger, Tempo and Prometheus.
	ServiceName string `mapstructure:"service_name"`
	// SpanLinks has roots link to the span of their run, and RPC passes to the one before. Default false: Jaeger's page takes the first link of a root for
	// its parent, and then draws no critical path.
	SpanLinks bool `mapstructure:"span_links"`
}

// Run returns the run id of a log file.
func (c RunConfig) Run(path string) string {
	if c.RunID != "" {
		return Name(c.RunID)
	}
	if run := JobRunID(); run != "" {
		return run
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil { // only when the working directory is gone
		dir = filepath.Dir(path)
	}
	id := KeyTraceID("", "run", []byte(dir))
	return "run-" + hex.EncodeToString(id[:6])
}

// JobRunID returns the run id that the environment of a process says: the run id of its Slurm job, or none.
func JobRunID() string {
	if job := os.Getenv("SLURM_JOB_ID"); job != "" {
		return "slurm-" + Name(job)
	}
	return ""
}

// AddRun adds the train.run span: it begins with the run's first record, and says in which file that was seen.
// It comes from no record (NoOrigin).
func (b *Batch) AddRun(res Resource, at int64, source TimeSource, file string) {
	trace, id := RunIDs(res.RunID)
	defer b.From(b.origin)
	b.From(NoOrigin)
	s := b.Add(Resource{Service: res.Service, RunID: res.RunID}, Span{
		Trace: trace, ID: id, Name: SpanRun, Is: KindRun, Kind: ptrace.SpanKindInternal, Start: at, End: at, Source: source, Attributes: 1,
	})
	s.Attributes().PutStr(AttrLogFile, Text(file))
}
