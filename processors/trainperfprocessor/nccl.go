package trainperfprocessor

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/spans"
)

// collectiveOutcome says what became of a collective.
type collectiveOutcome uint8

const (
	collectiveJudged collectiveOutcome = iota
	collectiveNoVerdict
	collectiveAlreadyJudged
	collectiveOutcomes
)

var collectiveOptions = func() (options [collectiveOutcomes]metric.AddOption) {
	for i, name := range [collectiveOutcomes]string{"judged", "no_verdict", "already_judged"} {
		options[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", name)))
	}
	return options
}()

// operationRecv is the value of spans.AttrNCCLOperation of what a rank receives from another.
const operationRecv = "Recv"

// nccl judges collectives. The root of one has what was found out about all its ranks, so nothing else is needed.
type nccl struct {
	cfg NCCLConfig
}

// collective judges the root of a collective, or a Send or Recv.
func (n *nccl) collective(span ptrace.Span, s *scratch) collectiveOutcome {
	c := readCollective(span)
	if c.done {
		return collectiveAlreadyJudged
	}
	s.verdicts = s.verdicts[:0]
	if c.hang {
		c.judgeHang(s)
	} else if c.missingCount > 0 {
		c.judgeMissing(s)
	}
	if c.reason == spans.NCCLIncompleteGap {
		c.judgeGap(s)
	}
	switch {
	case c.straggler.known && (c.stragglers.n > 0 || c.over.n == 0):
		c.judgeStraggler(s)
	case c.over.n > 0:
		c.judgeStragglerOver(s)
	}
	if n.cfg.LateTransfers > 0 {
		// Without the time of the transfer the times are of clocks that nothing holds together, and late is only what they are apart.
		limit := max(n.cfg.LateTransfers*c.transfer, n.cfg.LateMin.Seconds())
		if c.late.seconds > limit { // NaN is not
			c.judgeLate(limit, s)
		}
	}
	if !math.IsNaN(c.deviation) {
		c.judgeBandwidth(s)
	}
	if c.errors > 0 {
		c.judgeErrors(s)
	}
	if c.retries > 0 {
		c.judgeRetries(s)
	}
	if c.mismatch {
		c.judgeMismatch(s)
	}
	if c.slow.n > 0 {
		c.judgeSlow(s)
	}
	if c.hot.n > 0 {
		c.judgeHot(s)
	}
	if exceeds(c.disagreement, n.cfg.BandwidthDisagreement) {
		c.judgeUnit(n.cfg.BandwidthDisagreement, s)
	}
	if len(s.verdicts) == 0 {
		return collectiveNoVerdict
	}
	s.put(span)
	return collectiveJudged
}

// lateRank is who came late: in one collective, or by median over the window.
type lateRank struct {
	known         bool // the rank is
	rank          int64
	host          string
	seconds, cost float64
}

// list is an attribute that is one; its zero value is empty.
type list struct {
	of pcommon.Slice
	n  int
}

func listOf(v pcommon.Value) list {
	if v.Type() != pcommon.ValueTypeSlice {
		return list{}
	}
	return list{of: v.Slice(), n: v.Slice().Len()}
}

// collective is what one pass over the attributes of a root finds. Numbers that are not there are NaN, or 0 where they count something.
type collective struct {
	done                     bool // has a verdict already: a retried batch
	hang, mismatch, ordinal  bool
	operation, comm, name    string
	reason, unit             string
	sequence, rank, peer     int64 // −1: not there
	ranks                    int64
	missingCount             int64
	missing, stuck           list
	waited                   float64 // s
	late, straggler          lateRank
	score                    float64
	stragglers, over         list    // over: the episode ends here
	transfer                 float64 // s
	size                     float64 // By
	bus, algorithm, baseline float64 // By/s
	deviation, disagreement  float64
	errors, retries          int64
	slow, hot                list
}

func readCollective(span ptrace.Span) collective {
	nan := math.NaN()
	c := collective{
		sequence: -1, rank: -1, peer: -1, waited: nan, late: lateRank{seconds: nan, cost: nan}, straggler: lateRank{seconds: nan, cost: nan},
		score: nan, transfer: nan, size: nan, bus: nan, algorithm: nan, baseline: nan, deviation: nan, disagreement: nan,
	}
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrVerdict:
			c.done = true
		case spans.AttrNCCLOperation:
			c.operation = spans.ValueText(v)
		case spans.AttrNCCLCommID:
			c.comm = spans.ValueText(v)
		case spans.AttrNCCLCommName:
			c.name = spans.ValueText(v)
		case spans.AttrNCCLSequence:
			c.sequence = wholeOf(v)
		case spans.AttrNCCLSequenceKind:
			c.ordinal = true
		case spans.AttrNCCLCommRank:
			c.rank = wholeOf(v)
		case spans.AttrNCCLPeerRank:
			c.peer = wholeOf(v)
		case spans.AttrNCCLRanks:
			c.ranks = wholeOf(v)
		case spans.AttrNCCLMessageSize:
			c.size = spans.ValueNumber(v)
		case spans.AttrIncompleteReason:
			c.reason = spans.ValueText(v)
		case spans.AttrNCCLHang:
			c.hang = v.Type() == pcommon.ValueTypeBool && v.Bool()
		case spans.AttrNCCLWaited:
			c.waited = spans.ValueNumber(v)
		case spans.AttrNCCLRanksMissing:
			c.missing = listOf(v)
		case spans.AttrNCCLRanksMissingCount:
			c.missingCount = wholeOf(v)
		case spans.AttrNCCLRanksStuck:
			c.stuck = listOf(v)
		case spans.AttrNCCLLateMax:
			c.late.seconds = spans.ValueNumber(v)
		case spans.AttrNCCLLateRank:
			c.late.setRank(v)
		case spans.AttrNCCLLateHost:
			c.late.host = spans.ValueText(v)
		case spans.AttrNCCLLateCost:
			c.late.cost = spans.ValueNumber(v)
		case spans.AttrNCCLTransferDuration:
			c.transfer = spans.ValueNumber(v)
		case spans.AttrNCCLStragglerRank:
			c.straggler.setRank(v)
		case spans.AttrNCCLStragglerHost:
			c.straggler.host = spans.ValueText(v)
		case spans.AttrNCCLStragglerLate:
			c.straggler.seconds = spans.ValueNumber(v)
		case spans.AttrNCCLStragglerCost:
			c.straggler.cost = spans.ValueNumber(v)
		case spans.AttrNCCLStragglerScore:
			c.score = spans.ValueNumber(v)
		case spans.AttrNCCLStragglers:
			c.stragglers = listOf(v)
		case spans.AttrNCCLStragglersOver:
			c.over = listOf(v)
		case spans.AttrNCCLBandwidthAlgorithm:
			c.algorithm = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthBus:
			c.bus = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthBaseline:
			c.baseline = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthDeviation:
			c.deviation = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthDisagreement:
			c.disagreement = spans.ValueNumber(v)
		case spans.AttrNCCLBandwidthUnit:
			c.unit = spans.ValueText(v)
		case spans.AttrNCCLErrors:
			c.errors = wholeOf(v)
		case spans.AttrNCCLRetries:
			c.retries = wholeOf(v)
		case spans.AttrNCCLMismatch:
			c.mismatch = v.Type() == pcommon.ValueTypeBool && v.Bool()
		case spans.AttrNCCLLinkSlow:
			c.slow = listOf(v)
		case spans.AttrNCCLLinkHot:
			c.hot = listOf(v)
		}
	}
	if c.operation == "" {
		c.operation = span.Name()
	}
	c.missingCount = max(c.missingCount, int64(c.missing.n))
	return c
}

