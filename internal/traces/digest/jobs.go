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

	places places // of all jobs
	kept   kept   // likewise
	ending bool   // see Ending
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

// New sums up nothing yet.
func New() *Jobs { return new(Jobs) }

// Ending sums up only the ends of runs and their collectives, for callers without need of figures.
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
		job.Collectives.adopt()
	}
	j.kept.look(td.SpanCount(), j.each)
	book.Fit(j.books(), book.MostSteps)
}

// each calls f with every distribution of all jobs.
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

// add adds the spans of a scope. madeUp: their times are not of a clock. ending: see Ending.
func (j *Job) add(list ptrace.SpanSlice, res *resource, madeUp, ending bool) {
	n := list.Len()
	j.Spans += int64(n)
	res.file, res.offset = "", -1
	located := true // until a first span lacks a place: then no span has one, and none is looked for. Run spans never have one
	for i := range n {
		s := list.At(i)
		kind := view.KindOf(s)
		if located && s.Attributes().Len() > 0 && !res.locate(s) && res.offset < 0 && kind != view.KindRun {
			located = false
		}
		if kind == view.KindEvent {
			j.event(s, res)
			continue
		}
		switch kind {
		case view.KindStep:
			j.stepped(s, res, madeUp)
		case view.KindSummary:
			j.summed(s, res, madeUp)
		}
		if !ending || kind == view.KindCollective || kind == view.KindRank {
			j.span(s, kind, res)
		}
		if !ending {
			j.book(s, kind, res)
		}
		if !madeUp && kind != view.KindRun && kind != view.KindSummary {
			j.lasted(s)
		}
	}
}

// job finds or begins the job of a resource, by run, else by service, and notes the resource's service and host. Jobs beyond mostJobs are one, Other.
func (j *Jobs) job(res *resource) *Job {
	k := jobKey{run: res.Run}
	if k.run == "" {
		k.service = res.Service
	}
	job := j.by.of(k, jobKey{Other, Other}, mostJobs, func(k jobKey) (jobKey, *Job) {
		k = jobKey{text(k.run), text(k.service)}
		return k, &Job{Run: k.run, Digest: Digest{places: &j.places}, services: map[string]bool{}, hosts: map[string]bool{}}
	})
	if res.Service != "" {
		note(job.services, res.Service)
	}
	if res.Host != "" {
		note(job.hosts, res.Host)
	}
	return job
}

// lasted widens the job's time by that of a span.
func (j *Job) lasted(s ptrace.Span) {
	start, end := int64(s.StartTimestamp()), int64(s.EndTimestamp())
	if j.First == 0 || start < j.First {
		j.First = start
	}
	j.Last = max(j.Last, end)
}

// Left returns how often a resource was of a job beyond the bound: such jobs are one, Other.
func (j *Jobs) Left() int64 { return j.by.Left }

// Rows returns the jobs by start.
func (j *Jobs) Rows() []*Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.kept.settle(j.each)
	for _, job := range j.by.by {
		job.Services, job.Hosts = slices.Sorted(maps.Keys(job.services)), slices.Sorted(maps.Keys(job.hosts))
	}
	return j.by.rows(func(a, b *Job) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Run, b.Run), slices.Compare(a.Services, b.Services))
	})
}
