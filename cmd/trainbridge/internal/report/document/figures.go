package document

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// reader makes the types of the document from the sums over a reading; the reading knows the names of files and the numbers of lines.
type reader struct{ read *offline.Reading }

// distribution is nil without values: the document then has no such key.
func distribution(v *digest.Values) *Distribution {
	if v.Count() == 0 {
		return nil
	}
	at := func(q float64) number { return number(v.Quantile(q)) }
	return &Distribution{
		Count: v.Count(), Sum: total(v.Sum()), Mean: total(v.Mean()), Std: total(v.Std()), Min: number(v.Min()), P10: at(0.1), P50: at(0.5), P90: at(0.9),
		P95: at(0.95), P99: at(0.99), Max: number(v.Max()), Exact: v.Exact(),
	}
}

// total is a sum of many numbers, or made of a sum. The last digits depend on the order of reading, and are left out: the same logs make the same document.
func total(x float64) number {
	short, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 12, 64), 64)
	if err != nil {
		return number(x)
	}
	return number(short)
}

// whole is nil for an unknown number.
func whole(n view.Int) *int64 {
	if !n.OK {
		return nil
	}
	return &n.N
}

// stamp is a time of ns since 1970 in RFC 3339, UTC; "" for 0, not known.
func stamp(ns int64) string {
	if ns == 0 {
		return ""
	}
	return time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
}

// at is the evidence at a place, without the number of its line.
func (r reader) at(what string, at digest.At) Evidence {
	e := Evidence{What: what, TraceID: at.Trace.String(), SpanID: at.Span.String(), Time: stamp(at.Start)}
	if at.Offset < 0 {
		return e
	}
	e.File, e.Offset = r.read.Name(at.File), &at.Offset
	return e
}

// line is at with the number of the line. It takes time, because the log is read up to there: at is for long lists.
func (r reader) line(what string, at digest.At) Evidence {
	e := r.at(what, at)
	if e.Offset != nil {
		e.Line = r.read.LineAt(at.File, at.Offset)
	}
	return e
}

// all maps a list; the result is never nil, which would be null in JSON.
func all[A, B any](in []A, f func(A) B) []B {
	out := make([]B, 0, len(in))
	for _, a := range in {
		out = append(out, f(a))
	}
	return out
}

// few maps the first five of a list.
func few[A, B any](in []A, f func(A) B) []B { return all(in[:min(len(in), 5)], f) }

// job is the contents of the spans of a job, and the conclusions.
func (r reader) job(j *digest.Job, c format.Conclusion) Job {
	out := Job{
		Run: j.Run, Services: all(j.Services, same), Hosts: all(j.Hosts, same), Spans: j.Spans, First: stamp(j.First), Last: stamp(j.Last),
		Windows: all(j.Windows.Rows(), r.window), Training: all(j.Steps.Rows(), r.training), TransferQueue: r.transferQueue(j), RPC: r.rpc(j),
		Collectives: r.collectives(j), Findings: all(j.Verdicts.Rows(), r.finding), Files: []string{},
		Conclusion: c.Headline, Severity: c.Severity, Untold: all(c.Gaps, same),
		Claims: all(c.Claims, func(c format.Claim) Claim {
			return Claim{c.Kind, c.About, c.Text, total(c.Cost), total(c.Devices), c.Advice, all(c.Seen, func(s format.Seen) Evidence { return r.line(s.What, s.At) })}
		}),
	}
	out.Account, out.End = accountOf(j), r.end(c)
	out.Files = append(out.Files, all(r.read.FilesOf(j.Run), r.read.Name)...)
	return out
}

// end is how the run ended. An unknown step (-1) and an unknown wait (0 in c.End) are null; a line of evidence without a place has the number 0.
func (r reader) end(c format.Conclusion) End {
	e := &c.End
	out := End{
		Kind: e.Kind, Sentence: e.Sentence, Certain: e.Certain, Ranks: append([]int64{}, e.Ranks...), Hosts: append([]string{}, e.Hosts...),
		Advice: e.Advice, Waited: number(math.NaN()),
	}
	if c.Step >= 0 {
		out.Step = &c.Step
	}
	if e.Waited > 0 {
		out.Waited = total(e.Waited)
	}
	out.Evidence = all(e.Evidence, func(l postmortem.Evidence) EndLine {
		line := EndLine{File: r.read.Name(l.At.File), Text: l.Text}
		if l.At.Offset >= 0 {
			line.Line = r.read.LineAt(l.At.File, l.At.Offset)
		}
		return line
	})
	return out
}