// wholeOf is an integer that counts or names something, −1 where there is none.
func wholeOf(v pcommon.Value) int64 {
	if v.Type() != pcommon.ValueTypeInt || v.Int() < 0 {
		return -1
	}
	return v.Int()
}

func (l *lateRank) setRank(v pcommon.Value) {
	l.rank = wholeOf(v)
	l.known = l.rank >= 0
}

func (c *collective) judgeHang(s *scratch) {
	none := math.NaN()
	s.say(verdict{name: spans.VerdictNCCLHang, severity: bad, value: c.waited, threshold: none}, func(b []byte) []byte {
		b = c.appendSubject(b, s)
		b = append(b, " did not complete"...)
		b = c.appendWithin(b)
		if c.missingCount > 0 {
			b = append(b, "; missing: "...)
			b = appendRanks(b, c.missing, c.missingCount)
		}
		if c.stuck.n > 0 {
			b = append(b, "; stuck: "...)
			b = appendRanks(b, c.stuck, 0)
		}
		switch {
		case c.missingCount > 0 && c.stuck.n > 0:
			return append(b, ": look at what is missing first (crashed, in other code, waiting for data), the others wait for it."...)
		case c.missingCount > 0:
			b = append(b, ": see what "...)
			b = append(b, c.they("it", "they")...)
			return append(b, " did last (crashed, in other code, waiting for data)."...)
		case c.stuck.n > 0:
			return append(b, ": look at the network between the ranks, and at whether all run the same call."...)
		}
		return append(b, "; the log does not tell which ranks are missing or stuck."...)
	})
}

