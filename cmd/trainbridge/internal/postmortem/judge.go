package postmortem

import (
	"cmp"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/human"
)

// Judge says how the run ended. The result always has a sentence.
func Judge(c *Case) End {
	j := &judge{Case: c, all: c.sorted()}
	j.lastAttempt()
	j.raised()
	j.optional()
	j.recovered()
	j.strangers()
	// The run went on after an event with later steps: the event says nothing of the end. An end of training stays, because errors behind the end are judged by
	// it.
	j.all = slices.DeleteFunc(j.all, func(e *Event) bool { return e.wentOn && e.Class != events.ClassEnded })
	for _, r := range rules {
		if end, ok := r.rule(j); ok {
			j.finish(&end)
			return end
		}
	}
	end := j.silent()
	end.InFlight = j.inFlight()
	return end
}

// rules are in the order of trial: the first with evidence decides, and a rule may rely on the failure of the rules above.
var rules = []struct {
	name string
	rule func(*judge) (End, bool)
}{
	{"errors behind the end of training", (*judge).afterEnd},
	{"what overrides the first cause", (*judge).overriding},
	{"the first cause", (*judge).firstCause},
	{"training is done", (*judge).done},
	{"ranks that wait for others to start", (*judge).starting},
	{"ranks that are behind, by their dumps alone", (*judge).dumpsAlone},
	{"an error that is not understood", (*judge).notUnderstood},
}

// judge is a case while the rules look for its end.
type judge struct {
	*Case
	all []*Event // of the last attempt, in order, without events that steps follow

	strange []*Event // lines of the kernel about processes of others
}

// lastAttempt drops the events of earlier attempts: the run went on after them. An attempt of which only its launcher's end is told, as of a restart that
// failed in the rendezvous, says nothing of its own: then the attempt before stays.
func (j *judge) lastAttempt() {
	for i, e := range slices.Backward(j.all) {
		if e.Class != events.ClassBegan {
			continue
		}
		own := j.all[i+1:]
		taken := slices.ContainsFunc(own, func(e *Event) bool { return e.Class == events.ClassTeardown })
		if taken && !slices.ContainsFunc(own, func(e *Event) bool { return weight(e) > 0 || !e.Class.Fatal() && e.Class.Ends() }) {
			continue
		}
		j.all = j.all[i+1:]
		return
	}
}

// raised takes the watchdog's counts of a rank for no time-out where the rank's collective had failed by an exception: since PyTorch 2.5 both ends of a wait
// print the same counts, and ask for dumps in the words of a time-out.
func (j *judge) raised() {
	failed := make(map[int64]bool) // by an exception before any time-out, by rank
	for i, e := range j.all {
		rank := j.rankOf(e)
		switch {
		case rank < 0:
		case e.Form.Name == "pytorch.async_exception":
			if _, known := failed[rank]; !known {
				failed[rank] = true
			}
		case e.Class != events.ClassTimeout:
		case failed[rank] && (e.Form.Name == "pytorch.work_counts" || e.Form.Name == "pytorch.dump_signal"):
			peer := *e
			peer.Class = events.ClassPeer
			j.all[i] = &peer
		default:
			failed[rank] = false
		}
	}
}

// optional drops imports that failed if the same log went on and no other error is told: programs try what they can do without, and print the traceback.
func (j *judge) optional() {
	imports := func(e *Event) bool { return e.Class == events.ClassException && events.IsImport(e.Exception) }
	last := make(map[string]int) // order of the log's line that shows that the program went on, by log
	for _, e := range j.all {
		switch {
		case e.Form.Name == "python.went_on":
			last[e.At.File] = e.order
		case !imports(e) && weight(e) > 0, e.Class == events.ClassTeardown:
			return
		}
	}
	j.all = slices.DeleteFunc(j.all, func(e *Event) bool { return imports(e) && last[e.At.File] > e.order })
}

// backOf are the forms of waits that a later line may end, with the form of that line.
var backOf = map[string]string{
	"kernel.nfs": "kernel.nfs_back", "kernel.lustre_lost": "kernel.lustre_back", "kernel.link_down": "kernel.link_up", "torchrun.meeting": "torchrun.met",
}

// recovered drops waits of the kernel for a file server that answered later, and links that came up again, by the same log.
func (j *judge) recovered() {
	back := func(e *Event) bool {
		return slices.ContainsFunc(j.all, func(o *Event) bool {
			return o.order > e.order && o.At.File == e.At.File && o.Form.Name == backOf[e.Form.Name] && o.Peer == e.Peer && o.Bus == e.Bus
		})
	}
	j.all = slices.DeleteFunc(j.all, func(e *Event) bool { return backOf[e.Form.Name] != "" && back(e) })
}

// ours are how names of processes begin that train or serve: interpreters, workers and launchers. The kernel cuts names to 15 bytes.
var ours = regexp.MustCompile(`(?i)^(?:python|pt_|ray|torch|vllm|sglang|deepspeed|accelerate|mpi|orte|prte|hydra|horovod|srun|slurmstepd|train|java|julia)`)

// strangers drops the kernel's lines about a process whose name is none of a job's, such as a monitor, unless the job's own logs tell of a death that the line
// explains: a host, and its GPUs, may serve others beside.
func (j *judge) strangers() {
	explains := func(e *Event) bool {
		return slices.ContainsFunc(j.all, func(o *Event) bool {
			switch {
			case kernel(o):
				return false
			case e.Class == events.ClassHostOOM:
				return killed(o) || o.Class == events.ClassHostOOM || o.PID != 0 && o.PID == e.PID
			}
			return o.Class == events.ClassCUDAError || o.Class == events.ClassECC || o.PID != 0 && o.PID == e.PID
		})
	}
	j.all = slices.DeleteFunc(j.all, func(e *Event) bool {
		name := e.Process
		if m := xidName.FindStringSubmatch(e.What); e.Class == events.ClassXid && m != nil && !broken(e) {
			name = m[1]
		}
		strange := kernel(e) && (e.Class == events.ClassHostOOM || e.Class == events.ClassXid) && name != "" && !ours.MatchString(name) && !explains(e)
		if strange {
			j.strange = append(j.strange, e)
		}
		return strange
	})
}

// xidName is the process in a line of NVIDIA's driver.
var xidName = regexp.MustCompile(`name=([\w.:-]+)`)

// kernel reports whether a line is of Linux, or of a driver in it.
func kernel(e *Event) bool { return strings.HasPrefix(e.Form.Name, "kernel.") }

// of are the events of some classes.
func (j *judge) of(classes ...events.Class) (all []*Event) {
	for _, e := range j.all {
		if slices.Contains(classes, e.Class) {
			all = append(all, e)
		}
	}
	return all
}

// weight says how well an event explains the end of the run: 3, names a cause; 2, a process or job was ended or waited in vain, because of something unnamed;
// 1, follows from something else, and is a cause only if nothing better is logged; 0, no cause at all.
func weight(e *Event) int {
	switch e.Class {
	case events.ClassECC, events.ClassCUDAError, events.ClassCUDAOOM, events.ClassHostOOM, events.ClassMismatch, events.ClassTimeLimit, events.ClassDataLoader,
		events.ClassCheckpoint, events.ClassDisk, events.ClassBehind, events.ClassNetwork:
		return 3
	case events.ClassException:
		if e.Exception == "" && e.What == "" || e.Form.Name == "pytorch.worker_raised" {
			return 1 // truncated, or the worker's own traceback follows
		}
		if e.Exception == "ncclRemoteError" { // NCCL's words below the exception of PyTorch: another process is gone, or the network failed
			return 1
		}
		if e.Form.Name == "python.headless" {
			return 2 // what came before is not in the log
		}
		return 3
	case events.ClassXid:
		if consequence(e) {
			return 0
		}
		return 3
	case events.ClassSignal:
		switch e.Signal {
		case 15, 2: // SIGTERM, SIGINT: somebody ends the process
			return 1
		case 4, 7, 8, 11: // SIGILL, SIGBUS, SIGFPE, SIGSEGV: by an act of the process itself
			return 3
		}
		return 2 // SIGKILL, SIGABRT: by the kernel, a watchdog, or a failed assertion
	case events.ClassCancelled, events.ClassGone, events.ClassTimeout:
		return 2
	case events.ClassSummary:
		switch {
		case e.Signal == 15, e.Code == 143, e.Code == 0 && e.Signal == 0: // ended by the launcher with SIGTERM (143 is 128 + 15), or no failure
			return 0
		case e.Signal == 6: // SIGABRT: a watchdog ends waiting ranks too
			return 0
		case e.Signal != 0:
			return 2
		}
		return 1 // an exit code: the process itself may have written why
	case events.ClassFrozen:
		return 2
	case events.ClassNCCL, events.ClassEngine, events.ClassPeer:
		return 1
	}
	return 0
}

