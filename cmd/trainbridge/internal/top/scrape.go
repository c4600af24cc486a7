package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	promodel "github.com/prometheus/common/model"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	scrapeEvery   = 2 * time.Second
	scrapeTimeout = 5 * time.Second
	scrapeMost    = 64 << 20 // bytes
)

// scraper fills a model with the metrics of a running trainbridge. Single steps are not in metrics: a scrape in which the iteration has changed is a point of
// the curves, and differences of counters say what went on between two scrapes.
type scraper struct {
	*model
	url    string
	client http.Client
	now    func() time.Time
	before map[string]*totals // counters of the scrape before, by run
}

// totals are the counters of a run in a scrape.
type totals struct {
	time     float64            // s, of all steps
	steps    float64            // their number
	parts    map[string]float64 // s of steps, by part
	verdicts map[string]float64 // by severity and title, as "bad slow step"
}

// newScraper is a scraper of a URL.
func newScraper(m *model, url string) *scraper {
	return &scraper{model: m, url: url, client: http.Client{Timeout: scrapeTimeout}, now: time.Now, before: map[string]*totals{}}
}

// run scrapes again and again until the context ends.
func (s *scraper) run(ctx context.Context) {
	t := time.NewTicker(scrapeEvery)
	defer t.Stop()
	defer s.client.CloseIdleConnections()
	for {
		families, err := s.scrape(ctx)
		if ctx.Err() != nil {
			return
		}
		s.change(func() {
			if err != nil {
				s.trouble = err.Error()
				return
			}
			s.trouble = ""
			s.take(families)
		})
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// scrape gets the page of metrics, by name. The error is a sentence for the screen.
func (s *scraper) scrape(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, fmt.Errorf("--metrics %s: %w", s.url, err)
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no metrics at %s: is trainbridge running? Or name the logs: trainbridge top PATH (%w)", s.url, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", s.url, resp.Status)
	}
	parser := expfmt.NewTextParser(promodel.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(resp.Body, scrapeMost))
	if err != nil {
		return nil, fmt.Errorf("%s is no page of metrics: %w", s.url, err)
	}
	return families, nil
}

// exposed are the Prometheus exporter's names of metrics: underscores for dots, and the unit added.
var exposed = map[string]string{
	"hw_gpu_utilization_ratio":        spans.MetricGPUUtilization,
	"hw_gpu_memory_usage_bytes":       "hw.gpu.memory.usage",
	"hw_gpu_memory_limit_bytes":       spans.MetricGPUMemoryLimit,
	"hw_power_watts":                  spans.MetricHardwarePower,
	"hw_temperature_celsius":          spans.MetricHardwareTemperature,
	"trainbridge_gpu_throttle_active": spans.MetricGPUThrottleActive,
}

// take puts a scrape into the model: GPUs, and for each run (the label instance) the latest values of a step, the changes of counters since the scrape before,
// and where the wall-clock time went. A run without any value of a step is passed over; of a run with neither an iteration nor a loss only the wall-clock time
// is taken.
func (s *scraper) take(families map[string]*dto.MetricFamily) {
	now := s.now()
	// each visits the series of a metric.
	each := func(family string, f func(run string, m *dto.Metric)) {
		for _, m := range families[family].GetMetric() {
			f(label(m, "instance"), m)
		}
	}
	for family, metric := range exposed {
		each(family, func(_ string, m *dto.Metric) {
			s.addGPU(label(m, "host.name"), metric, value(m), func(name string) string { return label(m, name) })
		})
	}
	latest, current, accounts := latestOf(each, now), totalsOf(each), accountsOf(each)
	for run, p := range latest {
		j := s.job(run, now)
		if a := accounts[run]; a != nil {
			j.spent = *a
		}
		if p.n < 0 && math.IsNaN(p.loss) { // no training step yet
			continue
		}
		if current[run] == nil { // no counter yet: the first values will be growth from 0
			current[run] = new(totals)
		}
		s.compare(j, p, current[run], s.before[run])
	}
	s.before = current
}