// accountOf is the account of a job; nil: no log tells of steps with times. Only states with a known number of ranks have GPU-seconds (Devices), and only an
// account with a clock has the times of attempts.
func accountOf(j *digest.Job) *Account {
	a := j.Account()
	if a == nil {
		return nil
	}
	out := &Account{
		Wall: total(a.Wall), Clock: a.Clock, States: map[string]number{}, Devices: map[string]number{}, Goodput: total(a.Goodput()), Google: total(a.Google()),
		CRE: total(a.CRE()), ETTR: total(a.ETTR()), Steps: a.Steps, Redone: a.Redone, Usual: number(a.Usual),
	}
	for s, seconds := range a.Seconds {
		out.States[account.State(s).String()] = total(seconds)
		if a.Devices[s] > 0 {
			out.Devices[account.State(s).String()] = total(a.Devices[s])
		}
	}
	known := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	out.Attempts = all(a.Attempts, func(at account.Attempt) Attempt {
		one := Attempt{First: known(at.First), Last: known(at.Last), Steps: at.Steps, Redone: at.Redone, Ranks: at.Ranks}
		if a.Clock {
			one.Start, one.End = stamp(at.Start), stamp(at.End)
		}
		return one
	})
	return out
}

// same lets all copy a list of texts.
func same(s string) string { return s }

// window is the windows of a kind, such as all steps: where the time went, and why slow windows were slow.
func (r reader) window(w *digest.Window) Window {
	return Window{
		Of: w.Of, Duration: distribution(&w.Took), Slow: w.SlowCount,
		Parts: all(w.ByTime(), func(p *digest.Part) Part { return Part{p.Name, total(w.Share(p)), distribution(&p.All)} }),
		Causes: all(w.Costs(), func(c *digest.Cost) Cause {
			out := Cause{
				Part: c.Part, Rank: whole(c.Rank), Host: c.Host, Windows: c.Windows, Time: total(c.Time.Sum()),
				Evidence: few(c.Dearest, func(d digest.Ranked[digest.Blamed]) BlamedPlace {
					return BlamedPlace{r.line("", d.At), number(d.Weight), whole(d.Of.Iteration), d.Of.Operation, d.Of.Comm, d.Of.Note}
				}),
			}
			if c.Devices.Count() > 0 {
				sum := total(c.Devices.Sum())
				out.Device = &sum
			}
			return out
		}),
		Slowest: few(w.Slow, func(d digest.Ranked[digest.Slow]) Slow {
			return Slow{r.at("", d.At), whole(d.Of.Iteration), number(d.Of.Took), number(d.Of.Over), d.Of.Reason}
		}),
	}
}

// figures are the names of values in training logs. FLOP/s are as logged, unless recomputed; memory is in By, shares are 0..1.
var figures = [digest.Figures]string{
	digest.StepTime: "step_time_s", digest.Loss: "loss", digest.ValidationLoss: "validation_loss", digest.LearningRate: "learning_rate",
	digest.GradientNorm: "gradient_norm", digest.SampleThroughput: "samples_per_second", digest.TokenThroughput: "tokens_per_second",
	digest.DeviceTokenThroughput: "tokens_per_second_per_gpu", digest.FlopThroughputReported: "flops_total",
	digest.DeviceFlopThroughputReported: "flops_per_gpu", digest.FlopThroughput: "recomputed_flops_total",
	digest.DeviceFlopThroughput: "recomputed_flops_per_gpu", digest.MFUReported: "mfu_reported", digest.MFU: "mfu", digest.MemoryUsage: "memory_bytes",
	digest.MemoryPeak: "peak_memory_bytes", digest.GPUUtilization: "gpu_utilization",
}

// training is a training log. Figures and parts without values are left out.
func (r reader) training(l *digest.Log) Training {
	out := Training{
		Format: l.Name, Records: l.Records, Steps: total(l.Covered), LossFirst: r.loss(l.First), LossLast: r.loss(l.Last), LossMin: r.loss(l.Lowest),
		NotFinite: l.NotFinite, Figures: map[string]*Distribution{}, Parts: map[string]*Distribution{}, Slowest: few(l.Slowest, r.slowest),
	}
	for i := range l.Measures {
		if d := distribution(&l.Measures[i].Values); d != nil {
			out.Figures[figures[i]] = d
		}
	}
	for name, m := range l.Parts {
		if d := distribution(&m.Values); d != nil {
			out.Parts[name] = d
		}
	}
	return out
}

