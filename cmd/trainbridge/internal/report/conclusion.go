package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/cause"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	mostClaims = 8    // claims that are told; of more their number
	mostRanks  = 3    // named of the waited-for ranks
	evidences  = 3    // of a claim
	little     = 0.01 // of the loss, of the time of the job, or of its collectives: less is not worth a claim
	enough     = 16   // windows: with more than these, slow ones would have been found
)

// slowWindows is the kind of claims of causes of slow windows.
const slowWindows = "slow"

// claim is a finding of the logs.
type claim struct {
	kind    string // for programs: slow, checkpoint, down, …; "": of a verdict, of TransferQueue, of a time zone
	what    string
	short   string  // for the headline: "loading data"
	cost    float64 // s; NaN: not known
	lost    float64 // s that no other claim has: losses are added up
	devices float64 // s x ranks; 0: not known
	grade   int     // ended, wrong, costly, remark or distrust
	proof   []proof
	advice  string
}

// proof is where a claim can be seen.
type proof struct {
	what string
	digest.At
}

// conclusion is everything to say of a job. Its methods that add claims are called once each, by conclude.
type conclusion struct {
	*page
	job  *digest.Job
	read *offline.Reading

	window  *digest.Window // the outermost kind of window; nil: no log tells where the time went
	several bool           // a step's window covers several steps
	claims  []claim
	lost    float64 // s more than usual, of all slow windows
	twice   float64 // s of them that claims of late ranks have too

	grownRanks []int64 // ranks named as the cause of longer steps from some step on

	account   account.Account
	accounted bool  // account is set: a log tells of steps with times
	size      int64 // ranks; 0: not known
	end       postmortem.End
	held      *disturbance // what held up the slow steps that no part explains; nil: not known
	step      int64        // the last step; -1: none
	smi       []gpuFile    // tables of nvidia-smi, where smiRead is set
	smiRead   bool
	gpusTold  bool // a claim about longer steps names the GPUs whose clock fell
}

// conclude makes the conclusion of a job: it looks for all that can be claimed, and sorts the claims by grade, then cost. p prints the texts.
func conclude(p *page, job *digest.Job, read *offline.Reading) *conclusion {
	c := &conclusion{page: p, job: job, read: read}
	// Outer kinds of windows come first. An inner kind is taken only if it was slow and the outer was not.
	for _, w := range job.Windows.Rows() {
		if w.Took.Count() > 0 && (c.window == nil || c.window.SlowCount == 0 && w.SlowCount > 0) {
			c.window = w
		}
	}
	for _, l := range job.Steps.Rows() {
		c.several = c.several || l.Covered > float64(l.Records)
	}
	if a := job.Account(); a != nil {
		c.account, c.accounted = *a, true
	}
	c.size = c.account.Ranks
	for _, comm := range communicators(job) {
		c.size = max(c.size, comm.ranks)
	}
	// ranks and hosts come after causes and steadyParts, whose claims may have the same seconds of waiting.
	c.died()
	c.causes()
	c.steadyParts()
	c.states()
	c.course()
	c.units()
	c.queue()
	c.repeats()
	c.ranks()
	c.hosts()
	c.slowByTimers()
	c.slowComms()
	c.clocks()
	c.throttledGPUs()
	c.shared()
	c.zones()
	c.findings()
	slices.SortStableFunc(c.claims, func(a, b claim) int { // NaN is less than any cost
		return cmp.Or(cmp.Compare(a.grade, b.grade), cmp.Compare(b.cost, a.cost))
	})
	return c
}

// slow says whether windows were slow: their causes are then claims (causes).
func (c *conclusion) slow() bool { return c.window != nil && c.window.SlowCount > 0 }

// steps returns a number of steps in words: "12 steps".
func (c *conclusion) steps(n int64) string {
	return c.in(human.Plural(n, "step"), human.Thousands(n)+" 步")
}

