package collectives

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/spans"
)

// Phrases shared by several sentences. A sentence says the fact first, then the advice.
const (
	// subject is "AllReduce 4012 of DP Group 0 (0x9e37)", or "Send 7 (as counted) by rank 3 on node-0 to rank 11 of communicator 0x1f".
	subject      = "[{operation}|A collective][ {sequence}[counted? (as counted)]][ by rank {rank}[ [receives?from|to] rank {peer}]]" + communicator
	communicator = "[ of {communicator}]"

	// missing is "AllReduce 4012 lacks rank 5 (62 ranks are there)".
	missing = subject + " lacks [{missing}|others] ({ranks} [one is there?is|are] there)"
	process = ". See whether [one is missing?the process|each process]"

	hang = subject + " did not complete[ within {waited:seconds}]"
)

var (
	hangMissingAndStuck = verdict.New(spans.VerdictNCCLHang, hang+"; missing: {missing}; stuck: {stuck}. "+
		"Look first at what is missing (crashed, in other code, waiting for data): the others wait.", &places)
	hangMissing = verdict.New(spans.VerdictNCCLHang, hang+"; missing: {missing}. "+
		"See what [one is missing?it|they] did last (crashed, in other code, waiting for data).", &places)
	hangStuck = verdict.New(spans.VerdictNCCLHang, hang+"; stuck: {stuck}. "+
		"Check the network between the ranks, and whether all run the same call.", &places)
	hangUnknown = verdict.New(spans.VerdictNCCLHang, hang+"; the log does not tell which ranks are missing or stuck.", &places)

	// rankMissing has the verdict for each reason why a collective is incomplete.
	rankMissing = map[string]*verdict.Verdict[judge]{
		spans.NCCLIncompleteTimeout: verdict.New(spans.VerdictNCCLRankMissing,
			missing+"[ after {waited:seconds}]"+process+" still runs and writes its log.", &places),
		spans.NCCLIncompleteUnheard: verdict.New(spans.VerdictNCCLRankMissing,
			missing+"[ after {waited:seconds}], and the collector of [one is missing?its log|their logs] is silent. "+
				"See whether the collector runs and reaches Kafka.", &places),
		spans.NCCLIncompleteGone: verdict.New(spans.VerdictNCCLRankMissing,
			missing+", as did an earlier one: nothing was waited for"+process+" still runs and writes its log.", &places),
		spans.NCCLIncompleteEvicted: verdict.New(spans.VerdictNCCLRankMissing,
			missing+": no room to wait longer"+process+" still runs, and whether its log is read as soon as the others.", &places),
		spans.NCCLIncompleteEnd: verdict.New(spans.VerdictNCCLRankMissing,
			missing+" at the end of the logs"+process+" stopped early or did not write its last lines.", &places),
	}
	sequenceGap = verdict.NewCause(spans.VerdictNCCLRankMissing, spans.CauseSequenceGap, missing+", but later ones came. "+
		"Records were lost (dropped by the profiler, a full disk, a log rotated away), or [one is missing?it|they] did not take part.", &places)

	straggler = verdict.New(spans.VerdictNCCLStraggler, "Rank {straggler}"+communicator+" is late again and again"+
		"[, by {straggler's lateness:seconds} (median)][, score {score} (1 is the fastest)]"+
		"[; the others waited {straggler's cost:seconds} in all][; slow: {stragglers}]. "+
		"Check the clocks and temperature of its GPU, its host, and whether it has more work.", &places)
	// The end of an episode: the verdict about the rank no longer holds.
	stragglerOver  = verdict.New(spans.VerdictNCCLStraggler, "Rank {straggler}"+communicator+" is no longer late.", &places).As(verdict.Warning)
	stragglersOver = verdict.New(spans.VerdictNCCLStraggler, "Rank[one is over?|s] {over}"+communicator+
		" [one is over?is|are] no longer late.", &places).As(verdict.Warning)

	late = verdict.New(spans.VerdictNCCLLate, "[Rank {last}|A rank] came {value:seconds} late to "+subject+
		" (transfer {transfer:seconds}, limit {threshold:seconds})[; the others waited {cost:seconds} in all]. "+
		"See what the rank did before (data loading, a checkpoint, more work).", &places)
	bandwidthLow = verdict.New(spans.VerdictNCCLBandwidthLow, subject+"[, {size:bytes},] "+
		"[ran at {bus:rate} (bus)|[ran at {algorithm:rate} (algorithm)|had a low bandwidth]], [{effect:percent}|far] below the median"+
		"[ of {baseline:rate}] of its communicator, operation and size ({deviation} robust standard deviations), as those just before. "+
		"Check for a slow link or NIC, and other traffic on the network.", &places)
	bandwidthUnit = verdict.New(spans.VerdictNCCLBandwidthUnit, "The logged bandwidth of "+subject+
		" is {value:percent} off size and duration (limit {threshold:percent}). See whether its unit[, read as {unit},]"+
		" is GB/s or Gbit/s, and whether its size is of one rank or of all; use the recomputed bandwidth.", &places)

	hadErrors = verdict.New(spans.VerdictNCCLErrors, subject+" had {errors} error[one error?|s]. "+
		"[of all ranks?The spans of its ranks say which had them; ]NCCL_DEBUG=WARN makes NCCL say why.", &places)
	hadRetries = verdict.NewCause(spans.VerdictNCCLErrors, spans.CauseRetries, subject+" had {retries} [one retry?retry|retries]. "+
		"[of all ranks?The spans of its ranks say which had them: check their links, NICs and switch ports."+
		"|Check its link, NIC and switch port.]", &places)
	mismatch = verdict.New(spans.VerdictNCCLMismatch, "The ranks of "+subject+" disagree about the message size: "+
		"different calls corrupt data or hang. Compare their spans, and the code or data that they branch on.", &places)

	// Links are compared over the run, not within this collective.
	linkSlow = verdict.NewCause(spans.VerdictNCCLLink, spans.CauseLinkSlow, "The link[one is slow? {slow} was|s {slow} were]"+
		" much slower than the others, up to "+subject+". Check the cable, NIC and switch port.", &places)
	linkHot = verdict.NewCause(spans.VerdictNCCLLink, spans.CauseLinkHot, "The link[one is hot?|s] {hot} carried much more than the others, up to "+subject+
		". Check how ranks are placed on hosts, and NCCL's rings or trees.", &places)
)

