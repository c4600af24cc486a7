package records

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// job is the source of the rows about a whole job.
type job struct {
	*digest.Job
	account    *account.Account // nil: no log has steps with times
	conclusion Conclusion
	facts      *runFacts
	elsewhere  bool         // see Tables.Labels
	rank       *digest.Rank // of the rows of lateness
}

// Conclusion is what the report concludes about a job. The zero value: no conclusion, and empty columns.
type Conclusion struct {
	Severity, Sentence string
	EndKind, EndReason string // how the job ended, and a sentence
	EndRanks           []int64
	EndHosts           []string
}

// Jobs adds the rows about whole jobs, once everything is read. conclude completes the ledger of a job, and returns the conclusion; nil: no conclusions. It
// returns false if there were more jobs than a digest keeps apart.
func (t *Tables) Jobs(conclude func(*digest.Job) Conclusion) (complete bool) {
	if t.jobs == nil {
		return true
	}
	for _, of := range t.jobs.Rows() {
		j := job{Job: of, facts: t.facts.ofRun(of.Run), elsewhere: t.facts.labels != nil}
		if conclude != nil {
			j.conclusion = conclude(of)
		}
		j.account = of.Account()
		r := &scratch{row: row{job: &j}}
		r.res.Run, r.res.Service = of.Run, strings.Join(of.Services, " ")
		if t.rows[runs] != nil {
			t.addRow(runs, r, pcommon.NewMap(), j.start())
		}
		if t.rows[lateness] == nil {
			continue
		}
		for _, j.rank = range of.Collectives.Ranks() {
			t.addRow(lateness, r, pcommon.NewMap(), j.start())
		}
	}
	return t.jobs.Left() == 0
}

// start returns when the job begins; 0: its logs have no clock.
func (j *job) start() pcommon.Timestamp {
	if j.account != nil {
		return pcommon.Timestamp(j.account.Start)
	}
	return pcommon.Timestamp(j.First)
}

// usual returns the median of a figure, from the training log with the most records among those with the figure; NaN: no log has it.
func (j *job) usual(figure digest.Figure) float64 {
	median, most := math.NaN(), int64(0)
	for _, log := range j.Steps.Rows() {
		if m := &log.Measures[figure]; log.Records > most && m.Count() > 0 {
			median, most = m.Quantile(0.5), log.Records
		}
	}
	return median
}

// lateCost returns what the ranks together lost waiting for the last rank of each collective, s; NaN: no collective.
func (j *job) lateCost() float64 {
	sum := math.NaN()
	for _, c := range j.Collectives.Operations() {
		if math.IsNaN(sum) {
			sum = 0
		}
		sum += c.Cost.Sum()
	}
	return sum
}

// formats returns the formats of the training logs, separated by spaces.
func (j *job) formats() string {
	var names []string
	for _, log := range j.Steps.Rows() {
		names = append(names, log.Name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// appendLabels appends the labels of a run as a JSON object: from its resources, and, if the run is of this process, from the environment.
func appendLabels(dst []byte, r *row) []byte {
	labels := make(map[string]any)
	for name, value := range r.job.facts.labels {
		labels[name] = value
	}
	if !r.job.elsewhere {
		for name, value := range spans.JobLabels(r.res.Run) {
			labels[name] = value
		}
	}
	return appendObject(dst, labels)
}

// joinRanks returns rank numbers, separated by spaces.
func joinRanks(ranks []int64) string {
	texts := make([]string, len(ranks))
	for i, n := range ranks {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(texts, " ")
}

// mostFacts bounds the runs with facts: a digest has fewer jobs.
const mostFacts = 1024

// facts are what resources and steps say of whole runs.
type facts struct {
	labels func(attribute string) bool // see Tables.Labels
	mu     sync.Mutex
	by     map[string]*runFacts
}

// Labels declares that the runs are of other processes: the environment says nothing about them, and their labels are the resource attributes that label
// selects. Call it before the first span.
func (t *Tables) Labels(label func(attribute string) bool) { t.facts.labels = label }

// runFacts has the configuration of a run.
type runFacts struct {
	model  map[string]any    // by the name of the field; of several values the first in order
	labels map[string]string // by attribute; likewise
	device string            // likewise
	batch  float64           // the largest
}

// ofRun returns the facts of a run.
func (f *facts) ofRun(run string) *runFacts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.find(run)
}

// find returns the facts of a run, made if absent; f.mu is held. Facts of a run beyond mostFacts are not stored.
func (f *facts) find(run string) *runFacts {
	known := f.by[run]
	if known == nil {
		known = &runFacts{model: make(map[string]any), batch: math.NaN()}
		if f.by == nil {
			f.by = make(map[string]*runFacts)
		}
		if len(f.by) < mostFacts {
			f.by[strings.Clone(run)] = known
		}
	}
	return known
}

// resource records the facts on a resource.
func (f *facts) resource(res *view.Resource, attrs pcommon.Map) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.find(res.Run)
	known.setDevice(res.DeviceModel)
	for name, v := range attrs.All() {
		field, ok := strings.CutPrefix(name, spans.ModelPrefix)
		switch {
		case ok:
			if old, before := known.model[field]; !before || v.AsString() < asText(old) {
				known.model[strings.Clone(field)] = v.AsRaw()
			}
		case name == spans.AttrBatchSize:
			known.setBatch(spans.ValueNumber(v))
		case f.labels != nil && f.labels(name):
			known.setLabel(name, v.AsString())
		}
	}
}

// setLabel records a label; of several values the first in order counts.
func (k *runFacts) setLabel(name, value string) {
	if old, before := k.labels[name]; before && old <= value {
		return
	}
	if k.labels == nil {
		k.labels = make(map[string]string)
	}
	k.labels[strings.Clone(name)] = strings.Clone(value)
}

// step records the facts on a step: its batch size and device.
func (f *facts) step(run string, attrs pcommon.Map) {
	batch, ok := attrs.Get(spans.AttrBatchSize)
	device, on := attrs.Get(spans.AttrDeviceModel)
	if !ok && !on {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.find(run)
	if ok {
		known.setBatch(spans.ValueNumber(batch))
	}
	if on {
		known.setDevice(spans.ValueText(device))
	}
}

// setDevice records the model of a device; of several the first in order counts.
func (k *runFacts) setDevice(device string) {
	if device != "" && (k.device == "" || device < k.device) {
		k.device = strings.Clone(device)
	}
}

// setBatch records a batch size; the largest counts.
func (k *runFacts) setBatch(batch float64) {
	if math.IsNaN(k.batch) || batch > k.batch {
		k.batch = batch
	}
}

// asText returns a raw attribute value as a text.
func asText(v any) string {
	value := pcommon.NewValueEmpty()
	_ = value.FromRaw(v)
	return value.AsString()
}