// windows is a number of windows in words: "12 steps", "3 batches", or "12 records of steps" where a record covers several.
func (c *conclusion) windows(n int64) string {
	if c.several && c.window.Of == spans.WindowStep {
		return c.in(human.Plural(n, "record")+" of steps", human.Thousands(n)+" 条训练记录")
	}
	one, _ := tables.Window(c.window.Of, false)
	count := map[string]string{spans.WindowStep: " 步", spans.WindowBatch: " 个批次", spans.WindowPass: " 次前向"}[c.window.Of]
	return c.in(human.Plural(n, one), human.Thousands(n)+cmp.Or(count, " 个窗口"))
}

// numbered is how a single window is called: "step 12", or without an iteration "batch".
func (c *conclusion) numbered(iteration view.Int) string {
	if iteration.OK {
		return c.sf("step %d", "第 %d 步", iteration.N)
	}
	one, _ := tables.Window(c.window.Of, c.chinese)
	return one
}

// who is a rank in a sentence, with its host: "rank 3 (node-1)".
func (c *conclusion) who(rank view.Int, host string) string {
	return string(cause.AppendRank(nil, cause.Who{Rank: rank.N, Host: name(host)}, c.chinese))
}

// what says what went on in a part of the time, and who was behind the part, in the words of step_join: "waiting for rank 3 (node-1) in allreduce". in has the
// collective; its zero value: none.
func (c *conclusion) what(of *digest.Cost, in digest.Blamed) string {
	return string(cause.Append(nil, name(of.Part), cause.Who{
		Rank: of.Rank.N, HasRank: of.Rank.OK, Host: name(of.Host), Operation: name(in.Operation), Comm: name(in.Comm),
	}, c.chinese))
}

// note is the further fact about a cause that most (2/3) of the cost has; "": none.
func (c *conclusion) note(of *digest.Cost) string {
	switch note, share := of.Note(); {
	case !(share >= 2.0/3):
		return ""
	case share < 1:
		return c.in("mostly ", "主要是 ") + note
	default:
		return note
	}
}

// causes adds a claim for each of step_join's causes of slow windows that cost enough (little). If more than mostClaims/2 ranks were waited for, the dearest
// mostRanks have claims of their own, and the rest a claim together.
func (c *conclusion) causes() {
	if !c.slow() {
		return
	}
	costs := c.window.Costs()
	c.lost = c.window.Excess.Sum()
	ranks, named := 0, mostClaims/2 // that were waited for, and those with a claim of their own: fewer if others are told together
	for _, of := range costs {
		if of.Rank.OK {
			ranks++
		}
	}
	if ranks > named {
		named = mostRanks
	}
	var others claim // waiting for the other ranks
	seen := 0        // ranks so far
	for _, of := range costs {
		if of.Rank.OK {
			if seen++; seen > named { // told with the others, below
				others.cost += of.Time.Sum()
				others.devices += of.Devices.Sum()
				for _, d := range of.Dearest[:min(len(of.Dearest), max(0, evidences-len(others.proof)))] {
					others.proof = append(others.proof, proof{fmt.Sprintf("%s (rank %d, %s)", c.numbered(d.Of.Iteration), of.Rank.N, human.Seconds(d.Weight)), d.At})
				}
				continue
			}
		}
		if of.Time.Sum() < little*c.lost {
			continue
		}
		// The sentence is about all windows of the cause; the collective is that of the window that it cost the most.
		what := c.what(of, of.Dearest[0].Of)
		if note := c.note(of); note != "" {
			what += c.sf(" (%s)", "（%s）", name(note))
		}
		took := human.Seconds(of.Time.Sum())
		if of.Devices.Count() > 0 {
			took += c.sf(" (%s GPU-seconds)", "（%s GPU·秒）", human.Digits(of.Devices.Sum()))
		}
		cl := claim{
			kind: slowWindows, what: c.sf("%s %s, in %s", "%s：%s，共 %s", c.in(took, what), c.in(what, took), c.windows(of.Windows)+c.worker()),
			cost: of.Time.Sum(), grade: costly, short: c.what(of, digest.Blamed{}), lost: of.Time.Sum(), devices: of.Devices.Sum(), advice: c.advice(of.Part),
		}
		seen := c.heldUp(&cl, of, took)
		for _, d := range of.Dearest[:min(len(of.Dearest), evidences)] {
			cl.proof = append(cl.proof, proof{fmt.Sprintf("%s (%s)", c.numbered(d.Of.Iteration), human.Seconds(d.Weight)), d.At})
		}
		cl.proof = append(cl.proof, seen...)
		if of.Rank.OK {
			cl.proof = append(cl.proof, c.latest(of.Rank.N)...)
		}
		c.claims = append(c.claims, cl)
	}
	if n := ranks - named; n > 0 && others.cost >= little*c.lost {
		others.what = c.sf("%s waiting for %s", "等待其他 %[2]s：%[1]s", human.Seconds(others.cost), c.in(human.Plural(n, "other rank"), human.Thousands(n)+" 个 rank"))
		others.kind, others.lost, others.short = slowWindows, others.cost, c.in("waiting for other ranks", "等待其他 rank")
		others.grade, others.advice = costly, c.of(advices[spans.PartWait])
		c.claims = append(c.claims, others)
	}
}

