package events

import "regexp"

// Class is the kind of evidence in a line. Claims has the possible conclusions from a class.
type Class string

// Classes down to ClassFrozen may be the cause of an end. ClassTimeout, ClassPeer and ClassSummary stand for a cause that no line names; the rest follow from
// an end, or describe the state of the run.
const (
	ClassCUDAError  Class = "cuda_error"
	ClassECC        Class = "gpu_ecc"
	ClassCUDAOOM    Class = "cuda_oom"
	ClassXid        Class = "xid"
	ClassHostOOM    Class = "host_oom"
	ClassMismatch   Class = "mismatch"
	ClassNetwork    Class = "network"
	ClassTimeLimit  Class = "time_limit"
	ClassCancelled  Class = "cancelled"
	ClassDataLoader Class = "data_loader"
	ClassCheckpoint Class = "checkpoint"
	ClassException  Class = "exception"
	ClassSignal     Class = "signal"
	ClassExit       Class = "exit"
	ClassGone       Class = "process_gone"
	ClassEngine     Class = "engine"
	ClassBehind     Class = "rank_behind"
	ClassNCCL       Class = "nccl_error"
	ClassDisk       Class = "disk_full"
	ClassFrozen     Class = "frozen_host"

	ClassTimeout  Class = "collective_timeout" // a rank gave up waiting in a collective
	ClassPeer     Class = "peer_gone"          // a connection to another process ended, or a resulting error of NCCL
	ClassSummary  Class = "summary"            // a launcher sums up the processes it reaped
	ClassTeardown Class = "teardown"           // somebody takes the others down
	ClassFatal    Class = "fatal"              // an error without a form
	ClassWarning  Class = "warning"            // jobs usually survive
	ClassWaiting  Class = "waiting"            // a process waits, or waits no longer; jobs usually go on

	// ClassSlowing is of what holds steps up for a while: the report explains slow steps by such lines.
	ClassSlowing Class = "slowing"

	// ClassStalled is of no line: step_join makes the event when steps stop coming.
	ClassStalled Class = "run_stalled"

	ClassBegan   Class = "began"   // a run, or an attempt, begins
	ClassEnded   Class = "ended"   // training is complete
	ClassExiting Class = "exiting" // a program is exiting

	ClassRAS Class = "nccl_ras" // of no line: the nccl receiver reads the state of a live job's ranks from NCCL's RAS
)

// Fatal reports whether an event of the class means that something failed.
func (c Class) Fatal() bool {
	switch c {
	case ClassWarning, ClassWaiting, ClassSlowing, ClassStalled, ClassRAS, ClassBegan, ClassEnded, ClassExiting:
		return false
	}
	return true
}

// Ends reports whether no further step is expected after an event of the class.
func (c Class) Ends() bool { return c.Fatal() || c == ClassEnded || c == ClassExiting }

// Stalled is the form of step_join's events for runs whose steps stop coming.
const Stalled = "trainbridge.run_stalled"

// Claims are the possible conclusions from an event of each class, with their limits.
var Claims = []struct {
	Class Class
	Claim string
}{
	{ClassCUDAError, "the GPU of the rank that printed the error; the rank, where its line says which"},
	{ClassECC, "the GPU of the rank that printed the error"},
	{ClassCUDAOOM, "the GPU memory of the rank that printed the error"},
	{ClassXid, "the GPU at the PCI address; fatal or not stands in the text; 45 follows from another error, 43 is the fault of a program"},
	{ClassHostOOM, "the host, the step of Slurm and the process that the kernel killed; a monitor's guess stays a guess"},
	{ClassMismatch, "both sides; not which of them is wrong"},
	{ClassNetwork, "the two ends of the link; not the end that reports it"},
	{ClassTimeLimit, "who ended the job, and when"},
	{ClassCancelled, "who ended the job, and when; a job is also cancelled after an error of its own"},
	{ClassDataLoader, "a worker of the data loader of the rank that printed the error"},
	{ClassCheckpoint, "the rank whose saving or loading failed"},
	{ClassException, "the rank that raised, where its line or its file says which; where all ranks raise the same, none"},
	{ClassSignal, "the process that died by the signal; not who sent it"},
	{ClassExit, "the process that exited, with its exit code"},
	{ClassGone, "the process that is gone; guesses of Ray stay guesses"},
	{ClassEngine, "the engine; its cause is elsewhere"},
	{ClassBehind, "the ranks that did not reach the collective, as the one who waited for all of them has counted"},
	{ClassNCCL, "that NCCL failed; not where"},
	{ClassDisk, "the file system that has no room left"},
	{ClassFrozen, "the process on that host that hangs in the kernel"},
	{ClassTimeout, "the rank that waited, which is no guilt; who is behind only from the counts of all ranks of the group, or their dumps"},
	{ClassPeer, "nobody: the other end went away first"},
	{ClassSummary, "the process that was reaped first, with its exit code; not guilt"},
	{ClassTeardown, "nothing: the end of somebody else comes first"},
	{ClassFatal, "the line"},
	{ClassWarning, "nothing: jobs go on after such a line"},
	{ClassWaiting, "what a process waits for, where that is the last word of the log"},
	{ClassSlowing, "what held steps up, of steps at the same time that took longer; jobs go on"},
	{ClassStalled, "that no step came for far longer than usual, and of which ranks a collective lacks records; not why"},
	{ClassBegan, "where a run, or an attempt, begins"},
	{ClassExiting, "where a program was on its way out"},
	{ClassEnded, "where training ended"},
	{ClassRAS, "of no line: what NCCL's RAS says of a live job. Who is behind, where all of the communicator stand still, which is no guilt; else nobody"},
}

// Form is a line printed by a writer.
type Form struct {
	Name   string // "pytorch.watchdog_timeout": stable, a label of metrics
	Writer string // the program that prints the line, and the file of its source
	Since  string // the first version known to print the line, and the last where another followed; "": unknown
	Class  Class
	// Text is a part of each such line, of at least 5 bytes: the first filter.
	Text string
	// Pattern is the regular expression of the line; "": Text is enough. Its named groups are for fields of Event: rank (global), tasks (of JAX, by global rank),
	// group_rank, local, pid, host, seq, op, enqueued, completed, ms, seconds, device, bus, peer, signal, code, xid, step, process, what.
	Pattern string
	// Open: the rest of the line may be on the following lines, because writers wrap it.
	Open bool
	// Example is such a line.
	Example string

	re     *regexp.Regexp // of Pattern; nil: none
	groups []string       // names of the groups of re, by index; "": without a name
}

// Forms are all forms. The first match wins.
var Forms = compile(pytorch, slurm, python, launchers, kernel, nccl, ray, engines, jax, ascend, trainers)

// compile joins the tables in the order of precedence and compiles the patterns.
func compile(tables ...[]Form) (all []*Form) {
	for _, table := range tables {
		for i := range table {
			f := &table[i]
			if f.Pattern != "" {
				f.re = regexp.MustCompile(f.Pattern)
				f.groups = f.re.SubexpNames()
			}
			all = append(all, f)
		}
	}
	return all
}
