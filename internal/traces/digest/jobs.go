package digest

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Jobs sums up spans by job. Its methods may be called concurrently until Rows; the result of Rows does not change any more.
type Jobs struct {
	mu sync.Mutex
	by table[jobKey, Job]

	places places         // of all jobs
	kept   quantileBudget // likewise
	ending bool           // see Ending
}

// Job is a run of a job.
type Job struct {
	Run string // ml.run.id; "": its spans name none, and the job is identified by Service
	Digest
	Services    []string // by name
	Hosts       []string // likewise
	Spans       int64
	First, Last int64 // ns since 1970, of all spans but events, run and summary spans, and made-up times; 0: none

	Ends
	services, hosts map[string]bool
	gpus            table[gpuKey, GPU]
	units           table[unitKey, Unit]

	book.Book                  // of its steps, for the account of its time
	account   *account.Account // made once, see Account
}

// jobKey is the run, else the service.
type jobKey struct{ run, service string }

// New returns empty Jobs.
func New() *Jobs { return new(Jobs) }

// Ending returns empty Jobs that sum up only the ends of runs and their collectives, for callers that need no other figures.
func Ending() *Jobs { return &Jobs{ending: true} }

// Batch adds the spans of a message.
func (j *Jobs) Batch(td ptrace.Traces) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, job := range j.by.by {
		job.Steps.message.begin()
	}
	var res resource
	for _, rs := range td.ResourceSpans().All() {
		attrs := rs.Resource().Attributes()
		res.Read(attrs)
		job := j.job(&res)
		madeUp := spans.TimeSource(spans.AttrText(attrs, spans.AttrTimeSource)) == spans.TimeSynthetic
		for _, ss := range rs.ScopeSpans().All() {
			job.add(ss.Spans(), &res, madeUp, j.ending)
		}
	}
	for _, job := range j.by.by {
		job.Collectives.adoptOrphans()
	}
	j.kept.count(td.SpanCount(), j.each)
	book.Fit(j.books(), book.MostSteps)
}

// Windows adds breakdowns without spans, as Batch adds spans.
func (j *Jobs) Windows(list []spans.Window) {
	j.mu.Lock()
	defer j.mu.Unlock()
	res := resource{offset: -1}
	for i := range list {
		w := &list[i]
		res.Service, res.Run = w.Service, w.RunID
		job := j.job(&res)
		s := job.addBare(w, &res)
		job.Spans++
		job.addToBook(s, view.KindBreakdown, &res)
		job.extendTime(s)
	}
	j.kept.count(len(list), j.each)
	book.Fit(j.books(), book.MostSteps)
}

// each calls f for every distribution of every job.
func (j *Jobs) each(f func(*Values)) {
	for _, job := range j.by.by {
		job.each(f)
		for _, u := range job.units.by {
			f(&u.Values)
			f(&u.Abnormal)
		}
		for _, g := range job.gpus.by {
			for _, v := range []*Values{&g.Utilization, &g.Power, &g.Temperature, &g.Clock, &g.Memory} {
				f(v)
			}
		}
	}
}

// add adds the spans of a scope. madeUp: their times are not from a clock. ending: see Ending.
func (j *Job) add(list ptrace.SpanSlice, res *resource, madeUp, ending bool) {
	n := list.Len()
	j.Spans += int64(n)
	res.file, res.offset = "", -1
	located := true // false once a span lacks a place: then the other spans lack one, too. Run spans never have one
	for i := range n {
		s := list.At(i)
		kind := view.KindOf(s)
		if located && s.Attributes().Len() > 0 && !res.locate(s) && res.offset < 0 && kind != view.KindRun {
			located = false
		}
		if kind == view.KindEvent {
			j.addEvent(s, res)
			continue
		}
		switch kind {
		case view.KindStep:
			j.noteStep(s, res, madeUp)
		case view.KindSummary:
			j.noteSummary(s, res, madeUp)
		case view.KindCollective, view.KindFunction:
			j.noteWork(s, madeUp)
		}
		if !ending || kind == view.KindCollective || kind == view.KindRank {
			j.span(s, kind, res)
		}
		if !ending {
			j.addToBook(s, kind, res)
		}
		if !madeUp && kind != view.KindRun && kind != view.KindSummary {
			j.extendTime(s)
		}
	}
}

// job returns the job of a resource, by run, else by service, made if absent, and adds the service and the host of the resource. Jobs beyond mostJobs are one,
// Other.
func (j *Jobs) job(res *resource) *Job {
	k := jobKey{run: res.Run}
	if k.run == "" {
		k.service = res.Service
	}
	job := j.by.findOrMake(k, jobKey{Other, Other}, mostJobs, func(k jobKey) (jobKey, *Job) {
		k = jobKey{shortText(k.run), shortText(k.service)}
		return k, &Job{Run: k.run, Digest: Digest{places: &j.places}, services: map[string]bool{}, hosts: map[string]bool{}}
	})
	if res.Service != "" {
		noteName(job.services, res.Service)
	}
	if res.Host != "" {
		noteName(job.hosts, res.Host)
	}
	return job
}

// extendTime extends the time of the job by that of a span.
func (j *Job) extendTime(s ptrace.Span) {
	start, end := int64(s.StartTimestamp()), int64(s.EndTimestamp())
	if j.First == 0 || start < j.First {
		j.First = start
	}
	j.Last = max(j.Last, end)
}

// Left returns how often a resource belonged to a job beyond mostJobs: such jobs are summed up as one, Other.
func (j *Jobs) Left() int64 { return j.by.Left }

// Rows returns the jobs, by start.
func (j *Jobs) Rows() []*Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.kept.enforce(j.each)
	for _, job := range j.by.by {
		job.Services, job.Hosts = slices.Sorted(maps.Keys(job.services)), slices.Sorted(maps.Keys(job.hosts))
	}
	return j.by.rows(func(a, b *Job) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Run, b.Run), slices.Compare(a.Services, b.Services))
	})
}