// loss is a loss and its place; nil: the log has none.
func (r reader) loss(l *digest.LossAt) *Loss {
	if l == nil {
		return nil
	}
	return &Loss{r.at("", l.At), whole(l.Step), number(l.Value), l.String()}
}

// slowest is one of the slowest spans, with the number of its step, if it has any.
func (r reader) slowest(d digest.Ranked[view.Int]) Slowest {
	return Slowest{r.at("", d.At), whole(d.Of), number(d.Weight)}
}

// transferQueue is TransferQueue's functions and client operations; nil: no log has any.
func (r reader) transferQueue(j *digest.Job) *TransferQueue {
	functions, operations := j.Functions.Rows(), j.Functions.Operations()
	if len(functions)+len(operations) == 0 {
		return nil
	}
	sum := j.Functions.Sum()
	return &TransferQueue{
		Traces: j.Functions.Traces, Calls: sum.Calls, Incomplete: sum.Incomplete, WithoutID: sum.WithoutID, Total: total(sum.Total), Get: total(sum.Get),
		Compute: total(sum.Compute), Put: total(sum.Put), Overhead: total(sum.Ratio(sum.Get + sum.Put)),
		Functions: all(functions, func(f *digest.Function) Function {
			s := f.Sums()
			return Function{
				Function: f.Name, Calls: s.Calls, Incomplete: s.Incomplete, Total: total(s.Total), Get: total(s.Get), Compute: total(s.Compute),
				Put: total(s.Put), Overhead: total(s.Ratio(s.Get + s.Put)), Duration: distribution(&f.Took), GetTimes: distribution(&f.Stages[spans.TQGet]),
				PutTimes: distribution(&f.Stages[spans.TQPut]), Slowest: few(f.Slowest, r.slowest),
			}
		}),
		Operations: all(operations, func(o *digest.Operation) Operation {
			return Operation{o.Stage.String(), distribution(&o.Took), distribution(&o.Size), distribution(&o.Throughput), total(o.Overall())}
		}),
	}
}

// stages are the stages of a call in the document: those that are logged, not those that are sums or rests.
var stages = []view.RPCStage{view.RPCSerialize, view.RPCSend, view.RPCReceive, view.RPCDeserialize, view.RPCServer, digest.RPCOffline}

// rpc is the RPCs of a job; nil: no log has any.
func (r reader) rpc(j *digest.Job) *RPC {
	if j.Passes.Calls.Took.Count() == 0 && j.Passes.Count == 0 {
		return nil
	}
	return &RPC{
		Calls: r.calls(&j.Passes.Calls), Passes: j.Passes.Count, Duration: distribution(&j.Passes.Complete.Duration),
		Logs: all(j.Passes.Logs(), func(l *digest.CallLog) CallLog {
			out := CallLog{File: r.read.Name(l.File), Transports: map[string]int{}, WarmUp: l.WarmUp, Calls: r.calls(&l.Calls)}
			maps.Copy(out.Transports, l.Transports)
			return out
		}),
	}
}

// calls are calls together. Stages without a time are left out. RPCOffline, which view has no name for, is "offline".
func (r reader) calls(c *digest.Calls) Calls {
	one := func(d digest.Ranked[digest.Call]) Call {
		out := Call{
			Evidence: r.at("", d.At), ID: whole(d.Of.ID), Method: d.Of.Method, Duration: number(d.Of.Took), Stages: map[string]number{},
			Sent: number(d.Of.Sent), Received: number(d.Of.Received), Throughput: number(d.Of.Throughput),
		}
		for _, s := range stages {
			if x := d.Of.Stages[s]; !math.IsNaN(x) {
				out.Stages[cmp.Or(s.String(), "offline")] = number(x)
			}
		}
		return out
	}
	out := Calls{
		Duration: distribution(&c.Took), Stages: map[string]*Distribution{}, Sent: distribution(&c.Sent), Received: distribution(&c.Received),
		Throughput: distribution(&c.Throughput), Overall: total(c.Overall()), Incomplete: c.Incomplete,
		Methods: all(c.Methods(), func(m *digest.Method) Method {
			return Method{m.Name, distribution(&m.Took), distribution(&m.Sent), distribution(&m.Received)}
		}),
		Slowest: few(c.Slowest, one), Largest: few(c.Largest, one),
	}
	for _, s := range stages {
		if d := distribution(&c.Stages[s]); d != nil {
			out.Stages[cmp.Or(s.String(), "offline")] = d
		}
	}
	return out
}