// consequence reports whether a line of the driver is no cause: Xid 45 is the clean-up after another error (NVIDIA XID Errors, r590), and newer drivers write
// "caused by previous Xid N" or Nonfatal.
func consequence(e *Event) bool {
	return e.Xid == 45 || strings.Contains(e.What, "caused by previous Xid") || strings.Contains(e.What, "Nonfatal")
}

// afterEnd is the rule for complete training with errors in the logs: healthy if the last line about an end says that training is complete, and no error
// follows; after_end if all errors come behind the first line about an end. false: no line about an end, an error before the first of these lines, or a program
// that only says that it exits, without errors (done).
func (j *judge) afterEnd() (End, bool) {
	// A trainer's record of the whole run is not refuted by the kernel alone, whose clock may be another.
	if j.Finished != nil && !slices.ContainsFunc(j.causes(), func(e *Event) bool { return !kernel(e) }) {
		return j.silent(), true
	}
	if j.Finished != nil {
		if after := j.afterRecord(); len(after) > 0 {
			return behind(append([]Evidence{{*j.Finished, recordText}}, j.lines(after)...), after[0]), true
		}
	}
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
	return behind(j.lines(append([]*Event{last}, after...)), after[0]), true
}

// behind is the end of a run whose errors all came behind the end of training.
func behind(evidence []Evidence, first *Event) End {
	return End{
		Kind: KindAfterEnd, Certain: true, Evidence: evidence[:min(len(evidence), maxEvidence)],
		Sentence: "Training had ended before the first error: " + clean(first.Text) + ".",
		Advice:   "The results are those of a finished run; destroy the process group before the program exits.",
	}
}

// ofLibrary are files of CPython's library in which threads and processes that are ended fail.
var ofLibrary = regexp.MustCompile(`/python[\d.]*/(?:(?:multiprocessing|concurrent|asyncio)/\S+|threading|weakref|tempfile|shutil)\.py$`)

// afterRecord are the errors of a run if all stand behind the trainer's record of the whole run, in the same log, and are of the program's clean-up; nil:
// some error is not, or may have cost results: a failed save, a process that a launcher saw fail.
func (j *judge) afterRecord() (all []*Event) {
	for _, e := range j.causes() {
		cleanUp := e.Class == events.ClassException && ofLibrary.MatchString(e.Last.File) || e.Class == events.ClassPeer || e.Class == events.ClassNCCL
		switch {
		case kernel(e):
		case !cleanUp || e.Class == events.ClassSummary || e.At.File != j.Finished.File || e.At.Offset <= j.Finished.Offset:
			return nil
		default:
			all = append(all, e)
		}
	}
	return all
}

// done is the rule for a line about complete training, or about a program that is exiting.
func (j *judge) done() (End, bool) {
	ended := j.of(events.ClassEnded, events.ClassExiting)
	if len(ended) == 0 {
		return End{}, false
	}
	return End{Kind: KindHealthy, Certain: true, Sentence: "The log says that training is done.", Evidence: j.lines(ended[len(ended)-1:])}, true
}

// overriding is the rule for causes whose lines often come after lines about their victims: the kernel's memory killer, and a GPU that failed. Each is the
// cause, unless an event of another origin came before.
func (j *judge) overriding() (End, bool) {
	if e := j.override(func(e *Event) bool { return e.Class == events.ClassHostOOM }, func(e, _ *Event) bool { return killed(e) }); e != nil {
		return j.describe(e), true
	}
	if e := j.override(broken, func(e, fault *Event) bool { return ofBroken(e) && !j.longAfter(e, fault) }); e != nil {
		return j.describe(e), true
	}
	return End{}, false
}

// override is the first event of a kind, if all before are its victims; nil: none, or another origin came before.
func (j *judge) override(is func(*Event) bool, victim func(e, of *Event) bool) *Event {
	all := j.causes()
	i := slices.IndexFunc(all, is)
	if i < 0 || slices.ContainsFunc(all[:i], func(e *Event) bool { return !victim(e, all[i]) }) {
		return nil
	}
	return all[i]
}

// faults are the Xids by which a GPU, or its link, has failed by itself (NVIDIA XID Errors, r590): memory beyond repair (48, 64, 95), NVLink (74), off the bus
// (79), and firmware or processors without an answer (62, 119, 120). No program causes these.
var faults = []int64{48, 62, 64, 74, 79, 95, 119, 120}

// broken reports whether a line of the driver says that a GPU has failed by itself.
func broken(e *Event) bool {
	return e.Class == events.ClassXid && !consequence(e) && (slices.Contains(faults, e.Xid) || strings.HasSuffix(e.Form.Name, "gpu_lost"))
}

// ofBroken reports whether an event may be the work of a failed GPU: a failed call of CUDA, and what other ranks saw of the failed rank.
func ofBroken(e *Event) bool {
	switch e.Class {
	case events.ClassCUDAError, events.ClassECC, events.ClassNCCL, events.ClassPeer:
		return true
	}
	return false
}

// killed says whether an event may be the work of the kernel's memory killer: a death by SIGKILL (137 is 128 + 9), or a vanished process, a cancelled job, a
// dead engine or data-loader worker, whose lines may lack the signal.
func killed(e *Event) bool {
	return e.Signal == 9 || e.Class == events.ClassGone || e.Class == events.ClassCancelled || e.Class == events.ClassEngine || e.Code == 137 ||
		e.Class == events.ClassDataLoader && strings.Contains(e.Text, "exited unexpectedly")
}

// causes are the events with some weight, in order.
func (j *judge) causes() (all []*Event) {
	for _, e := range j.all {
		if weight(e) > 0 {
			all = append(all, e)
		}
	}
	return all
}

// firstCause is the rule for the earliest event with some weight. A heavier event from shortly after wins against earlier events, because the lines of a dying
// process and of its launcher come in any order. A consequence of the earlier event (follows) does not win.
func (j *judge) firstCause() (End, bool) {
	all := j.causes()
	if len(all) == 0 {
		return End{}, false
	}
	best := all[0]
	for _, e := range all[1:] {
		if (weight(e) > weight(best) || explains(e, best)) && !j.longAfter(best, e) && !follows(best, e) || sender(e, best) {
			best = e
		}
	}
	return j.describe(best), true
}

// explains reports whether b, of equal weight, has the reason for a: torch.save fails with an exception of its own first, and raises the full disk's after;
// torchrun lists the process that ended first behind the others; and a lost connection is of a process that failed elsewhere, as far as clocks tell.
func explains(b, a *Event) bool {
	if farEnd(a) && b.At.File != a.At.File && weight(b) == 3 && b.Class != events.ClassNetwork && (a.Time == 0 || b.Time == 0 || b.Time < a.Time) {
		return true
	}
	if a.Form.Name == "torchrun.failure" && b.Form.Name == "torchrun.root_cause" {
		return true
	}
	return a.Class == events.ClassCheckpoint && !diskFull(a) && (b.Class == events.ClassCheckpoint || b.Class == events.ClassDisk) && diskFull(b)
}

