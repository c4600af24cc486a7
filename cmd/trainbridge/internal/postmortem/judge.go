package postmortem

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/human"
)

// Judge says how the run ended. Its result always has a sentence.
func Judge(c *Case) End {
	j := &judge{Case: c, all: c.sorted()}
	j.lastAttempt()
	j.all = slices.DeleteFunc(j.all, func(e *Event) bool { return e.wentOn && e.Class != events.ClassEnded })
	for _, r := range rules {
		if end, ok := r.rule(j); ok {
			j.finish(&end)
			return end
		}
	}
	return j.silent()
}

// rules in their order: the first rule with its evidence decides.
var rules = []struct {
	name string
	rule func(*judge) (End, bool)
}{
	{"errors behind the end of training", (*judge).afterEnd},
	{"what overrides the first cause", (*judge).overriding},
	{"the first cause", (*judge).firstCause},
	{"training is done", (*judge).done},
	{"ranks that are behind, by their dumps alone", (*judge).dumpsAlone},
	{"an error that is not understood", (*judge).notUnderstood},
}

// judge is a case at work.
type judge struct {
	*Case
	all []*Event // of the last attempt, in order
}

// lastAttempt drops the events of earlier attempts: the run went on after them.
func (j *judge) lastAttempt() {
	for i, e := range slices.Backward(j.all) {
		if e.Class == events.ClassBegan {
			j.all = j.all[i+1:]
			return
		}
	}
}

// of are the events of some classes.
func (j *judge) of(classes ...events.Class) (all []*Event) {
	for _, e := range j.all {
		if slices.Contains(classes, e.Class) {
			all = append(all, e)
		}
	}
	return all
}

// weight says how much an event says of the first cause.
func weight(e *Event) int {
	switch e.Class {
	case events.ClassECC, events.ClassCUDAError, events.ClassCUDAOOM, events.ClassHostOOM, events.ClassMismatch, events.ClassTimeLimit, events.ClassDataLoader,
		events.ClassCheckpoint, events.ClassDisk, events.ClassBehind:
		return 3
	case events.ClassException:
		if e.Exception == "" && e.What == "" || e.Form.Name == "pytorch.worker_raised" {
			return 1 // truncated, or the worker's own traceback follows
		}
		return 3
	case events.ClassNetwork:
		return 3
	case events.ClassXid:
		if consequence(e) {
			return 0
		}
		return 3
	case events.ClassSignal:
		switch e.Signal {
		case 15, 2:
			return 1
		case 4, 7, 8, 11: // by an act of the process itself
			return 3
		}
		return 2
	case events.ClassCancelled, events.ClassGone, events.ClassTimeout:
		return 2
	case events.ClassSummary:
		switch {
		case e.Signal == 15, e.Signal == 6, e.Code == 143, e.Code == 0 && e.Signal == 0:
			return 0
		case e.Signal != 0:
			return 2
		}
		return 1
	case events.ClassFrozen:
		return 2
	case events.ClassNCCL, events.ClassEngine, events.ClassPeer:
		return 1
	}
	return 0
}

// consequence reports whether a line of the driver has an earlier cause: 43 and 45 are of the process, not of the GPU (NVIDIA XID Errors, r590), and newer
// drivers write "caused by previous Xid N" or Nonfatal.
func consequence(e *Event) bool {
	return e.Xid == 45 || strings.Contains(e.What, "caused by previous Xid") || strings.Contains(e.What, "Nonfatal")
}

// afterEnd: all errors came after the end of training.
func (j *judge) afterEnd() (End, bool) {
	ended := j.of(events.ClassEnded, events.ClassExiting)
	if len(ended) == 0 {
		return End{}, false
	}
	last := ended[len(ended)-1]
	if last.Class == events.ClassEnded && !slices.ContainsFunc(j.all, func(e *Event) bool { return weight(e) > 0 && e.order > last.order }) {
		return j.done()
	}
	var after []*Event
	for _, e := range j.all {
		if weight(e) == 0 {
			continue
		}
		if e.order < ended[0].order {
			return End{}, false
		}
		after = append(after, e)
	}
	if len(after) == 0 {
		return End{}, false
	}
	return End{
		Kind: KindAfterEnd, Certain: true, Evidence: j.lines(append([]*Event{last}, after...)),
		Sentence: "Training had ended; the errors come after it" + ": " + clean(after[0].Text) + ".",
		Advice:   "The results are those of a finished run; destroy the process group before the program exits.",
	}, true
}