// worker tells the log that nearly all (90 %) slow batches or passes are in, of several such logs; "": none, or steps are told.
func (c *conclusion) worker() string {
	const least, leastFiles = 4, 4
	in := map[string]int{}
	for _, slow := range c.window.Slow {
		in[slow.File]++
	}
	for file, n := range in {
		if n >= least && 10*n >= 9*len(c.window.Slow) && file != "" && c.window.Of != spans.WindowStep && c.window.Files() >= leastFiles {
			return c.sf(", nearly all in %s", "，几乎全部在 %s 中", name(filepath.Base(c.read.Name(file))))
		}
	}
	return ""
}

// latest is the evidence of how late a rank came: its record with the largest lateness; nil: its logs tell of none.
func (c *conclusion) latest(rank int64) []proof {
	var found *digest.Rank
	for _, r := range c.job.Collectives.Ranks() {
		if r.Rank == rank && len(r.Latest) > 0 && (found == nil || r.Latest[0].Weight > found.Latest[0].Weight) {
			found = r
		}
	}
	return c.latestOf(found)
}

// latestOf is latest for a rank of one communicator; nil: none, or the logs do not tell how late the rank came.
func (c *conclusion) latestOf(r *digest.Rank) []proof {
	if r == nil || len(r.Latest) == 0 {
		return nil
	}
	worst := &r.Latest[0]
	return []proof{{c.sf("%s, rank %d was %s late", "%s，rank %d 迟到 %s", name(worst.Of), r.Rank, human.Seconds(worst.Weight)), worst.At}}
}