// ofOther are words of one end of a connection about the other end, and of a store for which processes did not come.
var ofOther = regexp.MustCompile(`(?i)connection (?:refused|reset|closed)|closed by (?:remote )?peer|clients joined`)

// farEnd reports whether a failure of the network may be that the process at the other end is gone, or never came.
func farEnd(e *Event) bool { return e.Class == events.ClassNetwork && ofOther.MatchString(e.Text) }

// sender reports whether b says who ended a process that received SIGTERM, as a shows. Kubernetes' events may lack the time.
func sender(b, a *Event) bool {
	return a.Class == events.ClassSignal && a.Signal == 15 && b.Class == events.ClassCancelled && strings.HasPrefix(b.Form.Name, "kubernetes.")
}

// diskFull reports whether a line says that a file system, or a quota, has no room.
func diskFull(e *Event) bool {
	return e.Form.Name == "python.disk_full" || e.Form.Name == "python.disk_quota"
}

// follows reports whether b is a consequence of a: a scheduler ends the other processes when one has failed.
func follows(a, b *Event) bool {
	return a.Class == events.ClassSummary && b.Form.Name != "hydra.exit_string" &&
		(b.Class == events.ClassCancelled || b.Class == events.ClassSummary && b.Signal == 9)
}

// soon is how long, in ns, lines about the same failure may be apart: those of a process and of its launcher, or those of several ranks.
const soon = int64(60e9)

// longAfter reports whether b came too long after a for a to be a consequence of b. Without times nothing is long after, except lines behind a time-out in the
// same log: the ranks had waited for minutes by then.
func (j *judge) longAfter(a, b *Event) bool {
	if a.Class == events.ClassTimeout && (b.Class == events.ClassBehind || b.Class == events.ClassMismatch) {
		return false // b explains the time-out: who was behind, or how calls differed
	}
	if a.Time != 0 && b.Time != 0 {
		return b.Time-a.Time > soon
	}
	return a.Class == events.ClassTimeout && b.At.File == a.At.File
}

// describe makes the end from its first cause, by the describer of the event's class, and adds time and evidence.
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

// describers make the sentence, the ranks and the advice of an end from the first cause, by the event's class; plain is for all further classes.
var describers map[events.Class]func(*judge, *Event) End

func init() {
	describers = map[events.Class]func(*judge, *Event) End{
		events.ClassTimeout: (*judge).timeout, events.ClassException: (*judge).exception, events.ClassCheckpoint: (*judge).exception,
		events.ClassSignal: (*judge).signal, events.ClassSummary: (*judge).summary,
		events.ClassCUDAError: (*judge).device, events.ClassECC: (*judge).device, events.ClassCUDAOOM: (*judge).device, events.ClassXid: (*judge).xid,
		events.ClassFrozen:  (*judge).frozen,
		events.ClassHostOOM: (*judge).hostOOM, events.ClassMismatch: (*judge).mismatch, events.ClassNetwork: (*judge).network, events.ClassGone: (*judge).gone,
		events.ClassPeer: (*judge).peer, events.ClassBehind: (*judge).behind, events.ClassTimeLimit: (*judge).scheduler, events.ClassCancelled: (*judge).scheduler,
	}
}

// who are the known global ranks, sorted, that printed events like the first: the first, and later ones until soon after.
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

// rankOf is the global rank of the process that printed the line; -1: unknown. A rank in a group is a global rank if the group is the whole job (default_pg).
func (j *judge) rankOf(e *Event) int64 {
	switch {
	case e.Rank >= 0:
		return e.Rank
	case e.Local >= 0 && j.oneNode():
		return e.Local
	case e.GroupRank >= 0 && (e.Group == "" || strings.Contains(e.Group, "default_pg")):
		return e.GroupRank
	case e.Class == events.ClassException && len(e.Ranks) == 1: // the exception's own words name the rank that raised
		return e.Ranks[0]
	}
	return -1
}

// oneNode reports whether nothing in the logs speaks against a job on a single node, where local ranks are global ranks: no two hosts, and no event whose local
// rank differs from its global rank.
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

// plain describes classes without a describer of their own: the words of the class, then the line. For a full disk and a dead data loader a rank may be named
// (name).
func (j *judge) plain(e *Event) End {
	end := End{Kind: string(e.Class), Sentence: words[e.Class] + j.where(e) + ": " + clean(e.Text) + "."}
	if e.Form.Name == "acl.function" || e.Form.Name == "hccl.error" {
		end.Sentence = "A call of CANN, the NPU's library, failed" + j.where(e) + ": " + cmp.Or(e.What, clean(e.Text)) + "."
	}
	switch e.Class {
	case events.ClassDataLoader, events.ClassDisk:
		if e.Class == events.ClassDisk { // no kind of its own: the program sees an exception, OSError
			end.Kind = string(events.ClassException)
		}
		j.name(&end, e, func(o *Event) bool { return o.Class == e.Class })
		if len(end.Ranks) == 1 && j.where(e) == "" { // the first line is of a worker, which prints no rank
			end.Sentence = strings.Replace(end.Sentence, ": ", " on "+human.Ranks(end.Ranks)+": ", 1)
		}
	}
	return end
}

// words begin the sentence of a class.
var words = map[events.Class]string{
	events.ClassDataLoader: "A worker of the data loader died",
	events.ClassDisk:       "The file system has no room left", events.ClassEngine: "The engine died, cause unknown", events.ClassNCCL: "NCCL failed",
	events.ClassFrozen: "A process hangs in the kernel",
}

// name names the rank and host of an event as the cause, if only a single rank has like events: of several, the first to print need not be the first to fail.
// Without a known rank the host alone is named.
func (j *judge) name(end *End, e *Event, like func(*Event) bool) {
	ranks := j.who(like, e)
	if len(ranks) == 1 {
		end.Ranks, end.Certain = ranks, true
	}
	if e.Host != "" && len(ranks) <= 1 {
		end.Hosts = []string{e.Host}
	}
}

// where is the place of an event in a sentence: " on rank 3 (host node-1)"; "": unknown.
func (j *judge) where(e *Event) string {
	text := ""
	switch r := j.rankOf(e); {
	case r >= 0:
		text = " on rank " + human.Thousands(r)
	case e.Local >= 0:
		text = " on local rank " + human.Thousands(e.Local)
	}
	if e.Host != "" {
		text += " (" + when(pod(e), "pod ", "host ") + e.Host + ")"
	}
	return text
}

// pod reports whether the host of an event is a pod of Kubernetes.
func pod(e *Event) bool {
	return e.Host != "" && strings.HasPrefix(e.Form.Name, "kubernetes.") && e.Form.Name != "kubernetes.node"
}

// device describes an error of a GPU: ECC, no memory left, a failed call of CUDA.
func (j *judge) device(e *Event) End {
	end := End{Kind: string(e.Class)}
	what := map[events.Class]string{
		events.ClassECC: "The GPU has an uncorrectable memory error (ECC)", events.ClassCUDAOOM: "GPU memory ran out",
		events.ClassCUDAError: "A CUDA call failed: " + cmp.Or(e.What, clean(e.Text)),
	}[e.Class]
	writer, _, _ := strings.Cut(e.Form.Name, ".")
	other := "" // of another maker than NVIDIA
	switch {
	case writer == "acl":
		other = "The NPU"
	case writer == "rocm", e.Form.Name == "pytorch.rocm_fault":
		other = "The GPU"
	}
	switch {
	case e.Class == events.ClassCUDAError && other != "":
		what = other + " failed: " + e.What
	case e.Class == events.ClassCUDAOOM && writer != "pytorch" && e.What != "":
		what = when(writer == "xla", "The accelerator's memory", "GPU memory") + " ran out: " + e.What
	}
	like := func(o *Event) bool { return o.Class == e.Class }
	ranks := j.who(like, e)
	if len(ranks) > 1 {
		end.Sentence = what + " on " + human.Ranks(ranks) + "."
		// A CUDA error of a rank makes the collectives of all ranks fail alike: the first rank is not known.
		if e.Class != events.ClassCUDAError {
			end.Ranks = ranks
		}
	} else {
		where := j.where(e)
		if where == "" && len(ranks) == 1 { // the first line is of the kernel, which prints no rank
			where = " on " + human.Ranks(ranks)
		}
		end.Sentence = what + where + "."
		j.name(&end, e, like)
	}
	end.Advice = map[events.Class]string{
		events.ClassECC:       "Take the GPU out of service and have it tested; the job may start again elsewhere.",
		events.ClassCUDAOOM:   "Make the micro-batch or the sequence smaller, or shard more.",
		events.ClassCUDAError: "Run that rank with CUDA_LAUNCH_BLOCKING=1 to find the kernel, and look at the kernel log of the host for an Xid.",
	}[e.Class]
	if other != "" {
		end.Advice = "Look at the kernel log of the host and at the driver's log of that device."
	}
	return end
}