func (j *judge) done() (End, bool) {
	ended := j.of(events.ClassEnded, events.ClassExiting)
	if len(ended) == 0 {
		return End{}, false
	}
	return End{Kind: KindHealthy, Certain: true, Sentence: "Training says that it is done.", Evidence: j.lines(ended[len(ended)-1:])}, true
}

// overriding: a cause whose consequences may be logged before it.
func (j *judge) overriding() (End, bool) {
	if ooms := j.of(events.ClassHostOOM); len(ooms) > 0 {
		for _, e := range j.causes() {
			if e.Class == events.ClassHostOOM {
				break
			}
			if killed(e) {
				continue
			}
			return End{}, false
		}
		return j.describe(ooms[0]), true
	}
	return End{}, false
}

// killed says whether an event may be the work of the kernel's memory killer.
func killed(e *Event) bool {
	return e.Signal == 9 || e.Class == events.ClassGone || e.Class == events.ClassCancelled || e.Class == events.ClassEngine || e.Code == 137 ||
		e.Class == events.ClassDataLoader && (e.Signal == 9 || strings.Contains(e.Text, "exited unexpectedly"))
}

// causes are the possible first causes, in order.
func (j *judge) causes() (all []*Event) {
	for _, e := range j.all {
		if weight(e) > 0 {
			all = append(all, e)
		}
	}
	return all
}

// firstCause is the earliest event with enough weight; a heavier one wins against events shortly before, because the lines of a dying process and of its
// launcher come in any order.
func (j *judge) firstCause() (End, bool) {
	all := j.causes()
	if len(all) == 0 {
		return End{}, false
	}
	best := all[0]
	for _, e := range all[1:] {
		if weight(e) > weight(best) && !j.longAfter(best, e) && !follows(best, e) {
			best = e
		}
	}
	return j.describe(best), true
}

// follows reports whether b is a consequence of a: a scheduler ends the other processes when one has failed.
func follows(a, b *Event) bool {
	return a.Class == events.ClassSummary && (b.Class == events.ClassCancelled || b.Class == events.ClassSummary && b.Signal == 9)
}

// soon is how long after a line of a launcher the line of the process itself may come.
const soon = int64(60e9)

// longAfter reports whether b came long after a: a is then no consequence of b.
func (j *judge) longAfter(a, b *Event) bool {
	if a.Class == events.ClassTimeout && (b.Class == events.ClassBehind || b.Class == events.ClassMismatch) {
		return false // a summary of the ranks behind the timeout
	}
	if a.Time != 0 && b.Time != 0 {
		return b.Time-a.Time > soon
	}
	return a.Class == events.ClassTimeout && b.At.File == a.At.File
}

// describe concludes from the first cause.
func (j *judge) describe(e *Event) End {
	d := describers[e.Class]
	if d == nil {
		d = (*judge).plain
	}
	end := d(j, e)
	end.Time = e.Time
	if end.Evidence == nil {
		end.Evidence = j.evidence(e)
	}
	return end
}

var describers map[events.Class]func(*judge, *Event) End

func init() {
	describers = map[events.Class]func(*judge, *Event) End{
		events.ClassTimeout: (*judge).timeout, events.ClassException: (*judge).exception, events.ClassCheckpoint: (*judge).exception,
		events.ClassSignal: (*judge).signal, events.ClassSummary: (*judge).summary,
		events.ClassCUDAError: (*judge).device, events.ClassECC: (*judge).device, events.ClassCUDAOOM: (*judge).device, events.ClassXid: (*judge).xid,
		events.ClassHostOOM: (*judge).hostOOM, events.ClassMismatch: (*judge).mismatch, events.ClassNetwork: (*judge).network, events.ClassGone: (*judge).gone,
		events.ClassPeer: (*judge).peer, events.ClassBehind: (*judge).behind, events.ClassTimeLimit: (*judge).scheduler, events.ClassCancelled: (*judge).scheduler,
	}
}

