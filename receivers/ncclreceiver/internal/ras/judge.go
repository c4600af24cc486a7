package ras

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/internal/ncclras"
)

// Kind says the subject of a finding.
type Kind uint8

// The kinds. Only Behind names ranks for doing less than others.
const (
	Behind   Kind = iota // some ranks have launched less than others, and none launches any more
	Diverged             // each side has launched more of some operation, and none launches any more
	Missing              // the processes of some ranks do not answer, or are gone
	Failed               // some ranks report an error of NCCL
	Still                // nobody of the job advances, and RAS does not show the culprit
	Moved                // an earlier finding is over
	kinds
)

var kindNames = [kinds]string{"behind", "diverged", "missing", "failed", "still", "moved"}

func (k Kind) String() string { return kindNames[k] }

// Finding is a change in the state of a communicator, or of the job.
type Finding struct {
	Kind Kind
	At   time.Time
	// Text is a sentence for people, without the line end.
	Text string
	// Version of NCCL.
	Version string
	// Comm is the hash of the communicator, Size the number of its ranks and Heard of those with a report. Of Still, and of Moved after Still, Comm is empty,
	// Size 0 and Heard counts the GPUs of the job, each process on its GPU.
	Comm        string
	Size, Heard int64
	// Communicators counts all with a finding of the kind in the answer; without Comm, all of the job.
	Communicators int64
	// For is the time without a launch, at least. 0: unknown.
	For time.Duration
	// Hang: of Behind and Diverged, For has reached Watch.Patience.
	Hang bool
	// Behind and Ahead are ranks of Behind, Missing of Missing: the first 32 of the counts.
	Behind, Ahead, Missing                []int32
	BehindCount, AheadCount, MissingCount int64
	// Counts has a line per operation: "AllGather: 30 ranks at 640, 2 ranks at 641".
	Counts []string
	// Processes has a line for each of the first 16 named ranks: "rank 12: 10.0.0.7, pid 323032, GPU 4" (the index of nvidia-smi).
	Processes []string
	// Errors has a line per error: "ncclRemoteError: ranks 3, 4".
	Errors []string
}

const (
	maxNamed     = 32 // ranks in Behind, Ahead and Missing
	maxShown     = 8  // ranks, or counts, in a sentence
	maxProcesses = 16 // lines in Processes
)

// Summary is the state of a job. A GPU counts once in each of its communicators.
type Summary struct {
	// Heard have reported and are neither Behind nor Failed. Unresponsive processes have not answered yet, Dead ones not for 60 s. Absent ones have answered and
	// are no members, or are not known to RAS.
	Heard, Behind, Failed, Unresponsive, Dead, Absent int64
	// For is the time without a launch, at least. Known is false where no communicator could be compared.
	For   time.Duration
	Known bool
}

// judge judges one answer.
type judge struct {
	at         time.Time
	version    string
	operations []string
	patience   time.Duration

	latest   time.Time // of the last launch of anybody
	gpus     map[*gpu]bool
	quiet    bool // nobody has launched anything over stillAnswers
	advanced bool // some communicator has advanced while watched
	whole    bool // all communicators run, and in each the ranks heard of have equal counts
	found    []Finding
	sum      Summary
}

// surveyJob records facts about the whole job for findHungJob: whether any rank launches an operation, since when none has, and whether all counts are equal.
func (j *judge) surveyJob(list []*current) {
	j.gpus, j.quiet, j.whole = make(map[*gpu]bool), len(list) > 0, true
	for _, c := range list {
		j.advanced = j.advanced || c.advanced
		j.whole = j.whole && c.running() && len(ahead(c)) == len(c.ranks)
		for i := range c.ranks {
			g := c.ranks[i].gpu
			j.gpus[g] = true
			j.quiet = j.quiet && g.still >= stillAnswers
			if g.since.After(j.latest) {
				j.latest = g.since
			}
		}
	}
	j.sum.Known = len(list) > 0
	if j.sum.Known {
		j.sum.For = j.at.Sub(j.latest)
	}
}

// comm judges a communicator, and adds its ranks to the summary.
func (j *judge) comm(c *current) {
	behind := j.findBehind(c)
	failed := j.findFailed(c)
	j.findMissing(c)
	j.sum.Failed += failed
	j.sum.Behind += behind
	j.sum.Heard += max(0, int64(len(c.ranks))-failed-behind) // below 0: a rank may be both
}