// xid describes an error that NVIDIA's driver wrote to the kernel's log. The rank is known if a launcher names the process.
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
		Sentence: "The driver reports " + what + j.where(e) + ": " + cmp.Or(strings.TrimRight(e.What, ". "), clean(e.Text)) + ".",
		Advice:   "Look the number up in NVIDIA's Xid catalogue; drain the node if the hardware is at fault.",
	}
	if e.moved != 0 {
		hours := strconv.FormatFloat(math.Abs(float64(e.moved))/3600e9, 'g', 4, 64)
		end.Sentence = strings.TrimSuffix(end.Sentence, ".") + " (by a clock " + hours + when(e.moved > 0, " h behind", " h ahead") + ")."
	}
	if e.Form.Name == "kernel.amdgpu" {
		end.Advice = "Look at the lines around in the kernel log; drain the node if the GPU is reset again."
	}
	if r := j.rankOfProcess(e.PID); r >= 0 {
		end.Ranks = []int64{r}
		end.Sentence = strings.TrimSuffix(end.Sentence, ".") + ", of the process of " + human.Ranks(end.Ranks) + "."
		return end
	}
	// The only rank whose own call of CUDA failed is the rank of the GPU, unless the two lines are of different hosts.
	failed := j.of(events.ClassCUDAError, events.ClassECC)
	elsewhere := slices.ContainsFunc(failed, func(o *Event) bool { return o.Host != "" && e.Host != "" && o.Host != e.Host })
	if ranks := j.ranksOf(failed); broken(e) && len(ranks) == 1 && !elsewhere {
		end.Ranks = ranks
		end.Sentence = strings.TrimSuffix(end.Sentence, ".") + "; CUDA failed on " + human.Ranks(ranks) + " alone."
	}
	return end
}