// latestOf returns each run's latest step values. The iteration is the highest over all series. each calls a function for each series of a metric, with the
// run.
func latestOf(each func(family string, f func(run string, m *dto.Metric)), now time.Time) map[string]*step {
	latest := map[string]*step{}
	of := func(run string) *step {
		if latest[run] == nil {
			nan := math.NaN()
			latest[run] = &step{n: -1, end: now.UnixNano(), time: nan, tokens: nan, sample: nan, flop: nan, mfu: nan, loss: nan}
		}
		return latest[run]
	}
	each("ml_train_iteration", func(run string, m *dto.Metric) { of(run).n = max(of(run).n, int64(value(m))) })
	// gauge sets one value of a step; if several series or metrics give the value, the first wins.
	gauge := func(family string, to func(*step) *float64) {
		each(family, func(run string, m *dto.Metric) {
			if p := to(of(run)); math.IsNaN(*p) {
				*p = value(m)
			}
		})
	}
	gauge("ml_train_loss", func(s *step) *float64 { return &s.loss })
	gauge("ml_train_token_throughput_per_second", func(s *step) *float64 { return &s.tokens })
	gauge("ml_train_sample_throughput_per_second", func(s *step) *float64 { return &s.sample })
	gauge("ml_train_device_flop_throughput_per_second", func(s *step) *float64 { return &s.flop })
	gauge("ml_train_device_flop_throughput_reported_per_second", func(s *step) *float64 { return &s.flop })
	gauge("ml_train_mfu_ratio", func(s *step) *float64 { return &s.mfu })
	return latest
}

// totalsOf are the counters of each run, by run, summed over their series. each calls a function for each series of a metric, with the run.
func totalsOf(each func(family string, f func(run string, m *dto.Metric))) map[string]*totals {
	current := map[string]*totals{}
	sums := func(run string) *totals {
		if current[run] == nil {
			current[run] = &totals{parts: map[string]float64{}, verdicts: map[string]float64{}}
		}
		return current[run]
	}
	each("ml_train_step_duration_seconds", func(run string, m *dto.Metric) {
		h := m.GetHistogram()
		sums(run).time += h.GetSampleSum()
		sums(run).steps += float64(h.GetSampleCount())
	})
	each("ml_step_time_seconds_total", func(run string, m *dto.Metric) {
		if label(m, spans.AttrStepWindow) == spans.WindowStep {
			sums(run).parts[label(m, spans.AttrStepPart)] += value(m)
		}
	})
	each("trainbridge_verdicts_total", func(run string, m *dto.Metric) {
		said := view.Said{Name: label(m, spans.AttrVerdictName), Cause: label(m, spans.AttrVerdictCause), Stage: label(m, spans.AttrTQStage)}
		sums(run).verdicts[label(m, spans.AttrVerdictSeverity)+" "+said.Title()] += value(m)
	})
	return current
}

// compare adds the latest values of a run's steps (p) to its job, and the changes since the scrape before; before is nil at the first scrape. A new iteration
// is a new step. If the iteration is still that of the last step, only the mean time is taken, if known.
func (s *scraper) compare(j *job, p *step, now, before *totals) {
	if before != nil {
		s.addChanges(j, p, now, before)
	}
	n := len(j.steps)
	if n == 0 || j.steps[n-1].n != p.n {
		s.addStep(j, *p)
		return
	}
	if !math.IsNaN(p.time) {
		j.steps[n-1].time = p.time
	}
}

// addChanges adds the changes of a run's counters between two scrapes: a window with where the time of the steps went, and the new verdicts. It sets p.time to
// the mean time of the steps between, s, if there were any.
func (s *scraper) addChanges(j *job, p *step, now, before *totals) {
	if n := now.steps - before.steps; n > 0 {
		p.time = (now.time - before.time) / n
	}
	w := window{n: p.n, end: p.end, parts: map[string]float64{}}
	for part, sum := range now.parts {
		if took := sum - before.parts[part]; took > 0 && len(w.parts) < mostParts {
			w.parts[part] = took
			w.whole += took
		}
	}
	if w.whole > 0 {
		j.addWindow(w)
	}
	for key, n := range now.verdicts {
		if more := n - before.verdicts[key]; more > 0 {
			severity, name, _ := strings.Cut(key, " ")
			s.addVerdict(j, verdict{p.end, "", name, severity, human.Thousands(more) + " times since the last look"})
		}
	}
}

// label is the value of a label, found by the name of the attribute behind; "": absent. Prometheus' names have underscores for dots.
func label(m *dto.Metric, attribute string) string {
	name := strings.ReplaceAll(attribute, ".", "_")
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// value is the value of a gauge, a counter, or a metric without a type.
func value(m *dto.Metric) float64 {
	switch {
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	}
	return m.GetUntyped().GetValue()
}