// queue adds claims about TransferQueue, by the limits of its document: functions with more than 30 % of their time in GET and PUT, and client operations below
// 100 MiB/s, if these take 3 % of the calls' time or more: operations of a few milliseconds are slow by their latency. If no function as a whole is above the
// limit and no window was slow, calls above the limit make a claim, from 1 % of all calls (little) on.
func (c *conclusion) queue() {
	high := c.verdict(spans.VerdictTQOverhead) // of calls; nil: none, or functions have told already
	advice := advices[spans.PartGet]
	for _, f := range c.job.Functions.Rows() {
		s := f.Sums()
		if share := s.Ratio(s.Get + s.Put); share > 0.3 {
			cl := claim{
				what: c.sf("TransferQueue took %s of the %s of %s (GET %s, PUT %s; limit 30%%)", "TransferQueue 占 %[3]s 总耗时 %[2]s 的 %[1]s（GET %[4]s，PUT %[5]s；限值 30%%）",
					human.Percent(share), human.Seconds(s.Total), name(s.Name), human.Percent(s.Ratio(s.Get)), human.Percent(s.Ratio(s.Put))),
				// Calls of all ranks are added up, and run side by side.
				cost: (s.Get + s.Put) / max(1, float64(c.size)), devices: s.Get + s.Put, grade: costly, advice: c.of(advice),
			}
			for _, r := range f.Slowest[:min(len(f.Slowest), evidences)] {
				cl.proof = append(cl.proof, proof{human.Seconds(r.Weight), r.At})
			}
			c.claims = append(c.claims, cl)
			high = nil
		}
	}
	// Where steps were slow, the claims of their causes say more.
	all := c.job.Functions.Sum()
	if n, host := c.job.Functions.High(); high != nil && !c.slow() && float64(n) >= little*float64(all.Calls) {
		what := c.sf("%s of %s calls spent over 30%% in TransferQueue", "%[2]s 次调用中有 %[1]s 次的 TransferQueue 开销超过 30%%",
			human.Thousands(n), human.Thousands(all.Calls))
		if host != "" {
			what += c.sf(", all on %s", "，全部在 %s 上", name(host))
		}
		c.claims = append(c.claims, claim{what: what, cost: math.NaN(), grade: remark, advice: c.of(advice), proof: c.worst(high)})
	}
	for _, o := range c.job.Functions.Operations() {
		if rate := o.Overall(); rate < 100<<20 && o.Took.Sum() >= 3*little*all.Total {
			advice := c.in("Check the network bandwidth, the IOPS of the storage, and how the data is serialised.", "检查网络带宽，检查存储IOPS，优化数据序列化方式。")
			if o.Stage == spans.TQClientGet {
				advice = c.in("First look at who puts the data: a GET waits until the data are there. ", "先看数据的生产者：GET 会等到数据就绪。") + advice
			}
			c.claims = append(c.claims, claim{
				what: c.sf("%s moved %s at %s (limit 100 MiB/s)", "%s 传输 %s，速度 %s（限值 100 MiB/s）",
					name(o.Stage.String()), human.Bytes(o.Size.Sum()), human.BinaryRate(rate)),
				cost: math.NaN(), grade: remark, proof: c.worst(c.verdict(spans.VerdictTQThroughputLow)),
				advice: advice,
			})
		}
	}
}

// blamed says whether a cause of slow windows names the rank already.
func (c *conclusion) blamed(rank int64) bool {
	if !c.slow() {
		return false
	}
	return slices.ContainsFunc(c.window.Costs(), func(of *digest.Cost) bool { return of.Rank == (view.Int{N: rank, OK: true}) })
}

// verdict finds a bad verdict by name; nil: the job has none.
func (c *conclusion) verdict(name string) *digest.Finding {
	for _, f := range c.job.Verdicts.Rows() {
		if f.Name == name && f.Severity == spans.SeverityBad {
			return f
		}
	}
	return nil
}

// worst is the evidence of a verdict, which may be nil: the spans that were furthest from its limit.
func (c *conclusion) worst(f *digest.Finding) (out []proof) {
	if f == nil {
		return nil
	}
	for _, r := range f.Worst[:min(len(f.Worst), evidences)] {
		out = append(out, proof{"", r.At})
	}
	return out
}

// findings adds a claim for each verdict not covered by another rule: verdicts in the table findings, and verdicts unknown to this version. passedOver leaves
// out speed verdicts where enough windows were judged (slow windows have claims by cause; without slow windows nothing was slow), low bandwidth in few
// collectives, and gaps in dumps of flight recorders.
func (c *conclusion) findings() {
	for _, f := range c.job.Verdicts.Rows() {
		known := findings[meant{f.Name, f.Cause}] // grade elsewhere: not in the table
		_, registered := spans.VerdictNamed(f.Name, f.Cause)
		coveredElsewhere := known.grade == elsewhere && registered
		if coveredElsewhere || len(f.Worst) == 0 || c.passedOver(f) { // in this order: passedOver reads f.Worst[0]
			continue
		}
		worst := f.Worst[0].Of
		cl := claim{cost: math.NaN(), grade: cmp.Or(known.grade, remark), proof: c.worst(f)}
		cl.what, cl.advice, _ = strings.Cut(reading.Clean(worst.Reason), ". ") // the fact, then the advice (verdicts.go of train_perf's domains)
		if c.chinese && known.chinese != "" {
			cl.what, cl.advice = strings.TrimSpace(strings.ToUpper(f.Stage)+" "+known.chinese)+"："+cl.what, known.advice
		}
		switch {
		case f.Name == spans.VerdictLossNotFinite:
			c.notFinite(&cl)
		case f.Count > 1:
			cl.what = c.sf("%s (worst of %s)", "%s（共 %s 次，此为最严重的一次）", strings.TrimSuffix(cl.what, "."), human.Thousands(f.Count))
		}
		cl.what = strings.TrimSuffix(cl.what, ".") + c.places(f)
		if f.Name == spans.VerdictNCCLBandwidthLow {
			c.slowTransfers(&cl, f)
		}
		c.claims = append(c.claims, cl)
	}
}