// ranksOf are the known global ranks that printed some events, sorted.
func (j *judge) ranksOf(all []*Event) (ranks []int64) {
	for _, e := range all {
		if r := j.rankOf(e); r >= 0 {
			ranks = append(ranks, r)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// rankOfProcess is the global rank of a process by process id, from the line of the launcher that reaped the process; -1: unknown. Lines of the kernel have the
// process id alone.
func (j *judge) rankOfProcess(pid int64) int64 {
	for _, e := range j.all {
		if r := j.rankOfSummary(e); e.Class == events.ClassSummary && pid != 0 && e.PID == pid && r >= 0 {
			return r
		}
	}
	return -1
}

// hosts is the host of an event as a list; nil: unknown.
func hosts(e *Event) []string {
	if e.Host == "" {
		return nil
	}
	return []string{e.Host}
}

// hostOOM describes the end of the host's or the cgroup's memory: the process that the kernel killed, with the rank if known.
func (j *judge) hostOOM(e *Event) End {
	end := End{Kind: string(e.Class), Hosts: hosts(e), Certain: true, Sentence: "The host's memory, or that of its cgroup, ran out" + j.where(e)}
	if e.Process != "" {
		end.Sentence += ": the kernel killed " + e.Process + " (process " + strconv.FormatInt(e.PID, 10) + ")"
	}
	if e.Step != "" {
		end.Sentence += ", in Slurm step " + e.Step
	}
	if e.Rank >= 0 && e.Exception != "" { // a MemoryError, printed by the rank
		j.name(&end, e, func(o *Event) bool { return o.Class == e.Class })
	}
	if r := j.rankOfProcess(e.PID); r >= 0 {
		end.Ranks = []int64{r}
	}
	if len(end.Ranks) > 0 {
		end.Sentence += ", " + human.Ranks(end.Ranks)
	}
	end.Sentence += "."
	end.Advice = "Ask for more memory, or use fewer data-loader workers."
	return end
}

// mismatch describes ranks that called different collectives. A line with a rank and a peer names both, neither as wrong.
func (j *judge) mismatch(e *Event) End {
	// A line with ranks comes from a comparison of what the ranks call (PyTorch's ProcessGroupWrapper). Any other line is of one rank, which has received data
	// that does not fit its call: a damaged message would look the same.
	end := End{Kind: string(e.Class), Certain: len(e.Ranks) > 0, Sentence: "Ranks of a group called different collectives"}
	if byDumps, ok := j.dumps(e); ok && byDumps.Kind == end.Kind {
		return byDumps
	}
	if peer, err := strconv.ParseInt(e.Peer, 10, 64); err == nil && len(e.Ranks) == 1 {
		end.Ranks = []int64{e.Ranks[0], peer}
		slices.Sort(end.Ranks)
		end.Sentence = capital(human.Ranks(end.Ranks)) + " called different collectives"
		if e.Seq >= 0 {
			end.Sentence += " at number " + human.Thousands(e.Seq)
		}
	}
	end.Sentence += "; no log says which of them is wrong."
	end.Advice = "Compare what both ranks do in that step: a batch without images, a branch, a shape."
	return end
}

// inUse is the error of a port that another process has (errno 98 of Linux).
var inUse = regexp.MustCompile(`EADDRINUSE|[Aa]ddress already in use`)

// network describes a failed connection by both ends. A peer is written by NCCL as "10.0.0.2<50342>", address and port.
func (j *judge) network(e *Event) End {
	end := End{Kind: string(e.Class), Hosts: hosts(e), Sentence: "The network failed"}
	switch r := j.rankOf(e); {
	case e.Host != "":
		end.Sentence = "Host " + e.Host + " reports a failure of the network"
	case r >= 0:
		end.Sentence = capital(human.Ranks([]int64{r})) + " reports a failure of the network"
	}
	if e.Peer != "" {
		end.Sentence += ", on the way to " + e.Peer
		end.Hosts = append(end.Hosts, strings.SplitN(e.Peer, "<", 2)[0])
	}
	end.Sentence += ": " + cmp.Or(strings.TrimRight(e.What, ". "), clean(e.Text)) + "."
	end.Advice = "Look at the link between both ends: cable, switch port, GID, firewall; the end that reports is seldom the one that failed."
	if down := j.linkDown(e); down != nil {
		of := when(down.Host != "", "of "+down.Host+" ", "")
		end.Sentence += " The kernel's log " + of + "says before: mlx5_core " + down.Bus + " " + down.What + ": Link down."
	}
	if inUse.MatchString(e.Text) {
		end.Sentence = strings.Replace(end.Sentence, "The network failed", "A port is in use", 1)
		end.Sentence = strings.Replace(end.Sentence, " reports a failure of the network", " cannot listen on a port in use", 1)
		end.Advice = "End the process that has the port, perhaps of an earlier job, or choose another port (MASTER_PORT, --rdzv-endpoint)."
	}
	if e.Form.Name == "pytorch.clients" {
		end.Sentence, end.Advice = "Not all processes came to the start: "+e.What+".", startAdvice
	}
	if e.Form.Name == "nccl.no_interface" {
		end.Advice = "Set NCCL_SOCKET_IFNAME to an interface that the host has (ip addr)."
	}
	return end
}

// linkDown is the last line of a kernel about a link that went down in the ten minutes before a failure of the network, and was not up again; nil: none.
func (j *judge) linkDown(e *Event) (down *Event) {
	const before = int64(600e9)
	at := e.Time
	for _, o := range j.all { // NCCL's lines may lack a time: the next event of the log has one
		if at == 0 && o.order > e.order && o.At.File == e.At.File {
			at = o.Time
		}
	}
	for _, o := range j.all {
		if o.Form.Name == "kernel.link_down" && o.Time != 0 && at >= o.Time-soon && at-o.Time < before {
			down = o
		}
	}
	return down
}

// goneWords are the sentences of forms that say more than that a process is gone, or less.
var goneWords = map[string]string{
	"ray.gcs_lost":          "Ray's control process (GCS) did not answer, and processes that need it gave up; no log says why.",
	"ray.actor_unavailable": "Ray could not reach an actor; no log says whether its process is gone.",
	"kubernetes.node":       "Kubernetes reports that a pod's node was not ready; no log says why.",
}

// gone describes a vanished process, in the words of whoever missed the process.
func (j *judge) gone(e *Event) End {
	switch {
	case strings.HasPrefix(e.Form.Name, "slurm.node_fail"):
		return j.nodeFailed(e)
	case e.Form.Name == "slurm.launch_failed":
		return j.notLaunched(e)
	case e.Form.Name == "ray.node_died":
		return j.nodeDied(e)
	case goneWords[e.Form.Name] != "":
		return End{
			Kind: string(e.Class), Hosts: hosts(e), Ranks: e.Ranks, Sentence: goneWords[e.Form.Name],
			Advice: "Look at the log of the other side, and at the kernel log of its host.",
		}
	}
	e = j.fullest(e)
	end := End{Kind: string(e.Class), Hosts: hosts(e), Ranks: e.Ranks, Sentence: "A process disappeared"}
	switch {
	case e.Process != "":
		end.Sentence = e.Process + " disappeared"
	case len(e.Ranks) > 0:
		end.Sentence = "The process of " + human.Ranks(e.Ranks) + " disappeared"
	}
	if e.Form.Name == "datasets.map_died" {
		end.Sentence += " " + e.What
	}
	if e.PID != 0 {
		end.Sentence += " (process " + strconv.FormatInt(e.PID, 10) + ")"
	}
	if e.Host != "" {
		end.Sentence += " on host " + e.Host
	}
	switch {
	case e.Form.Name == "jax.restarted":
		end.Sentence += ", and a new one took its place"
	case e.What != "" && e.Form.Name == "dlrover.failed":
		end.Sentence += " (" + e.What + ", says DLRover)"
	}
	end.Sentence += "; no log says why."
	end.Advice = "Look at the log of that worker, and at the kernel log of its host."
	return end
}

// notLaunched describes nodes on which srun could not start the tasks of a step.
func (j *judge) notLaunched(e *Event) End {
	end := End{
		Kind: string(e.Class), Certain: true, Hosts: j.hostsOf(e.Form.Name),
		Advice: "Look at slurmd's log on that node, and try srun there alone; drain the node if it does not answer.",
	}
	const most = 4
	named := strings.Join(end.Hosts[:min(len(end.Hosts), most)], ", ") + when(len(end.Hosts) > most, " and others", "")
	end.Sentence = "srun could not start the tasks on " + named + ": " + strings.TrimRight(e.What, ". ") + "."
	return end
}

// hostsOf are the hosts of all events of a form, each once.
func (j *judge) hostsOf(form string) (all []string) {
	for _, o := range j.all {
		if o.Form.Name == form && !slices.Contains(all, o.Host) {
			all = append(all, o.Host)
		}
	}
	return all
}

// fullest is the event of the same vanished process whose line has the process id: Ray prints why an actor is dead before or after the line with its id.
func (j *judge) fullest(e *Event) *Event {
	if e.PID != 0 || !strings.HasPrefix(e.Form.Name, "ray.") {
		return e
	}
	for _, o := range j.all {
		if o.Form.Name == "ray.actor_died" && o.PID != 0 && !j.longAfter(e, o) {
			return o
		}
	}
	return e
}

// nodeDied describes nodes from which Ray's GCS had no more heartbeats.
func (j *judge) nodeDied(e *Event) End {
	end := End{Kind: string(e.Class), Advice: "Look at raylet.out and the kernel log of that host."}
	for _, o := range j.all {
		if o.Form.Name == e.Form.Name && o.Host != "" && !slices.Contains(end.Hosts, o.Host) {
			end.Hosts = append(end.Hosts, o.Host)
		}
	}
	end.Sentence = "Ray lost a node"
	if len(end.Hosts) > 0 {
		end.Sentence = "Ray lost " + strings.Join(end.Hosts, ", ")
	}
	end.Sentence += ", which sent no more heartbeats; no log says why."
	return end
}

// nodeFailed describes a node that Slurm lost. slurmstepd's line is written by a node that lives, and srun's names the node that failed.
func (j *judge) nodeFailed(e *Event) End {
	end := End{
		Kind: string(e.Class), Hosts: j.hostsOf("slurm.node_fail"), Advice: "Look at the node's kernel log and at slurmctld's log; drain the node.",
	}
	end.Certain = len(end.Hosts) > 0
	end.Sentence = "Slurm ended the job because a node failed: " + clean(e.Text) + "."
	if end.Certain {
		end.Sentence = "Slurm reports that the node failed: " + strings.Join(end.Hosts, ", ") + "."
	}
	return end
}

// peer describes a closed connection: the far end closed first, or the network failed. If the dumps name a rank, their conclusion is the result instead.
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
	end.Sentence += "; no log says which process ended first."
	end.Advice = "Look at the logs of the other ranks: the first that died wrote why."
	return end
}

// scheduler describes an end from outside: the time limit, a cancellation, Slurm's preemption, Ctrl-C.
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
		end.Sentence = "Somebody interrupted the job (SIGINT)"
	case pod(e):
		end.Hosts = hosts(e)
		end.Sentence = "Kubernetes " + when(e.Form.Name == "kubernetes.preempted", "preempted", "evicted") + " the pod " + e.Host +
			": " + clean(cmp.Or(e.What, e.Text)) + "."
		return end
	}
	end.Sentence += ": " + clean(e.Text) + "."
	return end
}

// behind describes a line that names the ranks behind, as torch's monitored_barrier, Horovod and JAX write.
func (j *judge) behind(e *Event) End {
	slices.Sort(e.Ranks)
	return End{
		Kind: string(e.Class), Certain: true, Ranks: e.Ranks,
		Sentence: capital(human.Ranks(e.Ranks)) + " did not reach the collective in which the others waited.",
		Advice:   "Look at what that rank did last: its own log, a stack trace (py-spy).",
	}
}

// signal describes a process that died by a signal, as its own output says. A rank is named if no second rank died likewise, by the output or else by
// launchers (reaped), and never for SIGTERM (15) and SIGINT (2), by which launchers end all ranks.
func (j *judge) signal(e *Event) End {
	end := End{Kind: kindOfSignal(e.Signal), Sentence: "A process"}
	if e.PID != 0 {
		end.Sentence = "Process " + strconv.FormatInt(e.PID, 10)
	}
	end.Sentence += j.where(e) + killedBy(e.Signal)
	if e.Signal != 15 && e.Signal != 2 {
		j.name(&end, e, func(o *Event) bool { return o.Class == e.Class && o.Signal == e.Signal })
		if rank := j.reaped(func(o *Event) bool { return o.Signal == e.Signal }); len(end.Ranks) == 0 && rank >= 0 {
			end.Ranks = []int64{rank}
			end.Sentence = strings.Replace(end.Sentence, killedBy(e.Signal), " ("+human.Ranks(end.Ranks)+")"+killedBy(e.Signal), 1)
		}
	}
	return end
}