// they is a word for the ranks that miss.
func (c *collective) they(one, several string) string {
	if c.missingCount == 1 {
		return one
	}
	return several
}

// judgeMissing says nothing about ranks that have gone on: that is a gap.
func (c *collective) judgeMissing(s *scratch) {
	var until, advice string
	switch c.reason {
	case spans.NCCLIncompleteTimeout:
		until, advice = " in time", " still runs, and still writes its log."
	case spans.NCCLIncompleteGone:
		until, advice = " for an earlier one, so that none was waited for", " still runs, and still writes its log."
	case spans.NCCLIncompleteEvicted:
		until, advice = " before there was no more room to wait", " still runs, and whether its log is read as soon as those of the others."
	case spans.NCCLIncompleteEnd:
		until, advice = " before reading ended", " stopped before the others, or did not write its last lines."
	default:
		return
	}
	s.say(verdict{name: spans.VerdictNCCLRankMissing, severity: bad, value: float64(c.missingCount), threshold: math.NaN()}, func(b []byte) []byte {
		b = c.appendRecords(b, s)
		b = append(b, ", which took part before: none came"...)
		if c.reason == spans.NCCLIncompleteTimeout && positive(c.waited) {
			b = c.appendWithin(b)
		} else {
			b = append(b, until...)
		}
		b = append(b, ": see whether "...)
		b = append(b, c.they("the process", "each process")...)
		return append(b, advice...)
	})
}

func (c *collective) judgeGap(s *scratch) {
	value := math.NaN()
	if c.missingCount > 0 {
		value = float64(c.missingCount)
	}
	s.say(verdict{name: spans.VerdictNCCLSequenceGap, severity: warning, value: value, threshold: math.NaN()}, func(b []byte) []byte {
		b = c.appendRecords(b, s)
		b = append(b, ", which went on to later ones: records were lost (dropped by the profiler, a full disk, a log rotated away), or "...)
		b = append(b, c.they("it", "they")...)
		return append(b, " did not take part."...)
	})
}

func (c *collective) judgeStraggler(s *scratch) {
	r := &c.straggler
	s.say(verdict{name: spans.VerdictNCCLStraggler, severity: bad, value: r.seconds, threshold: math.NaN()}, func(b []byte) []byte {
		b = appendRank(b, "Rank ", r.rank, r.host)
		b = c.appendOfComm(b)
		b = append(b, " is late again and again"...)
		if !math.IsNaN(r.seconds) {
			b = append(b, ", by median "...)
			b = appendScaled(b, r.seconds, seconds)
			b = append(b, " behind the median rank"...)
		}
		if !math.IsNaN(c.score) {
			b = append(b, ", with a score of "...)
			b = appendDecimal(b, c.score, 3)
			b = append(b, " (1 is the fastest)"...)
		}
		if !math.IsNaN(r.cost) {
			b = append(b, "; over the window that cost the other ranks "...)
			b = appendScaled(b, r.cost, seconds)
			b = append(b, " in all"...)
		}
		if c.stragglers.n > 1 {
			b = append(b, "; slow are "...)
			b = appendRanks(b, c.stragglers, 0)
		}
		return append(b, ": check the clocks and temperature of its GPU, its host, and whether it has more work than the others."...)
	})
}