// notFinite adds to a claim how many losses are not finite, and where the first is. The verdict is on record after record, and says so only now and then: all
// records of the log are counted here.
func (c *conclusion) notFinite(cl *claim) {
	cl.advice, _, _ = strings.Cut(cl.advice, " True of ")
	for _, l := range c.job.Steps.Rows() {
		if l.FirstNotFinite == nil {
			continue
		}
		n, all := human.Thousands(l.NotFinite), human.Thousands(l.Records)
		cl.what = c.sf("%s, in %s of %s records", "%s（%[3]s 条记录中的 %[2]s 条）", strings.TrimSuffix(cl.what, "."), n, all)
		if at := l.FirstNotFinite.Step; at.OK {
			cl.what += c.sf(", first at step %d", "，首次在第 %d 步", at.N)
		}
		first := proof{"", l.FirstNotFinite.At}
		cl.proof = append([]proof{first}, slices.DeleteFunc(cl.proof, func(p proof) bool { return p.Span == first.Span })...)
		if few := 100*l.NotFinite <= l.Records; few && l.Last != nil && !math.IsNaN(l.Last.Value) && !math.IsInf(l.Last.Value, 0) {
			cl.grade = remark
			cl.what = c.sf("The loss was %s in %s of %s records, first at %s, and finite again after", "%[3]s 条记录中有 %[2]s 条的损失为 %[1]s，首次在%[4]s，之后恢复正常",
				name(l.FirstNotFinite.String()), n, all, c.numbered(l.FirstNotFinite.Step))
			cl.advice = c.in("No fault if the trainer skips such updates: see the loss scale and the data of these steps.", "若训练器跳过此类更新则无妨：查看这些步的 loss scale 与数据。")
		}
		return
	}
}

// passedOver says whether a verdict is none to tell.
func (c *conclusion) passedOver(f *digest.Finding) bool {
	switch f.Name {
	case spans.VerdictThroughputLow, spans.VerdictTQFluctuating:
		return c.window != nil && c.window.Took.Count() > enough // windows were judged
	case spans.VerdictNCCLBandwidthLow:
		collectives := 0
		for _, o := range c.job.Collectives.Operations() {
			collectives += o.Count
		}
		return float64(f.Count) < little*float64(collectives)
	case spans.VerdictNCCLRankMissing:
		return f.Cause == spans.CauseSequenceGap && flightrecorder.IsName(f.Worst[0].File) // a dump is a ring: each rank's begins elsewhere
	}
	return false
}

// places continue the sentence of a verdict with what its collectives do not say: the hosts of slow links, and the ranks that had errors or retries.
func (c *conclusion) places(f *digest.Finding) string {
	texts := []string{""}
	switch {
	case f.Name == spans.VerdictNCCLLink && f.Cause == spans.CauseLinkSlow:
		hosts := map[string]string{}
		for _, r := range c.job.Collectives.Ranks() {
			hosts[strconv.FormatInt(r.Rank, 10)] = r.Host
		}
		for _, l := range c.job.Collectives.Links() {
			if from, to := hosts[l.Source], hosts[l.Destination]; l.Slow > 0 && from != "" && to != "" {
				texts = append(texts, c.sf("%s→%s is from %s to %s, last at %s", "%s→%s 为 %s 到 %s，最近为 %s", name(l.Source), name(l.Destination),
					name(from), name(to), human.Rate(l.Bandwidth)))
			}
		}
	case f.Name == spans.VerdictNCCLErrors:
		of := func(r *digest.Rank) float64 {
			if f.Cause == spans.CauseRetries {
				return r.Retries
			}
			return r.Errors
		}
		ranks := c.job.Collectives.Ranks()
		slices.SortStableFunc(ranks, func(a, b *digest.Rank) int { return cmp.Compare(of(b), of(a)) })
		for _, r := range ranks[:min(len(ranks), mostRanks)] {
			if n := of(r); n > 0 {
				texts = append(texts, c.sf("%s had %s", "%s 有 %s 次", c.who(view.Int{N: r.Rank, OK: true}, r.Host), human.Thousands(n)))
			}
		}
	}
	return strings.Join(texts, c.in("; ", "；"))
}