// reaped is the global rank of the only process that a launcher says died, among events that of wants; -1: no launcher says so, several died, or one of unknown
// rank did.
func (j *judge) reaped(of func(*Event) bool) int64 {
	rank := int64(-1)
	named := make(map[int64]bool) // processes whose rank some launcher's line tells
	for _, e := range j.all {
		if e.Class != events.ClassSummary || !of(e) {
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
		// A further process died likewise, and no line has the rank.
		if e.Class == events.ClassSummary && of(e) && j.rankOfSummary(e) < 0 && !named[e.PID] {
			return -1
		}
	}
	return rank
}

// rankOfSummary is the global rank of the process reaped by a launcher; -1: unknown.
func (j *judge) rankOfSummary(e *Event) int64 {
	switch {
	case e.Form.Name == "slurm.task_exit": // Slurm's task number: where each task is a launcher, the number of a node
		return -1
	case len(e.Ranks) == 1:
		return e.Ranks[0]
	case j.oneNode():
		return e.Local
	}
	return -1
}

// kindOfSignal is the kind of an end by a signal. SIGINT (2) is Ctrl-C.
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

// crashed says whether a process itself causes the signal: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
func crashed(signal int64) bool { return slices.Contains([]int64{4, 6, 7, 8, 11}, signal) }

// killedBy ends the sentence of a process that died by a signal; 0: not known which.
func killedBy(signal int64) string {
	name := cmp.Or(events.SignalName(signal), "a signal"+when(signal != 0, " ("+strconv.FormatInt(signal, 10)+")", ""))
	if crashed(signal) {
		return " crashed (" + name + ")."
	}
	return " was killed by " + name + "; no log says by whom."
}

// summary describes an end that only a launcher's line tells of: the first process reaped, with the signal or exit code (exit). The rank is named if no second
// process died by the signal (reaped), except for SIGABRT.
func (j *judge) summary(e *Event) End {
	if e.Signal == 0 {
		return j.exit(e)
	}
	for _, o := range j.all { // MPICH's line above has the process, with the signal's number as its exit code
		if e.Form.Name == "hydra.exit_string" && o.Form.Name == "hydra.terminated" && o.Code == e.Signal {
			e.PID, e.Host = o.PID, o.Host
		}
	}
	end := End{Kind: kindOfSignal(e.Signal), Hosts: hosts(e)}
	rank := j.reaped(func(o *Event) bool { return o.Signal == e.Signal })
	end.Sentence = "A process"
	switch {
	case e.PID != 0:
		end.Sentence = "Process " + strconv.FormatInt(e.PID, 10)
	case e.Form.Name == "slurm.task_exit":
		end.Sentence, end.Hosts = j.tasks(e)
	}
	if rank >= 0 && e.Signal != 6 { // SIGABRT: a watchdog ends waiting ranks too
		end.Ranks = []int64{rank}
		end.Sentence += " (" + human.Ranks(end.Ranks) + ")"
	}
	end.Sentence += killedBy(e.Signal)
	end.Advice = "Look at the kernel log of the host for the memory killer, and at the scheduler."
	if crashed(e.Signal) {
		end.Advice = "Look for a stack trace in the output of that process, and at the kernel log of its host."
	}
	return end
}

// tasks are the tasks of Slurm that died by the signal of e, by srun's lines, "Task 1 (host node01)". Their host, if they have a single one, is named.
func (j *judge) tasks(e *Event) (who string, hosts []string) {
	var all []string
	for _, o := range j.all {
		if o.Form == e.Form && o.Signal == e.Signal {
			all = append(all, o.Process+" (host "+o.Host+")")
			hosts = append(hosts, o.Host)
		}
	}
	slices.Sort(hosts)
	if hosts = slices.Compact(hosts); len(hosts) > 1 {
		hosts = nil
	}
	const most = 4
	if len(all) > most {
		all = append(all[:most], "…")
	}
	return when(len(all) == 1, "Task ", "Tasks ") + strings.Join(all, ", "), hosts
}

// exit describes a process that ended with an exit code, from the line of the launcher: an exception for 1, else a process gone. The rank is named if no second
// one failed (onlyFailed).
func (j *judge) exit(e *Event) End {
	kind := events.ClassGone
	if e.Code == 1 {
		kind = events.ClassException // the interpreter's exit code for an uncaught exception
	}
	end := End{Kind: string(kind), Sentence: "A process ended with exit code " + strconv.FormatInt(e.Code, 10) + "; its own output is not in these logs."}
	if e.PID != 0 {
		end.Sentence = "Process " + strconv.FormatInt(e.PID, 10) + " ended with exit code " + strconv.FormatInt(e.Code, 10) +
			when(e.Form.Name != "torchrun.failure", ", the first that its launcher saw end", "") + "; its own output is not in these logs."
	}
	if r := j.onlyFailed(); r >= 0 {
		end.Ranks = []int64{r}
		end.Sentence = strings.Replace(end.Sentence, " ended with", " ("+human.Ranks(end.Ranks)+") ended with", 1)
	}
	if name := events.SignalName(e.Code - 128); name != "" {
		code := "exit code " + strconv.FormatInt(e.Code, 10)
		end.Sentence = strings.Replace(end.Sentence, code, code+" (128 + "+strconv.FormatInt(e.Code-128, 10)+": "+name+")", 1)
	}
	if e.Form.Name == "horovod.exit" && e.Host != "" {
		end.Sentence = strings.Replace(end.Sentence, " ended with", " on host "+e.Host+" ended with", 1)
	}
	end.Advice = "Look at the output of each rank: torchrun --log-dir, or --tee 3."
	return end
}

// onlyFailed is the global rank of the only failed process in launchers' lines; -1: none, or several. Where ranks waited for each other the result is -1 too:
// the process reaped first may have given up waiting. Lines with neither rank nor process, such as srun's of a launcher, do not count, and processes ended by
// SIGTERM (15) did not fail.
func (j *judge) onlyFailed() int64 {
	for _, e := range j.all {
		switch e.Class {
		case events.ClassTimeout, events.ClassPeer, events.ClassNCCL, events.ClassBehind:
			return -1
		}
	}
	return j.reaped(func(e *Event) bool { return e.Signal != 15 && (e.PID != 0 || j.rankOfSummary(e) >= 0) })
}

// exception describes a traceback: the ranks, the exception, the place. A rank is named if no second rank raised the same exception.
func (j *judge) exception(e *Event) End {
	end := End{Kind: string(e.Class)}
	same := func(o *Event) bool { return o.Class == e.Class && o.Exception == e.Exception }
	ranks := j.who(same, e)
	what, at, verb := e.Exception, e.Last.String(), " raised "
	switch {
	case what == "" && at != "": // the traceback is truncated
		what = "an exception without a name in the log"
	case what == "": // the line of a form, without its traceback
		verb, what = " failed: ", strings.TrimRight(cmp.Or(e.What, clean(e.Text)), "., ")
	case e.What != "":
		what += ": " + strings.TrimRight(e.What, ". ")
	}
	switch {
	case len(ranks) > 1:
		end.Sentence = human.Thousands(len(ranks)) + " ranks" + verb + what
	case len(ranks) == 1:
		end.Sentence = "Rank " + human.Thousands(ranks[0]) + verb + what
		if e.Exception != "" || e.What != "" { // where the end is missing, the lines of other ranks may be missing too
			j.name(&end, e, same)
		}
	default:
		end.Sentence = "The program" + verb + what
	}
	if at != "" {
		end.Sentence += ", at " + at
	}
	end.Sentence += "."
	end.Advice = adviceOn[e.Form.Name]
	return end
}

// adviceOn is what to do about the exceptions of a form.
var adviceOn = map[string]string{
	"python.disk_full":   "Free space on that file system, or save elsewhere: until then a restart fails at the next save.",
	"python.disk_quota":  "Free space, or have the quota raised: until then a restart fails at the next save.",
	"python.stale":       "Look at the file server and its mounts: the file was replaced or removed, or the server started anew. A restart opens the files again.",
	"python.torch_load":  "That file is damaged or incomplete, and a restart fails alike: load an older checkpoint.",
	"python.safetensors": "That file is damaged or incomplete, and a restart fails alike: load an older checkpoint.",
	"python.arguments":   "Mend the command line; a restart fails alike.",
	"cuda.driver_old":    "Take an image with an older CUDA, or a newer driver on that host; a restart there fails alike.",
}

// timeout describes ranks that gave up waiting in a collective. Who was behind is told by dumps, or by the watchdogs' lines if all ranks of the job have
// printed how many collectives they have enqueued: the ranks with the lowest number, if not all have the same.
func (j *judge) timeout(e *Event) End {
	if end, ok := j.dumps(e); ok {
		return end
	}
	end := End{Kind: string(e.Class)}
	counts := make(map[int64]*Event) // the last line of each rank of the group, by rank of the group
	group := j.groupOf(e)
	for _, o := range j.all {
		if o.Class == events.ClassTimeout && o.Enqueued >= 0 && o.Group == group && o.GroupRank >= 0 {
			counts[o.GroupRank] = o
		}
	}
	waiting := j.who(func(o *Event) bool { return o.Class == events.ClassTimeout }, e)
	end.Heard, end.Of = int64(len(waiting)), j.WorldSize
	op := "" // the collective of the wait
	for _, o := range j.all {
		if o.Class == events.ClassTimeout && o.Op != "" && (o.Group == group || o.Group == "" || group == "") {
			op = o.Op
			break
		}
	}
	if e.Form.Name == "pytorch.store_barrier" { // "store based barrier", with the number of ranks that came
		op += ", " + e.What
	}
	end.Sentence = "Ranks waited in a collective" + when(op != "", " ("+op+")", "") + " until they gave up"
	switch e.Form.Name {
	case "acl.wait", "acl.sync":
		end.Sentence = "A wait for the device timed out"
	case "horovod.waiting": // a warning, from 60 seconds on
		end.Sentence = "Ranks waited in a collective for ranks that did not come"
	}
	if behind, least := j.fewest(counts, group); len(behind) > 0 {
		end.Kind, end.Ranks, end.Certain = string(events.ClassBehind), behind, j.WorldSize > 0
		// The ranks behind have enqueued up to least: the work after is the one in question.
		end.Sentence = capital(human.Ranks(behind)) + " did not finish enqueueing work " + human.Thousands(least+1) + ", in which the others waited"
	}
	if len(waiting) > 0 && end.Kind == string(e.Class) { // nobody was found behind
		end.Sentence += ", as " + human.Ranks(waiting)
		if j.WorldSize > 0 {
			end.Sentence += " of " + human.Thousands(j.WorldSize)
		}
		end.Sentence += when(len(waiting) == 1, " says", " say")
		end.Sentence += j.unheard(e, waiting, group)
	}
	end.Sentence += "."
	end.Advice = "Collect the Flight Recorder's dumps of all ranks (TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_NCCL_DUMP_ON_TIMEOUT): they say which rank is behind."
	if e.Form.Name == "pytorch.store_barrier" {
		end.Advice = startAdvice
	}
	return end
}

// fewest returns the ranks of a group that have enqueued the fewest works (behind, in rising order), and the number of these works (least). counts has the last
// line of each rank that told its number of works, by rank of the group.
//
// behind is empty if no rank can be named:
//   - Not every rank of the job has told: a silent rank may be further behind. A smaller group than the job is no use either, as its rank numbers are not the
//     job's. Where the size of the job is unknown, default_pg, the group of all ranks, counts as complete if each rank up to the highest has told.
//   - All ranks have enqueued the same number of works.
//   - Most ranks wait for a work that a rank ahead has completed: the few ahead called something else, or a message was lost.
func (j *judge) fewest(counts map[int64]*Event, group string) (behind []int64, least int64) {
	size := j.WorldSize // ranks of the job; 0: unknown
	if size == 0 && strings.Contains(group, "default_pg") && len(counts) > 2 {
		// Ranks count from 0. Lines of one or two ranks are too few to infer the size of the job.
		size = slices.Max(slices.Collect(maps.Keys(counts))) + 1
	}
	if size == 0 || int64(len(counts)) != size {
		return nil, 0
	}
	least = math.MaxInt64
	for _, o := range counts {
		least = min(least, o.Enqueued)
	}
	// Of work number least, the last work of the ranks behind: waiting, if a rank behind has not completed the work; done, if a rank ahead has.
	waiting, done := false, false
	for r, o := range counts {
		if o.Enqueued > least {
			done = done || o.Completed >= least
			continue
		}
		behind = append(behind, r)
		waiting = waiting || o.Completed >= 0 && o.Completed < least // Completed is -1 if the line does not tell
	}
	allEven := len(behind) == len(counts)
	// For example ranks 0 to 6 of 8 wait for work 10, their last, and rank 7 has completed its work 10 and enqueued work 11.
	mostWait := waiting && done && 2*len(behind) > len(counts)
	if allEven || mostWait {
		return nil, 0
	}
	slices.Sort(behind)
	return behind, least
}

// groupOf is the process group of a wait. The line that tells of the collective may lack the group, which the rank's next lines have; "": no line has a group.
func (j *judge) groupOf(e *Event) string {
	for _, o := range j.all {
		if o.order >= e.order && o.Class == events.ClassTimeout && o.Group != "" && (e.Group == "" || o == e) && j.rankOf(o) == j.rankOf(e) {
			return o.Group
		}
	}
	return e.Group
}

// quiet is the only rank of the job without a word of the wait that all others, at least two, told of; -1: several ranks are silent. The watchdog of a rank
// behind says nothing, because that rank waits for nothing; but a rank whose log is missing is silent too, so silence is a hint, and names nobody as the cause.
// Of a job whose size no log tells, the ranks of default_pg are those up to the highest. waiting is sorted.
func (j *judge) quiet(waiting []int64, group string) int64 {
	size := j.WorldSize
	if size == 0 && strings.Contains(group, "default_pg") {
		size = waiting[len(waiting)-1] + 1
	}
	if size < 3 || int64(len(waiting)) != size-1 || waiting[len(waiting)-1] >= size {
		return -1
	}
	for i, r := range waiting {
		if r != int64(i) {
			return int64(i)
		}
	}
	return size - 1
}

// unheard continues a sentence about ranks that waited with those that did not tell of the wait.
func (j *judge) unheard(e *Event, waiting []int64, group string) string {
	if e.Form.Name == "pytorch.store_barrier" {
		if _, _, missing := j.barrier(); len(missing) > 0 {
			return absentFrom(missing)
		}
	}
	if mute := j.mute(waiting); len(mute) > 0 {
		return "; " + human.Ranks(mute) + ", with steps before, " + when(len(mute) == 1, "is", "are") + " silent" + j.inLog(mute) + ": behind, gone, or frozen"
	}
	if silent := j.quiet(waiting, group); silent >= 0 {
		return "; " + human.Ranks([]int64{silent}) + " alone is silent: behind, gone, or without a log here"
	}
	return "; no log says which rank was behind"
}

// mute are the ranks that had steps and did not tell of the wait that most of the others, at least two, told of, sorted; empty: none, or no minority. As with
// quiet that is a hint, and names nobody as the cause.
func (j *judge) mute(waiting []int64) (all []int64) {
	for r := range j.Stepping {
		if !slices.Contains(waiting, r) {
			all = append(all, r)
		}
	}
	if len(waiting) < 2 || 2*len(all) >= len(j.Stepping) {
		return nil
	}
	slices.Sort(all)
	return all
}

// inLog is " (in LOG)" where the steps of all these ranks, and of no others, are in a single log of several; else "".
func (j *judge) inLog(ranks []int64) string {
	log := j.Stepping[ranks[0]]
	for r, of := range j.Stepping {
		if slices.Contains(ranks, r) != (of == log) {
			return ""
		}
	}
	return " (" + filepath.Base(log) + ")"
}

// closing are the forms in which launchers end the processes that are left after the failure of one.
var closing = []string{"torchrun.closing", "deepspeed.killing", "composer.closing"}

// notUnderstood is the last rule: of fatal lines without weight, the first Xid or death by a signal is described, else the first line of another fatal class is
// quoted as it is.
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
			pod := strings.HasPrefix(e.Form.Name, "kubernetes.")
			if pod && j.LastStep >= 0 { // pods wait for a node, or an image, before many a run
				continue
			}
			sentence := "The run ends in an error that trainbridge does not know: " + clean(e.Text) + "."
			switch {
			case slices.Contains(closing, e.Form.Name):
				sentence = "A launcher ended the processes that were left; no log says which had failed, or why: " + clean(e.Text) + "."
			case pod:
				sentence = "Kubernetes could not start a pod: " + clean(cmp.Or(e.What, e.Text)) + "."
			}
			return End{Kind: KindNotUnderstood, Evidence: j.lines([]*Event{e}), Time: e.Time, Sentence: sentence}, true
		}
	}
	return End{}, false
}