// judgeStragglerOver marks the end: what was said of the rank is not so any more.
func (c *collective) judgeStragglerOver(s *scratch) {
	none := math.NaN()
	s.say(verdict{name: spans.VerdictNCCLStraggler, severity: warning, value: none, threshold: none}, func(b []byte) []byte {
		if r := &c.straggler; c.over.n == 1 && r.known {
			b = appendRank(b, "Rank ", r.rank, r.host)
			b = c.appendOfComm(b)
			return append(b, " was late again and again until here, and is as fast as the others again."...)
		}
		b = append(b, 'R')
		b = append(b, appendRanks(nil, c.over, 0)[1:]...)
		b = c.appendOfComm(b)
		return append(b, " were late again and again until here, and are as fast as the others again."...)
	})
}

func (c *collective) judgeLate(limit float64, s *scratch) {
	r := &c.late
	s.say(verdict{name: spans.VerdictNCCLLate, severity: warning, value: r.seconds, threshold: limit}, func(b []byte) []byte {
		if r.known {
			b = appendRank(b, "Rank ", r.rank, r.host)
		} else {
			b = append(b, "A rank"...)
		}
		b = append(b, " came "...)
		b = appendScaled(b, r.seconds, seconds)
		b = append(b, " late to "...)
		b = c.appendSubject(b, s)
		b = append(b, ", whose transfer took "...)
		b = appendScaled(b, c.transfer, seconds)
		b = append(b, "; the limit is "...)
		b = appendScaled(b, limit, seconds)
		if !math.IsNaN(r.cost) {
			b = append(b, ". Waiting for it cost the other ranks "...)
			b = appendScaled(b, r.cost, seconds)
			b = append(b, " in all"...)
		}
		return append(b, ": see what it did before (data loading, a checkpoint, more work than the others)."...)
	})
}

// judgeBandwidth: that there is a deviation says that it is large; the receiver has the limit.
func (c *collective) judgeBandwidth(s *scratch) {
	speed, kind := c.bus, "bus"
	if math.IsNaN(speed) {
		speed, kind = c.algorithm, "algorithm"
	}
	s.say(verdict{name: spans.VerdictNCCLBandwidthLow, severity: warning, value: speed, threshold: math.NaN()}, func(b []byte) []byte {
		b = c.appendSubject(b, s)
		if c.size >= 0 {
			b = append(b, ", "...)
			b = appendScaled(b, c.size, bytes)
			b = append(b, ',')
		}
		b = append(b, " had a low bandwidth"...)
		if !math.IsNaN(speed) {
			b = append(b, ", "...)
			b = appendScaled(b, speed, bytesPerSecond)
			b = append(b, " ("...)
			b = append(b, kind...)
			b = append(b, ')')
		}
		b = append(b, ": "...)
		b = appendDecimal(b, math.Abs(c.deviation), 1)
		b = append(b, " robust standard deviations below the median"...)
		if !math.IsNaN(c.baseline) {
			b = append(b, " of "...)
			b = appendScaled(b, c.baseline, bytesPerSecond)
		}
		return append(b, " of those before of this communicator, operation and size. Look for a slow link or NIC, and for other traffic on the network."...)
	})
}

func (c *collective) judgeErrors(s *scratch) {
	s.say(verdict{name: spans.VerdictNCCLErrors, severity: bad, value: float64(c.errors), threshold: math.NaN()}, func(b []byte) []byte {
		b = c.appendCount(b, s, c.errors, " error: ", " errors: ")
		if c.rank < 0 {
			b = append(b, "the spans of its ranks say which had them; "...)
		}
		return append(b, "NCCL_DEBUG=WARN makes NCCL say why."...)
	})
}