// first is the most important claim; nil: there is none.
func (c *conclusion) first() *claim {
	if len(c.claims) == 0 {
		return nil
	}
	return &c.claims[0]
}

// sentence ends a text with a single full stop.
func (c *conclusion) sentence(text string) string {
	text = strings.TrimRight(text, ".。")
	if text == "" {
		return ""
	}
	return text + c.in(".", "。")
}

// facts say the contents of the logs, a text for each kind of log: "200 steps of 1.2 s (median), loss 9.1 to 4.2".
func (c *conclusion) facts() (out []string) {
	for _, l := range c.job.Steps.Rows() {
		text := c.steps(int64(l.Covered))
		if took := &l.Measures[digest.StepTime]; took.Count() > 0 {
			text += c.sf(" of %s (median)", "，每步 %s（中位数）", human.Seconds(took.Quantile(0.5)))
		}
		switch {
		case l.First == nil:
		case l.Records == 1:
			text += c.sf(", loss %s", "，损失 %s", name(l.First.String()))
		default:
			text += c.sf(", loss %s to %s", "，损失 %s 到 %s", name(l.First.String()), name(l.Last.String()))
		}
		out = append(out, text)
	}
	if all := c.job.Functions.Sum(); all.Calls > 0 {
		out = append(out, c.sf("%s, %s of their time in GET and PUT", "%s，GET 与 PUT 占 %s",
			c.in(human.Plural(all.Calls, "TransferQueue call"), "TransferQueue 调用 "+human.Thousands(all.Calls)+" 次"), human.Percent(all.Ratio(all.Get+all.Put))))
	}
	if calls := &c.job.Passes.Calls; calls.Took.Count() > 0 {
		waiting := (calls.Total(view.RPCSend) + calls.Total(view.RPCReceive)) / calls.Took.Sum()
		out = append(out, c.sf("%s in %s, %s of it sending and waiting", "%s，共 %s，其中发送与等待占 %s",
			c.in(human.Plural(calls.Took.Count(), "RPC"), "RPC "+human.Thousands(calls.Took.Count())+" 次"), human.Seconds(calls.Took.Sum()), human.Percent(waiting)))
	}
	collectives := int64(0)
	var late float64
	for _, o := range c.job.Collectives.Operations() {
		collectives += int64(o.Count)
		late = max(late, o.Late.Max())
	}
	if collectives > 0 {
		text := c.in(human.Plural(collectives, "collective"), "集合通信 "+human.Thousands(collectives)+" 次")
		if late > 0 {
			text += c.sf(", the latest rank %s behind", "，最迟的 rank 落后 %s", human.Seconds(late))
		}
		out = append(out, text)
	}
	return out
}

// print writes the conclusion at the head of the full report. dir is the directory of the logs, which places leave out.
func (c *conclusion) print(dir string) {
	c.blank()
	c.paragraph("", c.headline())
	shown, more := c.claims[:min(len(c.claims), mostClaims)], len(c.claims)-mostClaims
	if len(shown) > 0 {
		c.head(c.in("Why, what it cost, and what to do", "原因、代价与建议"))
	}
	c.told(dir, shown, math.MaxInt)
	if more > 0 {
		c.line(c.sf("    and %s", "    另有 %s", c.in(human.Plural(more, "more finding"), human.Thousands(more)+" 项")))
	}
	c.slowest(c.head)
	if gaps := c.gaps(); len(gaps) > 0 {
		c.head(c.in("Not known from these logs", "这些日志无法说明的"))
		for _, text := range gaps {
			c.paragraph("  - ", text)
		}
	}
}