var places = verdict.Places[judge]{
	Numbers: map[string]func(*judge) float64{
		"waited":               func(j *judge) float64 { return numberOrNaN(j.Waited > 0, j.Waited) },
		"straggler's lateness": func(j *judge) float64 { return j.Straggler.Late },
		"straggler's cost":     func(j *judge) float64 { return j.Straggler.Cost },
		"score":                func(j *judge) float64 { return j.StragglerScore },
		"transfer":             func(j *judge) float64 { return j.TransferDuration },
		"cost":                 func(j *judge) float64 { return j.Last.Cost },
		"size":                 func(j *judge) float64 { return numberOrNaN(j.MessageSize >= 0, j.MessageSize) },
		"bus":                  func(j *judge) float64 { return j.BandwidthBus },
		"algorithm":            func(j *judge) float64 { return j.BandwidthAlgorithm },
		"baseline":             func(j *judge) float64 { return j.BandwidthBaseline },
		"effect":               func(j *judge) float64 { return 1 - j.bandwidth()/j.BandwidthBaseline },
		"deviation":            func(j *judge) float64 { return math.Abs(j.BandwidthDeviation) },
	},
	Counts: map[string]func(*judge) int64{
		"sequence": func(j *judge) int64 { return j.Sequence.Or(-1) },
		"peer":     func(j *judge) int64 { return j.Peer.Or(-1) },
		"errors":   func(j *judge) int64 { return int64(j.Errors) },
		"retries":  func(j *judge) int64 { return int64(j.Retries) },
	},
	Texts: map[string]func([]byte, *judge) []byte{
		"operation":    func(b []byte, j *judge) []byte { return append(b, j.Operation...) },
		"unit":         func(b []byte, j *judge) []byte { return append(b, j.BandwidthUnit...) },
		"communicator": appendCommunicator,
		"rank":         func(b []byte, j *judge) []byte { return appendRank(b, j.Rank, j.at.Host) },
		"straggler":    func(b []byte, j *judge) []byte { return appendRank(b, j.Straggler.Rank, j.Straggler.Host) },
		"last":         func(b []byte, j *judge) []byte { return appendRank(b, j.Last.Rank, j.Last.Host) },
		"ranks":        func(b []byte, j *judge) []byte { return appendRanks(b, view.List{}, j.Ranks.N) },
		"missing":      appendMissing,
		"stuck":        func(b []byte, j *judge) []byte { return appendRanks(b, j.Stuck, 0) },
		"stragglers":   appendStragglers,
		"over":         func(b []byte, j *judge) []byte { return appendList(b, j.StragglersOver, 0) },
		"slow":         func(b []byte, j *judge) []byte { return appendList(b, j.LinksSlow, 0) },
		"hot":          func(b []byte, j *judge) []byte { return appendList(b, j.LinksHot, 0) },
	},
	When: map[string]func(*judge) bool{
		"counted":        func(j *judge) bool { return j.Counted },
		"receives":       func(j *judge) bool { return j.Operation == "Recv" },
		"of all ranks":   func(j *judge) bool { return !j.Rank.OK },
		"one is there":   func(j *judge) bool { return j.Ranks.N == 1 },
		"one is missing": func(j *judge) bool { return j.MissingRanks() == 1 },
		"one is over":    func(j *judge) bool { return j.StragglersOver.Len() == 1 },
		"one is slow":    func(j *judge) bool { return j.LinksSlow.Len() == 1 },
		"one is hot":     func(j *judge) bool { return j.LinksHot.Len() == 1 },
		"one error":      func(j *judge) bool { return j.Errors == 1 },
		"one retry":      func(j *judge) bool { return j.Retries == 1 },
	},
}