// silent is the end of logs that just stop: no rule has found its evidence. A trainer's record of the whole run says that training is done.
func (j *judge) silent() End {
	if j.Finished != nil {
		return End{
			Kind: KindHealthy, Certain: true, Sentence: "The log says that training is done.",
			Evidence: []Evidence{{*j.Finished, recordText}},
		}
	}
	end := End{Kind: KindSilent, Sentence: "The log just stops: the job was killed, or still runs."}
	switch {
	case j.Planned > 0 && j.LastStep >= j.Planned:
		end.Sentence = "The log ends at the last planned step, " + human.Thousands(j.LastStep) + " of " + human.Thousands(j.Planned) +
			", and does not say that training is done."
	case j.LastStep >= 0:
		end.Sentence = "The log just stops at step " + human.Thousands(j.LastStep) + ": the job was killed, or still runs."
	}
	if end.Remark = j.storage(); end.Remark == "" && len(j.strange) > 0 {
		end.Remark = "The kernel's log has an error of a process whose name is none of the job's: " + clean(j.strange[0].Text) + "."
	}
	return end
}

// storage says which file servers the kernel waits for, or which threw a client out, as a sentence; "": none.
func (j *judge) storage() string {
	for _, e := range j.all {
		host := when(e.Host != "", " (host "+e.Host+")", "")
		switch e.Form.Name {
		case "kernel.lustre_evicted":
			return "Lustre's " + e.What + " evicted the client" + host + ": what was written or read there failed."
		case "kernel.nfs":
			return "The NFS server " + e.Peer + " did not respond" + host + ", says the kernel."
		case "kernel.lustre_lost":
			return "The connection to Lustre's " + e.What + " was lost" + host + ", says the kernel."
		}
	}
	return ""
}