// running reports whether no rank of a communicator begins or ends.
func (c *current) running() bool {
	return !slices.ContainsFunc(c.Ranks, func(r ncclras.Rank) bool {
		return r.InitState != ncclras.Success || r.FinalizeCalled || r.DestroyFlag || r.AbortedFlag
	})
}

// still reports whether no process of a communicator has launched anything, in any communicator, over stillAnswers answers, and since when.
func (c *current) still() (since time.Time, ok bool) {
	for i := range c.ranks {
		g := c.ranks[i].gpu
		if g.still < stillAnswers {
			return since, false
		}
		if g.since.After(since) {
			since = g.since
		}
	}
	return since, true
}

// ahead returns the ranks that have launched as much as any other of every operation. All ranks: the counts are equal. None: some are ahead in one operation,
// some in another.
func ahead(c *current) (list []int32) {
	most := make([]uint64, 0, 8)
	for i := range c.ranks {
		for op, n := range c.ranks[i].counts {
			for len(most) <= op {
				most = append(most, 0)
			}
			most[op] = max(most[op], n)
		}
	}
	for i := range c.ranks {
		r := &c.ranks[i]
		isAhead := true
		for op, n := range most {
			isAhead = isAhead && r.count(op) == n
		}
		if isAhead {
			list = append(list, r.number)
		}
	}
	return list
}

// count returns the number of launches of an operation; 0 without a count.
func (r *rank) count(op int) uint64 {
	if op < len(r.counts) {
		return r.counts[op]
	}
	return 0
}

// findBehind adds a finding about ranks with fewer launches than others, in a running communicator where no rank launches an operation any more, and returns
// their number. 0: the ranks have diverged, or nothing is wrong. A finding is added only if new; an earlier one, of either kind, is over when a count has
// changed.
func (j *judge) findBehind(c *current) int64 {
	if c.moved && (c.reported[Behind] != 0 || c.reported[Diverged] != 0) {
		f := j.begin(c, Moved)
		f.For = j.at.Sub(c.stood)
		f.Text = fmt.Sprintf("%s goes on: collectives are launched again after %s", name(c), rounded(f.For))
		j.found = append(j.found, f)
		c.reported[Behind], c.reported[Diverged] = 0, 0
	}
	since, still := c.still()
	front := ahead(c)
	if !still || !c.running() || len(front) == len(c.ranks) {
		return 0
	}
	kind := Behind
	if len(front) == 0 { // each rank is behind in some operation
		kind = Diverged
	}
	f := j.begin(c, kind)
	f.For, f.Counts = j.at.Sub(since), j.counts(c)
	var rear []int32
	if kind == Behind {
		rear = others(c, front)
		f.Behind, f.BehindCount, f.Ahead, f.AheadCount = first(rear), int64(len(rear)), first(front), int64(len(front))
		f.Processes = processes(c, rear)
		f.Text = fmt.Sprintf("%s: %s behind %s, and nobody of them has launched anything for %s (%s). RAS counts launches: who is behind need not be the cause",
			name(c), are(rear), ranks(front), rounded(f.For), strings.Join(differing(f.Counts), "; "))
	} else {
		f.Text = fmt.Sprintf("%s: the ranks have launched different collectives, and nobody of them has launched anything for %s (%s). RAS cannot tell who is wrong",
			name(c), rounded(f.For), strings.Join(differing(f.Counts), "; "))
	}
	said := slices.Clone(rear)
	f.Hang = f.For >= j.patience
	if f.Hang {
		said = append(said, -1) // another finding than the one before patience was over: reported again
	}
	if j.news(c, kind, said) {
		c.stood = since
		j.found = append(j.found, f)
	}
	return int64(len(rear))
}