func (c *collective) judgeRetries(s *scratch) {
	s.say(verdict{name: spans.VerdictNCCLRetries, severity: warning, value: float64(c.retries), threshold: math.NaN()}, func(b []byte) []byte {
		b = c.appendCount(b, s, c.retries, " retry: ", " retries: ")
		if c.rank >= 0 {
			return append(b, "check its link, NIC and switch port for errors."...)
		}
		return append(b, "the spans of its ranks say which had them; check their links, NICs and switch ports for errors."...)
	})
}

func (c *collective) judgeMismatch(s *scratch) {
	none := math.NaN()
	s.say(verdict{name: spans.VerdictNCCLMismatch, severity: bad, value: none, threshold: none}, func(b []byte) []byte {
		b = append(b, "The ranks of "...)
		b = c.appendSubject(b, s)
		return append(b, " disagree about the message size: they do not run the same call, which corrupts data or hangs. Compare their spans, and the code or data that they branch on."...)
	})
}

func (c *collective) judgeSlow(s *scratch) {
	c.judgeLinks(s, spans.VerdictNCCLLinkSlow, c.slow, " was", " were", " much slower than the others: check the cable, NIC and switch port.")
}

func (c *collective) judgeHot(s *scratch) {
	c.judgeLinks(s, spans.VerdictNCCLLinkHot, c.hot, "", "", " carried much more than the others: check how ranks are placed on hosts, and which rings or trees NCCL made of them.")
}

// judgeLinks: links are compared over the run so far, not within this collective.
func (c *collective) judgeLinks(s *scratch, name string, links list, one, several, what string) {
	none := math.NaN()
	s.say(verdict{name: name, severity: warning, value: none, threshold: none}, func(b []byte) []byte {
		b = append(b, "Up to "...)
		b = c.appendSubject(b, s)
		if links.n == 1 {
			b = append(appendList(append(b, " the link "...), links, 0), one...)
		} else {
			b = append(appendList(append(b, " the links "...), links, 0), several...)
		}
		return append(b, what...)
	})
}

func (c *collective) judgeUnit(limit float64, s *scratch) {
	s.say(verdict{name: spans.VerdictNCCLBandwidthUnit, severity: warning, value: c.disagreement, threshold: limit}, func(b []byte) []byte {
		b = append(b, "The bandwidth that the log has of "...)
		b = c.appendSubject(b, s)
		b = append(b, " is "...)
		b = appendPercent(b, c.disagreement)
		b = append(b, " off what size and duration give, above the limit of "...)
		b = appendPercent(b, limit)
		b = append(b, ": see whether its unit"...)
		if c.unit != "" {
			b = append(b, ", read as "...)
			b = append(b, c.unit...)
			b = append(b, ',')
		}
		return append(b, " is GB/s or Gbit/s, and whether its size is of one rank or of all. Use the recomputed one."...)
	})
}

// appendSubject writes "AllReduce 4012 of communicator DP Group 0 (0x9e37)".
func (c *collective) appendSubject(b []byte, s *scratch) []byte {
	if c.operation == "" {
		b = append(b, "A collective"...)
	}
	b = append(b, c.operation...)
	if c.sequence >= 0 {
		b = append(b, ' ')
		b = strconv.AppendInt(b, c.sequence, 10)
		if c.ordinal {
			b = append(b, " (as counted)"...)
		}
	}
	if c.rank >= 0 { // a Send or Recv
		b = append(b, " by "...)
		b = appendRank(b, "rank ", c.rank, spans.AttrText(s.resource, spans.AttrHostName))
		if c.peer >= 0 {
			to := " to rank "
			if c.operation == operationRecv {
				to = " from rank "
			}
			b = append(b, to...)
			b = strconv.AppendInt(b, c.peer, 10)
		}
	}
	return c.appendOfComm(b)
}