// frozen describes a process that hangs in the kernel, with the file server that the kernel waits for.
func (j *judge) frozen(e *Event) End {
	end := j.plain(e)
	if wait := j.storage(); wait != "" {
		end.Sentence += " " + wait
		end.Advice = "Look at the file server, and at the network on the way there."
		return end
	}
	end.Advice = "Look at the call trace below that line in the kernel log: it says what the process waits for."
	return end
}

// starting is the rule for logs whose last words are of ranks that wait for the others before the first step, in PyTorch's store based barrier.
func (j *judge) starting() (End, bool) {
	if j.Stepped {
		return End{}, false
	}
	if meeting := slices.IndexFunc(j.all, func(e *Event) bool { return e.Form.Name == "torchrun.meeting" }); meeting >= 0 {
		return End{
			Kind: KindWaiting, Time: j.all[meeting].Time, Evidence: j.evidence(j.all[meeting]), Advice: startAdvice,
			Sentence: "torchrun waits for other nodes before the first step: the rendezvous is not complete, by the last words of the log.",
		}, true
	}
	i := len(j.all) - 1
	for i >= 0 && j.all[i].Form.Name != "pytorch.store_waiting" {
		i--
	}
	if i < 0 {
		return End{}, false
	}
	e := j.all[i]
	if slices.ContainsFunc(j.all, func(o *Event) bool { return o.Form.Name == "pytorch.store_passed" && o.Process == e.Process }) {
		return End{}, false
	}
	size, came, missing := j.barrier()
	if came >= size {
		return End{}, false
	}
	end := End{
		Kind: KindWaiting, Heard: came, Of: size, Time: e.Time, Evidence: j.evidence(e),
		Sentence: "Ranks wait before the first step for others to start (" + e.Op + "): " + human.Thousands(came) + " of " + human.Thousands(size) + " have come",
		Advice:   startAdvice,
	}
	end.Sentence += absentFrom(missing) + "."
	return end, true
}

// absentFrom continues the sentence of a store based barrier with the ranks without a line of the barrier; "": none.
func absentFrom(missing []int64) string {
	if len(missing) == 0 {
		return ""
	}
	return "; " + human.Ranks(missing) + when(len(missing) == 1, " has", " have") + " no line of it: not started, gone, or without a log here"
}

const startAdvice = "See whether the processes of all ranks started, with the same address of the first, and look at their logs."

// storeCounts are the ranks of a store based barrier, and how many have come.
var storeCounts = regexp.MustCompile(`world_size=(\d+), \w+=(\d+)`)

// barrier is how many ranks a store based barrier waits for, how many came, and the ranks without a line of it, if as many as did not come.
func (j *judge) barrier() (size, came int64, missing []int64) {
	told := make(map[int64]bool)
	for _, o := range j.all {
		if o.Form.Name != "pytorch.store_waiting" && o.Form.Name != "pytorch.store_barrier" {
			continue
		}
		if m := storeCounts.FindStringSubmatch(o.What); m != nil {
			size, _ = strconv.ParseInt(m[1], 10, 64)
			n, _ := strconv.ParseInt(m[2], 10, 64)
			came = max(came, n)
		}
		told[o.GroupRank] = true
		for _, r := range o.Ranks {
			told[r] = true
		}
	}
	const most = 64
	for r := range size {
		if !told[r] && len(missing) < most {
			missing = append(missing, r)
		}
	}
	if int64(len(missing)) != size-came {
		missing = nil
	}
	return size, came, missing
}

// finish adds to an end how long ranks stood in collectives that timed out: the longest wait of each rank, added up.
func (j *judge) finish(end *End) {
	longest := make(map[int64]int64) // ms, by rank; unknown ranks count as one
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

// recordText stands for the line of a trainer's record of the whole run.
const recordText = "the trainer's record of the whole run"

// maxEvidence bounds the lines of an end.
const maxEvidence = 8

// evidence are the lines of a first cause and of what came after, at most maxEvidence: the first line of each form, no warnings.
func (j *judge) evidence(first *Event) []Evidence {
	list := []*Event{first}
	seen := map[string]bool{first.Form.Name: true}
	for _, e := range j.all {
		if e.order > first.order && !seen[e.Form.Name] && e.Class != events.ClassWarning && e.Form.Name != "python.went_on" {
			seen[e.Form.Name] = true
			list = append(list, e)
		}
	}
	return j.lines(list)
}

// lines are the first maxEvidence events of a list as evidence.
func (j *judge) lines(list []*Event) (all []Evidence) {
	for _, e := range list[:min(len(list), maxEvidence)] {
		all = append(all, Evidence{e.At, e.Text})
	}
	return all
}

// when is s if yes, else the other text.
func when(yes bool, s, other string) string {
	if yes {
		return s
	}
	return other
}

// clean makes a line of a log fit into a sentence: spaces put together, cut to 160 bytes, no full stop at its end.
func clean(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const most = 160
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.TrimRight(s, ". ")
}

// capital is s, which begins with an ASCII letter, with a capital.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