// findMissing adds a finding about ranks whose processes do not answer: given up by RAS (dead), or silent over stillAnswers answers. When all ranks answer
// again, the finding is over (Moved); while the rest is only absent, the finding is forgotten.
func (j *judge) findMissing(c *current) {
	var gone, dead []int32
	at := make(map[int32]*ncclras.Process)
	for i := range c.Missing {
		m := &c.Missing[i]
		at[m.Rank] = &m.Process
		switch {
		case m.Dead && m.Known():
			j.sum.Dead++
			dead = append(dead, m.Rank)
		case m.Unresponsive && m.Known():
			j.sum.Unresponsive++
			if c.silent[m.Rank] >= stillAnswers {
				gone = append(gone, m.Rank)
			}
		default:
			j.sum.Absent++
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(gone, dead)))
	if len(all) == 0 {
		if c.reported[Missing] != 0 && int64(len(c.ranks)) == c.Size {
			f := j.begin(c, Moved)
			f.Text = name(c) + ": all ranks are heard of again"
			j.found = append(j.found, f)
		}
		c.reported[Missing] = 0
		return
	}
	f := j.begin(c, Missing)
	f.Missing, f.MissingCount, f.Counts = first(all), int64(len(all)), j.counts(c)
	for _, r := range all[:min(len(all), maxProcesses)] {
		f.Processes = append(f.Processes, process(r, at[r]))
	}
	f.Text = fmt.Sprintf("%s: RAS does not reach the processes of %s (%d given up by RAS): they have ended, or hang, or their host is away",
		name(c), ranks(all), len(dead))
	if j.news(c, Missing, all) {
		j.found = append(j.found, f)
	}
}

// findFailed adds a finding about ranks that report an error of NCCL, from a running communicator (AsyncError) or from its creation (InitState), and returns
// their number.
func (j *judge) findFailed(c *current) int64 {
	of := make(map[ncclras.Result][]int32)
	var all []int32
	for i := range c.Ranks {
		r := &c.Ranks[i]
		for _, result := range []ncclras.Result{r.AsyncError, r.InitState} {
			if result.Failed() {
				of[result] = append(of[result], r.Rank)
				all = append(all, r.Rank)
				break
			}
		}
	}
	if len(all) == 0 {
		c.reported[Failed] = 0
		return 0
	}
	f := j.begin(c, Failed)
	f.Counts, f.Processes = j.counts(c), processes(c, all)
	for _, result := range slices.Sorted(maps.Keys(of)) {
		f.Errors = append(f.Errors, fmt.Sprintf("%s: %s", result, ranks(of[result])))
	}
	f.Text = fmt.Sprintf("%s: ranks report errors of NCCL (%s): who reports one need not be its cause", name(c), strings.Join(f.Errors, "; "))
	if j.news(c, Failed, all) {
		j.found = append(j.found, f)
	}
	return int64(len(all))
}

// findHungJob adds a finding about a job in which no rank has launched an operation for Patience while all counts are equal: a hang without a visible culprit.
// The finding is over when a count has changed. A job that has never advanced while watched may be idle by intent, and is no finding.
func (j *judge) findHungJob(list []*current) {
	reported := func(c *current) bool { return c.reported[Still] != 0 }
	f := Finding{At: j.at, Version: j.version, Heard: int64(len(j.gpus)), Communicators: int64(len(list)), For: j.sum.For}
	i := slices.IndexFunc(list, reported)
	if i >= 0 && slices.ContainsFunc(list, func(c *current) bool { return c.moved }) { // also a communicator created since
		f.Kind, f.For = Moved, j.at.Sub(list[i].stood)
		f.Text = fmt.Sprintf("the job goes on: collectives are launched again after %s", rounded(f.For))
		j.found = append(j.found, f)
		for _, c := range list {
			c.reported[Still] = 0
		}
	}
	if !j.quiet || !j.advanced || !j.whole || j.sum.For < j.patience || slices.ContainsFunc(list, reported) {
		return
	}
	f.Kind = Still
	f.Text = fmt.Sprintf("nobody advanced for %s: none of %d GPUs has launched a collective in any of %d communicators, and all counts are equal. "+
		"RAS cannot tell who (it counts launches, and neither Send and Recv nor CUDA graphs)", rounded(f.For), f.Heard, f.Communicators)
	j.found = append(j.found, f)
	for _, c := range list {
		c.reported[Still], c.stood = 1, j.latest
	}
}

// begin returns a finding about a communicator, without its details.
func (j *judge) begin(c *current, kind Kind) Finding {
	return Finding{Kind: kind, At: j.at, Version: j.version, Comm: c.Hash, Size: c.Size, Heard: int64(len(c.ranks))}
}