// numberOrNaN returns x if known, else NaN.
func numberOrNaN(known bool, x float64) float64 {
	if known {
		return x
	}
	return math.NaN()
}

// appendCommunicator appends "DP Group 0 (0x9e37)", or the known part.
func appendCommunicator(b []byte, j *judge) []byte {
	b = append(b, j.CommName...)
	switch {
	case j.CommID == "":
	case j.CommName == "":
		b = append(append(b, "communicator "...), j.CommID...)
	default:
		b = append(append(append(b, " ("...), j.CommID...), ')')
	}
	return b
}

// appendRank appends "5 on node-3"; nothing for an unknown rank.
func appendRank(b []byte, rank view.Int, host string) []byte {
	if !rank.OK {
		return b
	}
	b = strconv.AppendInt(b, rank.N, 10)
	if host != "" {
		b = append(append(b, " on "...), host...)
	}
	return b
}

// appendMissing appends the missing ranks, if any.
func appendMissing(b []byte, j *judge) []byte {
	if n := j.MissingRanks(); n > 0 {
		return appendRanks(b, j.Missing, n)
	}
	return b
}

// appendStragglers appends the straggling ranks, if there are several.
func appendStragglers(b []byte, j *judge) []byte {
	if j.Stragglers.Len() > 1 {
		return appendRanks(b, j.Stragglers, 0)
	}
	return b
}

// appendRanks appends "rank 5", "ranks 5 and 9", or, for an empty list, "3 ranks". total is the number of ranks, of which the list may name only some.
func appendRanks(b []byte, l view.List, total int64) []byte {
	total = max(total, int64(l.Len()))
	noun := "ranks"
	if total == 1 {
		noun = "rank"
	}
	if l.Len() == 0 {
		return append(append(strconv.AppendInt(b, total, 10), ' '), noun...)
	}
	return appendList(append(append(b, noun...), ' '), l, total)
}

// maxNamed is how many ranks or links a sentence names.
const maxNamed = 8

// appendList appends a list of ranks or links: "1, 2 and 3"; or "1, 2 and 7 more", if the list is longer than maxNamed or total is above its length.
func appendList(b []byte, l view.List, total int64) []byte {
	named := min(l.Len(), maxNamed)
	more := max(total, int64(l.Len())) - int64(named)
	for i := range named {
		switch {
		case i == 0:
		case i == named-1 && more == 0:
			b = append(b, " and "...)
		default:
			b = append(b, ", "...)
		}
		switch v := l.At(i); v.Type() {
		case pcommon.ValueTypeInt:
			b = strconv.AppendInt(b, v.Int(), 10)
		case pcommon.ValueTypeStr:
			b = append(b, v.Str()...)
		default:
			b = append(b, '?')
		}
	}
	if more > 0 {
		b = append(append(append(b, " and "...), strconv.FormatInt(more, 10)...), " more"...)
	}
	return b
}