// collectives are the collectives of a job; nil: no log has any.
func (r reader) collectives(j *digest.Job) *Collectives {
	c := &j.Collectives
	operations := c.Operations()
	if len(operations) == 0 {
		return nil
	}
	link := func(l *digest.Link) Link {
		return Link{l.Source, l.Destination, total(l.Bytes), number(l.Bandwidth), l.Hot, l.Slow}
	}
	return &Collectives{
		Operations: all(operations, r.operations), Rows: all(c.Rows(), r.operations), Links: all(c.Links(), link), Nodes: all(c.Nodes(), link),
		Communicators: all(c.Communicators(), func(c *digest.Communicator) Communicator {
			return Communicator{c.ID, c.Name, c.Size, c.Collectives}
		}),
		Ranks: all(c.Ranks(), func(k *digest.Rank) Rank {
			return Rank{
				k.Communicator, k.Rank, k.Host, k.Records, k.Last, total(k.Late.Mean()), number(k.Late.Max()), total(k.Cost.Sum()), k.Straggler,
				number(k.Errors), number(k.Retries),
			}
		}),
	}
}

// operations are collectives together: of an operation, or of an operation in a communicator.
func (r reader) operations(c *digest.Collective) Operations {
	one := func(d digest.Ranked[digest.Instance]) Collective {
		i := &d.Of
		return Collective{
			r.at("", d.At), i.Operation, i.Communicator, whole(i.Sequence), number(i.Size), number(i.Took), number(i.Last.Late), whole(i.Last.Rank), i.Last.Host,
		}
	}
	out := Operations{
		Communicator: c.Communicator, Operation: c.Operation, Count: c.Count, Incomplete: c.Incomplete, Hangs: c.Hangs, Errors: number(c.Errors),
		Retries: number(c.Retries), Duration: distribution(&c.Took), Algorithm: distribution(&c.Algorithm), Bus: distribution(&c.Bus),
		Late: distribution(&c.Late), Cost: total(c.Cost.Sum()), RankDuration: distribution(&c.Records.Took), RankReported: distribution(&c.Records.Bandwidth),
		Sizes: []Size{}, Slowest: few(c.Slowest, one), Latest: few(c.Latest, one),
	}
	for _, i := range slices.Sorted(maps.Keys(c.Sizes)) {
		s := c.Sizes[i]
		out.Sizes = append(out.Sizes, Size{number(math.Ldexp(1, i)), s.Count, total(s.Bytes), total(s.Bus.Mean())})
	}
	return out
}

// finding is a verdict by name, with its worst instances. Unit, meaning and advice are the registry's; "" for a verdict unknown there.
func (r reader) finding(f *digest.Finding) Finding {
	known, _ := spans.VerdictNamed(f.Name, f.Cause)
	return Finding{
		Verdict: f.Name, Cause: f.Cause, Stage: f.Stage, Severity: f.Severity, Unit: known.Unit, Count: f.Count, Meaning: known.Meaning, Advice: known.Advice,
		Worst: few(f.Worst, func(d digest.Ranked[view.Verdict]) Verdict {
			v := &d.Of
			return Verdict{
				Evidence: r.at("", d.At), Verdict: f.Name, Cause: f.Cause, Stage: f.Stage, Reason: v.Reason, Value: number(v.Value), Threshold: number(v.Threshold),
			}
		}),
	}
}

// files are all files, with how many of their lines were records, ignored or rejected, and why.
func (r reader) files() []File {
	reasons := func(in map[string]*offline.Reason) map[string]Reason {
		out := make(map[string]Reason, len(in))
		for name, why := range in {
			out[name] = Reason{why.Lines, why.Line, why.Text}
		}
		return out
	}
	return all(r.read.Files, func(f *offline.File) File {
		return File{f.Name, f.Receiver, f.Also, f.Binary, f.Size, f.Lines, f.Records, reasons(f.Ignored), reasons(f.Rejected)}
	})
}