// news reports whether a finding of a kind about some ranks differs from the one reported last of the communicator, and marks it as reported.
func (j *judge) news(c *current, kind Kind, ranks []int32) bool {
	h := fnv.New64a()
	var b [4]byte
	for _, r := range ranks {
		binary.LittleEndian.PutUint32(b[:], uint32(r))
		_, _ = h.Write(b[:]) // never fails
	}
	sum := h.Sum64() | 1 // not 0
	was := c.reported[kind]
	c.reported[kind] = sum
	return was != sum
}

// most returns the findings to be reported, at most maxFindings: of each kind those about the largest communicators. The kinds take turns: a host missing in a
// thousand communicators must not hide ranks that diverged. Each about a communicator gets the number of findings of its kind.
func (j *judge) most() []Finding {
	var n [kinds]int64
	for i := range j.found {
		n[j.found[i].Kind]++
	}
	for i := range j.found {
		if f := &j.found[i]; f.Comm != "" {
			f.Communicators = n[f.Kind]
		}
	}
	slices.SortStableFunc(j.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Size, a.Size), cmp.Compare(a.Comm, b.Comm))
	})
	var quota [kinds]int64
	for left := min(len(j.found), maxFindings); left > 0; {
		for kind := range quota {
			if left > 0 && quota[kind] < n[kind] {
				quota[kind]++
				left--
			}
		}
	}
	return slices.DeleteFunc(j.found, func(f Finding) bool {
		quota[f.Kind]--
		return quota[f.Kind] < 0
	})
}

// counts has a line per operation: "AllGather: 30 ranks at 640, 2 ranks at 641". It ends with … beyond maxShown counts.
func (j *judge) counts(c *current) (lines []string) {
	for op, name := range j.operations {
		of := make(map[uint64]int)
		for i := range c.ranks {
			of[c.ranks[i].count(op)]++
		}
		var parts []string
		for _, n := range slices.Sorted(maps.Keys(of)) {
			if len(parts) >= maxShown {
				parts = append(parts, "…")
				break
			}
			parts = append(parts, fmt.Sprintf("%s at %d", number(of[n]), n))
		}
		lines = append(lines, name+": "+strings.Join(parts, ", "))
	}
	return lines
}

// differing returns the lines of operations with different counts.
func differing(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.Contains(line, ", ") })
}

// others returns the ranks that are not in front, a sorted list.
func others(c *current, front []int32) (rear []int32) {
	for i := range c.ranks {
		if _, ok := slices.BinarySearch(front, c.ranks[i].number); !ok {
			rear = append(rear, c.ranks[i].number)
		}
	}
	return rear
}

// processes has a line for the process of each rank of a sorted list, at most maxProcesses.
func processes(c *current, list []int32) (lines []string) {
	for i := range c.Ranks {
		r := &c.Ranks[i]
		if _, ok := slices.BinarySearch(list, r.Rank); !ok {
			continue
		}
		lines = append(lines, process(r.Rank, &r.Process))
		if len(lines) == maxProcesses {
			break
		}
	}
	return lines
}

// process returns the description of a process in a list: "rank 12: 10.0.0.7, pid 323032, GPU 4".
func process(rank int32, p *ncclras.Process) string {
	return fmt.Sprintf("rank %d: %s, pid %d, GPU %d", rank, p.Host, p.PID, p.NVMLDev)
}

// first returns at most the first maxNamed ranks of a list.
func first(list []int32) []int32 { return list[:min(len(list), maxNamed)] }

// name returns a communicator in a sentence: "communicator 5eed of 8 ranks".
func name(c *current) string {
	return fmt.Sprintf("communicator %s of %s", c.Hash, number(int(c.Size)))
}

// number returns a number of ranks as text in a sentence.
func number(n int) string {
	if n == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", n)
}

// ranks names some ranks: "rank 3", "ranks 3, 4", "30 ranks (0, 1, …)".
func ranks(list []int32) string {
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(list[:min(len(list), maxShown)]), " ", ", "), "[]")
	switch {
	case len(list) == 1:
		return "rank " + text
	case len(list) <= maxShown:
		return "ranks " + text
	}
	return fmt.Sprintf("%d ranks (%s, …)", len(list), text)
}

// are names ranks as the subject of a sentence: "rank 3 is", "ranks 3, 4 are".
func are(list []int32) string {
	if len(list) == 1 {
		return ranks(list) + " is"
	}
	return ranks(list) + " are"
}

// rounded returns a duration in a sentence, in whole seconds.
func rounded(d time.Duration) time.Duration { return d.Round(time.Second) }