// told writes claims with their numbers, each with so many pieces of evidence at most. Advice that an earlier claim has given is not repeated.
func (c *conclusion) told(dir string, claims []claim, evidence int) {
	for i, cl := range claims {
		c.paragraph(fmt.Sprintf("%2d. ", i+1), c.sentence(cl.what))
		if slices.ContainsFunc(claims[:i], func(of claim) bool { return of.advice == cl.advice }) {
			cl.advice = ""
		}
		c.support(dir, &cl, evidence)
	}
}

// support writes the evidence of a claim, and the advice.
func (c *conclusion) support(dir string, cl *claim, evidence int) {
	for _, p := range cl.proof[:min(len(cl.proof), evidence)] {
		c.line("    " + c.seen(dir, p)) // not wrapped: an id is copied, and a place is clicked
	}
	if cl.advice != "" {
		c.paragraph("    → ", cl.advice)
	}
}

// seen is a piece of evidence as text: "step 12 (3.1 s), rank0.log:120, trace 4bf9…".
func (c *conclusion) seen(dir string, p proof) string {
	var at []string
	if p.what != "" {
		at = append(at, p.what)
	}
	if p.Offset >= 0 {
		at = append(at, c.place(dir, p.At))
	}
	at = append(at, "trace "+p.Trace.String())
	return strings.Join(at, c.in(", ", "，"))
}

// concluder returns the function that makes conclusions for the formats other than text.
func concluder(chinese bool, steady float64) func(*digest.Job, *offline.Reading) format.Conclusion {
	return func(job *digest.Job, read *offline.Reading) format.Conclusion {
		p := &page{w: io.Discard, chinese: chinese, steady: steady}
		dir := directory(files(job, read), read)
		c := conclude(p, job, read)
		out := format.Conclusion{
			Title: p.jobTitle(job, read, dir), Headline: c.headline(), Severity: c.severity(), Gaps: c.gaps(), End: c.end, Step: c.step, Run: c.row(dir),
		}
		for _, cl := range c.claims[:min(len(c.claims), mostClaims)] {
			one := format.Claim{Text: c.sentence(cl.what), Advice: cl.advice, Kind: kinds[cl.grade], About: cl.kind, Cost: cl.cost, Devices: cl.devices}
			for _, p := range cl.proof {
				one.Proof = append(one.Proof, c.seen(dir, p))
				one.Seen = append(one.Seen, format.Seen{What: p.what, At: p.At})
			}
			out.Claims = append(out.Claims, one)
		}
		return out
	}
}

// row is the run in the table of several runs. Without an account, the number of steps is that of the training log that covers the most; the end is left empty
// unless the run failed.
func (c *conclusion) row(dir string) tables.Run {
	r := tables.Run{Job: c.job, Dir: dir, Severity: c.severity(), Lost: c.total(), Whole: c.whole(), Steps: c.account.Steps}
	if c.end.Failed() {
		r.End = c.end.Kind
	}
	if c.window != nil {
		r.SlowCount = c.window.SlowCount
	}
	if calls := &c.job.Passes.Calls; !(r.Whole > 0) && calls.Took.Count() > 0 { // without a clock
		r.Whole = calls.Took.Sum()
	}
	if !c.accounted {
		for _, l := range c.job.Steps.Rows() {
			r.Steps = max(r.Steps, int64(l.Covered))
		}
	}
	return r
}

// kinds are the grades of claims for programs; distrust has none.
var kinds = map[int]string{ended: "wrong", wrong: "wrong", costly: "costly", remark: "remark"}

// place is a file and the line of a record, "rank0.log:120", below the directory dir.
func (c *conclusion) place(dir string, at digest.At) string {
	text := reading.Clean(strings.TrimPrefix(c.read.Name(at.File), dir))
	if line := c.read.LineAt(at.File, at.Offset); line > 0 {
		text += fmt.Sprintf(":%d", line)
	}
	return text
}