// who are the global ranks that printed events like e, within soon.
func (j *judge) who(like func(*Event) bool, first *Event) (ranks []int64) {
	for _, e := range j.all {
		if e.order < first.order || !like(e) || first.Time != 0 && e.Time != 0 && e.Time-first.Time > soon {
			continue
		}
		if r := j.rankOf(e); r >= 0 && !slices.Contains(ranks, r) {
			ranks = append(ranks, r)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// rankOf is the global rank of the process that printed the line; -1: unknown. The rank of a group that is all of the job is a global one.
func (j *judge) rankOf(e *Event) int64 {
	switch {
	case e.Rank >= 0:
		return e.Rank
	case e.Local >= 0 && j.oneNode():
		return e.Local
	case e.GroupRank >= 0 && (e.Group == "" || strings.Contains(e.Group, "default_pg")):
		return e.GroupRank
	}
	return -1
}

// oneNode reports whether the known part of the job is on one node: local ranks are then global ones.
func (j *judge) oneNode() bool {
	hosts := make(map[string]bool)
	for _, e := range j.all {
		if e.Host != "" {
			hosts[e.Host] = true
		}
		for _, r := range e.Ranks {
			if e.Local >= 0 && r != e.Local {
				return false
			}
		}
		if e.Rank >= 0 && e.Local >= 0 && e.Rank != e.Local {
			return false
		}
	}
	return len(hosts) <= 1
}

func (j *judge) plain(e *Event) End {
	end := End{Kind: string(e.Class), Sentence: words[e.Class] + j.where(e) + ": " + clean(e.Text) + "."}
	switch e.Class {
	case events.ClassDataLoader, events.ClassDisk:
		if e.Class == events.ClassDisk {
			end.Kind = string(events.ClassException)
		}
		j.name(&end, e, func(o *Event) bool { return o.Class == e.Class })
	}
	return end
}

// words begin the sentence of a class.
var words = map[events.Class]string{
	events.ClassDataLoader: "A worker of the data loader died",
	events.ClassDisk:       "The file system has no room left", events.ClassEngine: "The engine died, of what is not told here", events.ClassNCCL: "NCCL failed",
	events.ClassFrozen: "A process hangs in the kernel",
}

// name names the rank of an event if no other rank has one like it.
func (j *judge) name(end *End, e *Event, like func(*Event) bool) {
	ranks := j.who(like, e)
	if len(ranks) == 1 {
		end.Ranks, end.Certain = ranks, true
	}
	if e.Host != "" && len(ranks) <= 1 {
		end.Hosts = []string{e.Host}
	}
}

// where is " on rank 3".
func (j *judge) where(e *Event) string {
	text := ""
	switch r := j.rankOf(e); {
	case r >= 0:
		text = " on rank " + human.Thousands(r)
	case e.Local >= 0:
		text = " on local rank " + human.Thousands(e.Local)
	}
	if e.Host != "" {
		text += " (host " + e.Host + ")"
	}
	return text
}

func (j *judge) device(e *Event) End {
	end := End{Kind: string(e.Class)}
	what := map[events.Class]string{
		events.ClassECC: "The GPU has an uncorrectable memory error (ECC)", events.ClassCUDAOOM: "GPU memory ran out",
		events.ClassCUDAError: "A CUDA call failed: " + cmp.Or(e.What, clean(e.Text)),
	}[e.Class]
	like := func(o *Event) bool { return o.Class == e.Class }
	ranks := j.who(like, e)
	if len(ranks) > 1 { // the first rank comes first; others follow, their collectives spoiled by its error
		end.Sentence = what + " on " + human.Ranks(ranks) + "."
		if e.Class != events.ClassCUDAError {
			end.Ranks = ranks
		}
	} else {
		end.Sentence = what + j.where(e) + "."
		j.name(&end, e, like)
	}
	end.Advice = map[events.Class]string{
		events.ClassECC:       "Take the GPU out of service and have it tested; the job may start again elsewhere.",
		events.ClassCUDAOOM:   "Make the micro-batch or the sequence smaller, or shard more.",
		events.ClassCUDAError: "Run that rank with CUDA_LAUNCH_BLOCKING=1 to find the kernel, and look at the kernel log of the host for an Xid.",
	}[e.Class]
	return end
}

func (j *judge) xid(e *Event) End {
	what := "an error"
	if e.Xid != 0 {
		what = "Xid " + human.Thousands(e.Xid)
	}
	if e.Bus != "" {
		what += " on the GPU at " + e.Bus
	}
	end := End{
		Kind: string(e.Class), Hosts: hosts(e), Certain: true,
		Sentence: "The driver reports " + what + j.where(e) + ": " + cmp.Or(strings.TrimSpace(e.What), clean(e.Text)) + ".",
		Advice:   "Look the number up in NVIDIA's Xid catalogue; drain the node where it is a fault of the hardware.",
	}
	if r := j.rankOfProcess(e.PID); r >= 0 {
		end.Ranks = []int64{r}
		end.Sentence = strings.TrimSuffix(end.Sentence, ".") + ", of the process of " + human.Ranks(end.Ranks) + "."
	}
	return end
}

// rankOfProcess is the rank of a process reaped by a launcher; -1: unknown. The kernel knows no ranks.
func (j *judge) rankOfProcess(pid int64) int64 {
	for _, e := range j.all {
		if r := j.rankOfSummary(e); e.Class == events.ClassSummary && pid != 0 && e.PID == pid && r >= 0 {
			return r
		}
	}
	return -1
}

func hosts(e *Event) []string {
	if e.Host == "" {
		return nil
	}
	return []string{e.Host}
}

func (j *judge) hostOOM(e *Event) End {
	end := End{Kind: string(e.Class), Hosts: hosts(e), Certain: true, Sentence: "The host's memory, or that of its cgroup, ran out" + j.where(e)}
	if e.Process != "" {
		end.Sentence += ": the kernel killed " + e.Process + " (process " + strconv.FormatInt(e.PID, 10) + ")"
	}
	if e.Step != "" {
		end.Sentence += ", in step " + e.Step + " of Slurm"
	}
	if e.Rank >= 0 && e.Exception != "" {
		j.name(&end, e, func(o *Event) bool { return o.Class == e.Class })
	}
	if r := j.rankOfProcess(e.PID); r >= 0 {
		end.Ranks = []int64{r}
	}
	if len(end.Ranks) > 0 {
		end.Sentence += ", " + human.Ranks(end.Ranks)
	}
	end.Sentence += "."
	end.Advice = "Ask for more memory, or let fewer data-loader workers hold less."
	return end
}

func (j *judge) mismatch(e *Event) End {
	end := End{Kind: string(e.Class), Certain: len(e.Ranks) > 0, Sentence: "Ranks of a group called different collectives"}
	if peer, err := strconv.ParseInt(e.Peer, 10, 64); err == nil && len(e.Ranks) == 1 {
		end.Ranks = []int64{e.Ranks[0], peer}
		slices.Sort(end.Ranks)
		end.Sentence = capital(human.Ranks(end.Ranks)) + " called different collectives"
		if e.Seq >= 0 {
			end.Sentence += " at number " + human.Thousands(e.Seq)
		}
	}
	end.Sentence += ": which of them is wrong is not told."
	end.Advice = "Compare what both ranks do in that step: a batch without images, a branch, a shape."
	return end
}

func (j *judge) network(e *Event) End {
	end := End{Kind: string(e.Class), Hosts: hosts(e), Sentence: "The network failed" + j.where(e)}
	if e.Host != "" {
		end.Sentence = "The network failed as host " + e.Host + " tells"
	}
	if e.Peer != "" {
		end.Sentence += ", towards " + e.Peer
		end.Hosts = append(end.Hosts, strings.SplitN(e.Peer, "<", 2)[0])
	}
	end.Sentence += ": " + cmp.Or(e.What, clean(e.Text)) + "."
	end.Advice = "Look at the link between both ends: cable, switch port, GID, firewall; the one who reports is seldom the one who failed."
	return end
}

func (j *judge) gone(e *Event) End {
	end := End{Kind: string(e.Class), Hosts: hosts(e), Ranks: e.Ranks, Sentence: "A process went away"}
	if e.Process != "" {
		end.Sentence = e.Process + " went away"
	}
	if e.PID != 0 {
		end.Sentence += " (process " + strconv.FormatInt(e.PID, 10) + ")"
	}
	if e.Host != "" {
		end.Sentence += " on host " + e.Host
	}
	end.Sentence += "; of what is not told."
	end.Advice = "Look at the log of that worker, and at the kernel log of its host."
	return end
}

// peer: a connection ended. The other end closed first, or the network between them failed.
func (j *judge) peer(e *Event) End {
	end := End{Kind: string(events.ClassGone), Sentence: "A connection was closed by the process at its other end"}
	if strings.Contains(e.Text, "reset by peer") || strings.Contains(e.Text, "network error") {
		end.Kind, end.Sentence = string(events.ClassNetwork), "A connection was reset"
	}
	if e.Peer != "" {
		end.Sentence += " (" + e.Peer + ")"
	}
	if byDumps, ok := j.dumps(e); ok && len(byDumps.Ranks) > 0 {
		return byDumps
	}
	end.Sentence += ": who went away first is not told."
	end.Advice = "Look at the logs of the other ranks: the first that died wrote why."
	return end
}

func (j *judge) scheduler(e *Event) End {
	end := End{Kind: string(e.Class), Certain: true, Sentence: "The job was cancelled"}
	switch {
	case e.Class == events.ClassTimeLimit:
		end.Sentence = "The scheduler ended the job at its time limit"
	case e.What == "DUE TO PREEMPTION":
		end.Sentence = "Slurm preempted the job"
	case e.What == "DUE TO JOB REQUEUE":
		end.Sentence = "Slurm requeued the job"
	case e.What == "KeyboardInterrupt":
		end.Sentence = "The job was interrupted (SIGINT), by whom is not told"
	}
	end.Sentence += ": " + clean(e.Text) + "."
	return end
}

func (j *judge) behind(e *Event) End {
	return End{
		Kind: string(e.Class), Certain: true, Ranks: e.Ranks,
		Sentence: capital(human.Ranks(e.Ranks)) + " did not reach the collective in which the others waited" + ".",
		Advice:   "Look at what that rank did last: its own log, a stack trace (py-spy).",
	}
}

func (j *judge) signal(e *Event) End {
	end := End{Kind: kindOfSignal(e.Signal), Sentence: "A process"}
	if e.PID != 0 {
		end.Sentence = "Process " + strconv.FormatInt(e.PID, 10)
	}
	end.Sentence += j.where(e) + " died by " + cmp.Or(events.SignalName(e.Signal), "a signal") + ": by whom is not told."
	if e.Signal != 15 && e.Signal != 2 {
		j.name(&end, e, func(o *Event) bool { return o.Class == e.Class && o.Signal == e.Signal })
		if rank := j.reaped(e.Signal); len(end.Ranks) == 0 && rank >= 0 {
			end.Ranks = []int64{rank}
			end.Sentence = strings.Replace(end.Sentence, " died by", " ("+human.Ranks(end.Ranks)+") died by", 1)
		}
	}
	return end
}

// reaped is the rank of the only process that died by the signal, as launchers say; -1: none, or several.
func (j *judge) reaped(signal int64) int64 {
	rank := int64(-1)
	named := make(map[int64]bool) // processes
	for _, e := range j.all {
		if e.Class != events.ClassSummary || e.Signal != signal {
			continue
		}
		r := j.rankOfSummary(e)
		if r >= 0 && rank >= 0 && r != rank {
			return -1
		}
		if r >= 0 {
			rank, named[e.PID] = r, true
		}
	}
	for _, e := range j.all {
		if e.Class == events.ClassSummary && e.Signal == signal && j.rankOfSummary(e) < 0 && !named[e.PID] {
			return -1
		}
	}
	return rank
}

// rankOfSummary is the global rank of the process reaped by a launcher; -1: unknown.
func (j *judge) rankOfSummary(e *Event) int64 {
	switch {
	case e.Form.Name == "slurm.task_exit": // of the step: with a launcher on each node the node's rank
		return -1
	case len(e.Ranks) == 1:
		return e.Ranks[0]
	case j.oneNode():
		return e.Local
	}
	return -1
}

func kindOfSignal(n int64) string {
	switch n {
	case 2:
		return string(events.ClassCancelled)
	case 9:
		return KindSIGKILL
	case 15:
		return KindSIGTERM
	}
	return string(events.ClassSignal)
}

// summary has a launcher's line alone: the first process reaped, with its exit code.
func (j *judge) summary(e *Event) End {
	if e.Signal == 0 {
		return j.exit(e)
	}
	end := End{Kind: kindOfSignal(e.Signal), Hosts: hosts(e)}
	rank := j.reaped(e.Signal)
	end.Sentence = "A process was killed by " + cmp.Or(events.SignalName(e.Signal), "signal "+strconv.FormatInt(e.Signal, 10))
	if e.PID != 0 {
		end.Sentence = "Process " + strconv.FormatInt(e.PID, 10) + " was killed by " + cmp.Or(events.SignalName(e.Signal), "signal "+strconv.FormatInt(e.Signal, 10))
	}
	if rank >= 0 && e.Signal != 6 {
		end.Ranks = []int64{rank}
		end.Sentence = strings.Replace(end.Sentence, " was killed", " (rank "+human.Thousands(rank)+") was killed", 1)
	}
	end.Sentence += ": by whom is not told."
	end.Advice = "Look at the kernel log of the host for the memory killer, and at the scheduler."
	return end
}

func (j *judge) exit(e *Event) End {
	kind := events.ClassGone
	if e.Code == 1 {
		kind = events.ClassException // the interpreter's exit code for an uncaught exception
	}
	end := End{Kind: string(kind), Sentence: "A process ended with exit code " + strconv.FormatInt(e.Code, 10) + "; its own words are not in these logs."}
	if e.PID != 0 {
		end.Sentence = "Process " + strconv.FormatInt(e.PID, 10) + " ended with exit code " + strconv.FormatInt(e.Code, 10) +
			", the first that its launcher reaped; its own words are not in these logs."
	}
	if r := j.onlyFailed(); r >= 0 {
		end.Ranks = []int64{r}
		end.Sentence = strings.Replace(end.Sentence, " ended with", " ("+human.Ranks(end.Ranks)+") ended with", 1)
	}
	end.Advice = "Look at the output of each rank: torchrun --log-dir, or --tee 3."
	return end
}

// onlyFailed is the rank of the only process in launchers' lines, if no rank waited for another: otherwise the first one reaped may be a waiting rank. -1:
// none.
func (j *judge) onlyFailed() int64 {
	failed := int64(-1)
	for _, e := range j.all {
		switch e.Class {
		case events.ClassTimeout, events.ClassPeer, events.ClassNCCL, events.ClassBehind:
			return -1
		case events.ClassSummary:
			r := j.rankOfSummary(e)
			if r < 0 || e.Signal == 15 {
				continue
			}
			if failed >= 0 && r != failed {
				return -1
			}
			failed = r
		}
	}
	return failed
}

func (j *judge) exception(e *Event) End {
	end := End{Kind: string(e.Class)}
	same := func(o *Event) bool { return o.Class == e.Class && o.Exception == e.Exception }
	ranks := j.who(same, e)
	what := e.Exception
	switch {
	case what == "":
		what = clean(e.Text)
	case e.What != "":
		what += ": " + e.What
	}
	switch {
	case len(ranks) > 1:
		end.Sentence = human.Thousands(len(ranks)) + " ranks raised " + what
	case len(ranks) == 1:
		end.Sentence = "Rank " + human.Thousands(ranks[0]) + " raised " + what
		j.name(&end, e, same)
	default:
		end.Sentence = "The program raised " + what
	}
	if at := e.Last.String(); at != "" {
		end.Sentence += ", at " + at
	}
	end.Sentence += "."
	return end
}

// timeout: ranks gave up waiting in a collective. The rank behind is known only if all ranks of the group have logged their positions.
func (j *judge) timeout(e *Event) End {
	if end, ok := j.dumps(e); ok {
		return end
	}
	end := End{Kind: string(e.Class)}
	counts := make(map[int64]*Event) // by rank of the group
	group := e.Group
	for _, o := range j.all {
		if o.Class == events.ClassTimeout && o.Enqueued >= 0 && o.Group == group && o.GroupRank >= 0 {
			counts[o.GroupRank] = o
		}
	}
	waiting := j.who(func(o *Event) bool { return o.Class == events.ClassTimeout }, e)
	end.Heard, end.Of = int64(len(waiting)), j.WorldSize
	op := ""
	for _, o := range j.all {
		if o.Class == events.ClassTimeout && o.Op != "" && (o.Group == group || group == "") {
			op = o.Op
			break
		}
	}
	end.Sentence = "Ranks waited in a collective" + when(op != "", " ("+op+")") + " until they gave up"
	if size := j.WorldSize; size > 0 && int64(len(counts)) == size {
		least := int64(-1)
		for _, o := range counts {
			if least < 0 || o.Enqueued < least {
				least = o.Enqueued
			}
		}
		var behind []int64
		for r, o := range counts {
			if o.Enqueued == least {
				behind = append(behind, r)
			}
		}
		if len(behind) < len(counts) {
			slices.Sort(behind)
			end.Kind, end.Ranks, end.Certain = string(events.ClassBehind), behind, true
			end.Sentence = capital(human.Ranks(behind)) + " did not return from enqueueing work " + human.Thousands(least+1) + ", in which the others waited"
		}
	}
	if len(waiting) > 0 && end.Kind == string(e.Class) {
		end.Sentence += "; " + human.Ranks(waiting) + " told of it"
		if j.WorldSize > 0 {
			end.Sentence += ", of " + human.Thousands(j.WorldSize)
		}
		end.Sentence += ": who is behind is not told"
	}
	end.Sentence += "."
	end.Advice = "Collect the Flight Recorder's dumps of all ranks (TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_NCCL_DUMP_ON_TIMEOUT): they say who is behind."
	return end
}

// notUnderstood: a fatal line without a rule.
func (j *judge) notUnderstood() (End, bool) {
	for _, e := range j.all {
		switch e.Class {
		case events.ClassXid:
			return j.describe(e), true
		case events.ClassSummary:
			if e.Signal != 0 {
				return j.describe(e), true
			}
		}
	}
	for _, e := range j.all {
		switch e.Class {
		case events.ClassFatal, events.ClassTeardown, events.ClassSummary:
			return End{
				Kind: KindNotUnderstood, Evidence: j.lines([]*Event{e}), Time: e.Time,
				Sentence: "The run ends in an error that is not understood" + ": " + clean(e.Text) + ".",
			}, true
		}
	}
	return End{}, false
}

// silent is said where the logs just stop.
func (j *judge) silent() End {
	end := End{Kind: KindSilent, Sentence: "The log ends without a word: killed, or still running."}
	if j.LastStep >= 0 {
		end.Sentence = "The log ends at step " + human.Thousands(j.LastStep) + " without a word: killed, or still running."
	}
	return end
}

// finish adds how long ranks stood in a collective.
func (j *judge) finish(end *End) {
	longest := make(map[int64]int64) // ms, by rank
	for _, e := range j.all {
		if e.Class == events.ClassTimeout && e.Waited > 0 {
			r := j.rankOf(e)
			longest[r] = max(longest[r], e.Waited)
		}
	}
	for _, ms := range longest {
		end.Waited += float64(ms) / 1e3
	}
}

// maxEvidence bounds the lines of an end.
const maxEvidence = 8

// evidence are the lines of a first cause and of its consequences, without repetitions of a form.
func (j *judge) evidence(first *Event) []Evidence {
	list := []*Event{first}
	seen := map[string]bool{first.Form.Name: true}
	for _, e := range j.all {
		if e.order > first.order && !seen[e.Form.Name] && e.Class != events.ClassWarning {
			seen[e.Form.Name] = true
			list = append(list, e)
		}
	}
	return j.lines(list)
}

func (j *judge) lines(list []*Event) (all []Evidence) {
	for _, e := range list[:min(len(list), maxEvidence)] {
		all = append(all, Evidence{e.At, e.Text})
	}
	return all
}

func when(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}

// clean is a line for a sentence.
func clean(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const most = 160
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.TrimRight(s, ". ")
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