func (c *collective) appendOfComm(b []byte) []byte {
	if c.comm == "" && c.name == "" {
		return b
	}
	b = append(b, " of communicator "...)
	b = append(b, c.name...)
	switch {
	case c.comm == "":
	case c.name == "":
		b = append(b, c.comm...)
	default:
		b = append(b, " ("...)
		b = append(b, c.comm...)
		b = append(b, ')')
	}
	return b
}

func (c *collective) appendWithin(b []byte) []byte {
	if !positive(c.waited) {
		return b
	}
	b = append(b, " within "...)
	return appendScaled(b, c.waited, seconds)
}

// appendRecords writes "AllReduce 4012 … has records of 62 ranks and none of rank 5".
func (c *collective) appendRecords(b []byte, s *scratch) []byte {
	b = c.appendSubject(b, s)
	b = append(b, " has records of "...)
	b = appendRanks(b, list{}, c.ranks)
	b = append(b, " and none of "...)
	if c.missingCount == 0 {
		return append(b, "others"...)
	}
	return appendRanks(b, c.missing, c.missingCount)
}

func (c *collective) appendCount(b []byte, s *scratch, n int64, one, several string) []byte {
	b = c.appendSubject(b, s)
	b = append(b, " had "...)
	b = strconv.AppendInt(b, n, 10)
	if n == 1 {
		return append(b, one...)
	}
	return append(b, several...)
}

// appendRank writes "rank 5 on node-3".
func appendRank(b []byte, rank string, n int64, host string) []byte {
	b = append(b, rank...)
	b = strconv.AppendInt(b, n, 10)
	if host != "" {
		b = append(b, " on "...)
		b = append(b, host...)
	}
	return b
}

// appendRanks writes "rank 5", "ranks 5 and 9", or "3 ranks" where the list does not name them. It names some of the ranks that total counts.
func appendRanks(b []byte, l list, total int64) []byte {
	total = max(total, int64(l.n))
	noun := "ranks"
	if total == 1 {
		noun = "rank"
	}
	if l.n == 0 {
		b = strconv.AppendInt(b, total, 10)
		b = append(b, ' ')
		return append(b, noun...)
	}
	b = append(b, noun...)
	b = append(b, ' ')
	return appendList(b, l, total)
}

// maxNamed is how many ranks or links a sentence names.
const maxNamed = 8

// appendList writes "1, 2 and 3", and how many more there are.
func appendList(b []byte, l list, total int64) []byte {
	named := min(l.n, maxNamed)
	more := max(total, int64(l.n)) - int64(named)
	for i := range named {
		switch {
		case i == 0:
		case i == named-1 && more == 0:
			b = append(b, " and "...)
		default:
			b = append(b, ", "...)
		}
		switch v := l.of.At(i); v.Type() {
		case pcommon.ValueTypeInt:
			b = strconv.AppendInt(b, v.Int(), 10)
		case pcommon.ValueTypeStr:
			b = append(b, v.Str()...)
		default:
			b = append(b, '?')
		}
	}
	if more > 0 {
		b = append(b, " and "...)
		b = strconv.AppendInt(b, more, 10)
		b = append(b, " more"...)
	}
	return b
}

// scale are units from the largest to the smallest.
type scale []struct {
	size float64
	name string
}

var (
	seconds        = scale{{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}, {1e-9, " ns"}}
	bytes          = scale{{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}}
	bytesPerSecond = scale{{1e9, " GB/s"}, {1e6, " MB/s"}, {1e3, " kB/s"}, {1, " B/s"}} // decimal, as in nccl-tests
)

// appendScaled writes x with about four digits, in the largest unit of which it is at least one.
func appendScaled(b []byte, x float64, of scale) []byte {
	i := 0
	for i < len(of)-1 && math.Abs(x) < of[i].size {
		i++
	}
	switch x /= of[i].size; {
	case !(x < 1e6):
		b = appendShort(b, x)
	case x >= 100:
		b = appendDecimal(b, x, 1)
	case x >= 10:
		b = appendDecimal(b, x, 2)
	default:
		b = appendDecimal(b, x, 3)
	}
	return append(b, of[i].name...)
}
