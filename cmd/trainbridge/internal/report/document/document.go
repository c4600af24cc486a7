// Package document is a report for programs: a JSON document of the contents of finished logs. docs/reference/report.schema.json describes the document; the
// schema's texts come from the types here.
package document

import (
	"encoding/json"
	"math"
)

// Version of the document. It rises when a name goes away or changes meaning, not with new names.
const Version = 1

// Document is the whole report. The verdicts, up to a million, are written after the rest (writer.write).
type Document struct {
	Format  string   `json:"format" doc:"What this is: trainbridge.report."`
	Version int      `json:"version" doc:"1. It goes up when a name goes away or means something else, not when one is added."`
	Jobs    []Job    `json:"jobs" doc:"The jobs, by start."`
	Files   []File   `json:"files" doc:"All files that were named, by path."`
	Missing []string `json:"missing" doc:"Paths that name no file, each with the reason."`
}

// number is null in JSON unless finite.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// Evidence is where something can be seen.
type Evidence struct {
	What    string `json:"what,omitempty" doc:"What is there."`
	TraceID string `json:"trace_id" doc:"The trace: 32 hex digits, as a collector sends it."`
	SpanID  string `json:"span_id" doc:"The span in it."`
	Time    string `json:"time,omitempty" doc:"When it begins: RFC 3339, UTC."`
	File    string `json:"file,omitempty" doc:"The log."`
	Offset  *int64 `json:"offset,omitempty" doc:"Where the first line of its record begins in the log, By. Of a compressed log, in its content."`
	Line    int64  `json:"line,omitempty" doc:"The number of that line, from 1. Only of claims and of their causes."`
}

// Job is a run of a job.
type Job struct {
	Run           string         `json:"run" doc:"ml.run.id; empty: its logs name none."`
	Services      []string       `json:"services" doc:"service.name of its logs, by name."`
	Hosts         []string       `json:"hosts" doc:"Its hosts, as far as logs name them, by name."`
	Files         []string       `json:"files" doc:"Its logs."`
	First         string         `json:"first,omitempty" doc:"When its first record begins. Absent: its logs have no clock."`
	Last          string         `json:"last,omitempty" doc:"When its last record ends."`
	Spans         int64          `json:"spans" doc:"How many spans its logs make."`
	Conclusion    string         `json:"conclusion" doc:"What there is to say, in a sentence with numbers."`
	Severity      string         `json:"severity" doc:"Of the conclusion: good, warning or bad."`
	End           End            `json:"end" doc:"How the run ended."`
	Account       *Account       `json:"account,omitempty" doc:"Where the wall-clock time of its training went. Absent: no log tells of steps with times."`
	Claims        []Claim        `json:"claims" doc:"What the logs show, the most important first."`
	Untold        []string       `json:"untold" doc:"What is not known from these logs, and what would tell it."`
	Windows       []Window       `json:"windows" doc:"Where the time of steps, batches and passes went, by all logs together: those that hold others first."`
	Training      []Training     `json:"training" doc:"Training logs, by format."`
	TransferQueue *TransferQueue `json:"transferqueue,omitempty" doc:"The TransferQueue of verl."`
	RPC           *RPC           `json:"rpc,omitempty" doc:"RPCs of ZeroMQ."`
	Collectives   *Collectives   `json:"collectives,omitempty" doc:"Collectives of NCCL and VCCL."`
	Findings      []Finding      `json:"findings" doc:"The verdicts by name, the worst first."`
}

// End is how a run ended.
type End struct {
	Kind     string    `json:"kind" doc:"silent, healthy, after_end, not_understood, or what ended it (docs/reference/why-dead.md)."`
	Sentence string    `json:"sentence" doc:"What is told of it."`
	Certain  bool      `json:"certain" doc:"The evidence leaves a single explanation."`
	Ranks    []int64   `json:"ranks" doc:"The global ranks that the evidence names as the cause; none: it names none."`
	Hosts    []string  `json:"hosts" doc:"The hosts, likewise."`
	Step     *int64    `json:"step" doc:"The last step that the logs have; null: they have none."`
	Waited   number    `json:"waited_gpu_s" doc:"How long the other ranks waited, GPU-seconds; null: not known."`
	Advice   string    `json:"advice,omitempty" doc:"What to do."`
	Evidence []EndLine `json:"evidence" doc:"The lines that tell it, the first cause first."`
}

// EndLine is a line of a log.
type EndLine struct {
	File string `json:"file" doc:"The log."`
	Line int64  `json:"line" doc:"Its number, from 1; 0: not known."`
	Text string `json:"text" doc:"The line, without the prefixes of launchers; of a traceback the last one."`
}

// Claim is a finding of the logs.
type Claim struct {
	Kind     string     `json:"kind" doc:"wrong: results are lost, or the job stands; costly: time is lost; remark: worth a look."`
	About    string     `json:"about,omitempty" doc:"What was lost: slow, data_loading, checkpoint, down, …; absent: a verdict."`
	Text     string     `json:"text" doc:"A sentence with numbers."`
	Cost     number     `json:"cost_s" doc:"What it cost, s; null: not known."`
	Devices  number     `json:"device_cost_s" doc:"The same times the ranks, GPU-seconds; 0: their number is not known."`
	Advice   string     `json:"advice,omitempty" doc:"What to do."`
	Evidence []Evidence `json:"evidence" doc:"Where it can be seen."`
}

// Distribution has numbers with their quantiles.
type Distribution struct {
	Count int64  `json:"count" doc:"How many numbers."`
	Sum   number `json:"sum" doc:"Exact."`
	Mean  number `json:"mean" doc:"Exact."`
	Std   number `json:"std" doc:"Standard deviation, of all numbers (n)."`
	Min   number `json:"min" doc:"Exact."`
	P10   number `json:"p10" doc:"Quantiles, interpolated as numpy and pandas do."`
	P50   number `json:"p50" doc:"The median."`
	P90   number `json:"p90"`
	P95   number `json:"p95"`
	P99   number `json:"p99"`
	Max   number `json:"max" doc:"Exact."`
	Exact bool   `json:"exact" doc:"Whether the quantiles are exact; else they are within 1 %."`
}

// Account is where the wall-clock time of a run went. The states add up to wall_s.
type Account struct {
	Wall     number            `json:"wall_s" doc:"From the first line with a clock to the last, s."`
	Clock    bool              `json:"clock" doc:"false: no log has a clock, and wall_s is what its steps took."`
	States   map[string]number `json:"states" doc:"s by state: start_up, step, checkpoint, evaluation, redone, down, stalled, unexplained, after_end."`
	Devices  map[string]number `json:"device_states,omitempty" doc:"The same times the ranks that the job had then, s; absent: their number is not known."`
	Goodput  number            `json:"goodput" doc:"Time of steps that counted, none longer than usual, by wall_s: 0..1. docs/reference/goodput.md has more."`
	Google   number            `json:"goodput_google" doc:"As Google's ml-goodput-measurement has it, 0..1; null: the log does not allow it."`
	CRE      number            `json:"goodput_nvidia_cre" doc:"As NVIDIA's Cluster Readiness Engine has it, likewise."`
	ETTR     number            `json:"ettr_meta" doc:"Meta's effective training time ratio, likewise."`
	Steps    int64             `json:"steps" doc:"Different steps that were done."`
	Redone   int64             `json:"redone" doc:"Steps that were done again."`
	Usual    number            `json:"step_s_p50" doc:"The median time of a step, without checkpoint and evaluation."`
	Attempts []Attempt         `json:"attempts" doc:"In order of time."`
}

// Attempt is from a start of the training to its end or to the next start.
type Attempt struct {
	First  *int64 `json:"first,omitempty" doc:"The number of its first step; absent: the log numbers none."`
	Last   *int64 `json:"last,omitempty"`
	Steps  int64  `json:"steps"`
	Redone int64  `json:"redone" doc:"Steps of it that an earlier attempt had done."`
	Ranks  int64  `json:"ranks,omitempty" doc:"How many ranks the job had at most; absent: not known."`
	Start  string `json:"start,omitempty" doc:"RFC 3339, UTC; absent without a clock."`
	End    string `json:"end,omitempty"`
}

// Window is a kind of window: steps, batches or passes.
type Window struct {
	Of       string        `json:"of" doc:"step, batch or pass."`
	Duration *Distribution `json:"duration_s,omitempty" doc:"How long they took, s."`
	Slow     int           `json:"slow" doc:"How many took longer than usual."`
	Parts    []Part        `json:"parts" doc:"Exclusive times: each instant counts for one part. That which took most first, what no part explains last."`
	Causes   []Cause       `json:"causes" doc:"Why windows were slow, the dearest first."`
	Slowest  []Slow        `json:"slowest" doc:"The slow windows that were slow by the most."`
}

// Part is a part of a window's time.
type Part struct {
	Part     string        `json:"part" doc:"compute, collective.wait, get, …: ml.step.part of docs/reference/semconv.md."`
	Share    number        `json:"share" doc:"Of the time of all windows, 0..1."`
	Duration *Distribution `json:"duration_s,omitempty" doc:"Of the windows whose logs tell of the part, s."`
}

// Cause is the cause of slow windows.
type Cause struct {
	Part     string        `json:"part" doc:"The part of the time that was longer; unattributed: what no log explains."`
	Rank     *int64        `json:"rank,omitempty" doc:"The rank that was waited for."`
	Host     string        `json:"host,omitempty" doc:"Its host."`
	Windows  int64         `json:"windows" doc:"How many windows."`
	Time     number        `json:"time_s" doc:"Longer than usual, in all, s."`
	Device   *number       `json:"device_time_s,omitempty" doc:"The same times the ranks that waited, where their number is known."`
	Evidence []BlamedPlace `json:"evidence" doc:"The windows that it cost the most."`
}

// BlamedPlace is a window made slow by a cause.
type BlamedPlace struct {
	Evidence
	Time         number `json:"time_s" doc:"Longer than usual by this cause, s."`
	Iteration    *int64 `json:"iteration,omitempty" doc:"The step."`
	Operation    string `json:"operation,omitempty" doc:"The collective in which it showed."`
	Communicator string `json:"communicator,omitempty" doc:"Its communicator."`
	Note         string `json:"note,omitempty" doc:"What else is known."`
}

// Slow is a slow window.
type Slow struct {
	Evidence
	Iteration *int64 `json:"iteration,omitempty" doc:"The step."`
	Duration  number `json:"duration_s" doc:"How long it took, s."`
	Over      number `json:"over_s" doc:"By how much it was above the limit, s."`
	Reason    string `json:"reason" doc:"Why, in one English sentence."`
}

// Training is the records of a format of training logs.
type Training struct {
	Format    string                   `json:"format" doc:"megatron, flagscale, hf, …"`
	Records   int64                    `json:"records"`
	Steps     number                   `json:"steps" doc:"How many steps the records cover."`
	LossFirst *Loss                    `json:"loss_first,omitempty"`
	LossLast  *Loss                    `json:"loss_last,omitempty"`
	LossMin   *Loss                    `json:"loss_min,omitempty"`
	NotFinite int64                    `json:"loss_not_finite" doc:"How many losses are no finite number."`
	Figures   map[string]*Distribution `json:"figures" doc:"By name: see docs/reference/report.md."`
	Parts     map[string]*Distribution `json:"parts_s" doc:"Named parts of steps, s."`
	Slowest   []Slowest                `json:"slowest" doc:"The slowest steps."`
}

// Loss is a loss and its place.
type Loss struct {
	Evidence
	Step  *int64 `json:"step,omitempty"`
	Value number `json:"value" doc:"null: not finite."`
	Text  string `json:"text" doc:"As it is printed: four digits, or NaN, +Inf, -Inf."`
}

// Slowest is a slow span.
type Slowest struct {
	Evidence
	Step     *int64 `json:"step,omitempty"`
	Duration number `json:"duration_s"`
}

// TransferQueue has the functions and operations.
type TransferQueue struct {
	Traces     int64       `json:"traces" doc:"Batches: traces that have functions."`
	Calls      int         `json:"calls" doc:"Complete calls of all functions."`
	Incomplete int         `json:"incomplete" doc:"Calls that were not seen to their end."`
	WithoutID  int         `json:"without_id" doc:"Calls whose log names no trace id (N/A)."`
	Total      number      `json:"total_s" doc:"Time of the complete calls, s."`
	Get        number      `json:"get_s"`
	Compute    number      `json:"compute_s"`
	Put        number      `json:"put_s"`
	Overhead   number      `json:"overhead" doc:"GET and PUT by the whole time, 0..1."`
	Functions  []Function  `json:"functions" doc:"By name."`
	Operations []Operation `json:"operations" doc:"Operations of the client."`
}

// Function is a function of TransferQueue.
type Function struct {
	Function   string        `json:"function"`
	Calls      int           `json:"calls" doc:"Complete ones."`
	Incomplete int           `json:"incomplete"`
	Total      number        `json:"total_s" doc:"Of all complete calls."`
	Get        number        `json:"get_s"`
	Compute    number        `json:"compute_s"`
	Put        number        `json:"put_s"`
	Overhead   number        `json:"overhead" doc:"GET and PUT by the whole time, 0..1."`
	Duration   *Distribution `json:"duration_s,omitempty"`
	GetTimes   *Distribution `json:"get_duration_s,omitempty"`
	PutTimes   *Distribution `json:"put_duration_s,omitempty"`
	Slowest    []Slowest     `json:"slowest" doc:"The slowest calls."`
}

// Operation is an operation of TransferQueue's client.
type Operation struct {
	Operation  string        `json:"operation" doc:"client_get, client_put, …"`
	Duration   *Distribution `json:"duration_s,omitempty"`
	Size       *Distribution `json:"size_bytes,omitempty"`
	Throughput *Distribution `json:"throughput_bytes_per_s,omitempty" doc:"Of each operation."`
	Overall    number        `json:"overall_bytes_per_s" doc:"All bytes by all time."`
}

// RPC has the calls of ZeroMQ.
type RPC struct {
	Calls    Calls         `json:"all" doc:"The calls of all logs, the warm-up among them."`
	Logs     []CallLog     `json:"logs" doc:"By log, since the numbers of its calls began anew for the last time."`
	Passes   int           `json:"passes" doc:"Groups of calls: forward passes, set-ups, calls of no pass."`
	Duration *Distribution `json:"pass_duration_s,omitempty" doc:"Time of the calls of a complete pass."`
}

// CallLog has the calls of a log.
type CallLog struct {
	File       string         `json:"file,omitempty"`
	Transports map[string]int `json:"transports" doc:"How many groups of calls name each transport."`
	WarmUp     int64          `json:"warm_up" doc:"Calls before the numbers began anew, which are not among the calls here."`
	Calls
}

// Calls are calls together.
type Calls struct {
	Duration   *Distribution            `json:"duration_s,omitempty"`
	Stages     map[string]*Distribution `json:"stages_s" doc:"By stage: server is within receive, offline beside the calls."`
	Sent       *Distribution            `json:"request_bytes,omitempty"`
	Received   *Distribution            `json:"response_bytes,omitempty"`
	Throughput *Distribution            `json:"throughput_bytes_per_s,omitempty" doc:"Of each call; not where tensors go through shared memory."`
	Overall    number                   `json:"overall_bytes_per_s" doc:"All bytes by the time of all calls."`
	Incomplete int                      `json:"incomplete"`
	Methods    []Method                 `json:"methods" doc:"That which took most of the time first."`
	Slowest    []Call                   `json:"slowest"`
	Largest    []Call                   `json:"largest" doc:"By the bytes sent and received."`
}

// Method has the calls of a method.
type Method struct {
	Method   string        `json:"method"`
	Duration *Distribution `json:"duration_s,omitempty"`
	Sent     *Distribution `json:"request_bytes,omitempty"`
	Received *Distribution `json:"response_bytes,omitempty"`
}

// Call is an RPC.
type Call struct {
	Evidence
	ID         *int64            `json:"id,omitempty" doc:"As the log has it."`
	Method     string            `json:"method"`
	Duration   number            `json:"duration_s"`
	Stages     map[string]number `json:"stages_s"`
	Sent       number            `json:"request_bytes"`
	Received   number            `json:"response_bytes"`
	Throughput number            `json:"throughput_bytes_per_s"`
}

// Collectives are the collectives of a job.
type Collectives struct {
	Operations    []Operations   `json:"operations" doc:"By operation, of all communicators."`
	Rows          []Operations   `json:"by_communicator" doc:"By communicator and operation."`
	Communicators []Communicator `json:"communicators" doc:"The largest first."`
	Ranks         []Rank         `json:"ranks" doc:"By communicator and rank."`
	Links         []Link         `json:"links" doc:"From rank to rank."`
	Nodes         []Link         `json:"nodes" doc:"From host to host."`
}

// Operations are collectives together.
type Operations struct {
	Communicator string        `json:"communicator,omitempty" doc:"Absent: of all."`
	Operation    string        `json:"operation"`
	Count        int           `json:"count"`
	Incomplete   int           `json:"incomplete"`
	Hangs        int           `json:"hangs"`
	Errors       number        `json:"errors"`
	Retries      number        `json:"retries"`
	Duration     *Distribution `json:"duration_s,omitempty" doc:"From the first rank's arrival on, of complete ones."`
	Algorithm    *Distribution `json:"algbw_bytes_per_s,omitempty" doc:"S/t, recomputed."`
	Bus          *Distribution `json:"busbw_bytes_per_s,omitempty" doc:"That times the operation's factor."`
	Late         *Distribution `json:"late_s,omitempty" doc:"Of the last rank behind the first."`
	Cost         number        `json:"late_cost_s" doc:"Time that ranks lost together waiting for the last."`
	RankDuration *Distribution `json:"rank_duration_s,omitempty" doc:"Of each record of a rank, as a script sees it that reads the log line by line."`
	RankReported *Distribution `json:"rank_bandwidth_bytes_per_s,omitempty" doc:"As each record states it."`
	Sizes        []Size        `json:"sizes" doc:"Messages by size."`
	Slowest      []Collective  `json:"slowest"`
	Latest       []Collective  `json:"latest"`
}

// Size is messages of about the same size.
type Size struct {
	From  number `json:"from_bytes" doc:"At least this, less than twice of it."`
	Count int64  `json:"count"`
	Bytes number `json:"bytes" doc:"In all."`
	Bus   number `json:"busbw_bytes_per_s" doc:"Mean."`
}

// Collective is an operation.
type Collective struct {
	Evidence
	Operation    string `json:"operation"`
	Communicator string `json:"communicator,omitempty"`
	Sequence     *int64 `json:"sequence,omitempty"`
	Size         number `json:"message_bytes"`
	Duration     number `json:"duration_s"`
	Late         number `json:"late_s"`
	LateRank     *int64 `json:"late_rank,omitempty"`
	LateHost     string `json:"late_host,omitempty"`
}

// Communicator is a group of ranks.
type Communicator struct {
	ID          string `json:"id"`
	Name        string `json:"name" doc:"Else the id, else -."`
	Size        int64  `json:"ranks"`
	Collectives int64  `json:"collectives"`
}

// Rank is the work of a rank in all collectives of a communicator.
type Rank struct {
	Communicator string `json:"communicator,omitempty"`
	Rank         int64  `json:"rank"`
	Host         string `json:"host,omitempty"`
	Records      int64  `json:"records"`
	Last         int64  `json:"last" doc:"How often it came last."`
	LateMean     number `json:"late_mean_s"`
	LateMax      number `json:"late_max_s"`
	Cost         number `json:"late_cost_s" doc:"Time that others waited for it, added up."`
	Straggler    int64  `json:"straggler" doc:"How often it was late again and again."`
	Errors       number `json:"errors"`
	Retries      number `json:"retries"`
}

// Link is from a rank or host to another.
type Link struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Bytes       number `json:"bytes"`
	Bandwidth   number `json:"bandwidth_bytes_per_s" doc:"The latest."`
	Hot         int64  `json:"hot" doc:"How many collectives said that it carries much more than others."`
	Slow        int64  `json:"slow" doc:"How many said that it is much slower."`
}

// Finding is a verdict, over all its spans.
type Finding struct {
	Verdict  string    `json:"verdict" doc:"Its name: see docs/reference/semconv.md."`
	Cause    string    `json:"cause,omitempty" doc:"Of several that the name stands for."`
	Stage    string    `json:"stage,omitempty" doc:"Of TransferQueue, where it is about one of several."`
	Severity string    `json:"severity" doc:"warning or bad."`
	Unit     string    `json:"unit,omitempty" doc:"Of values and thresholds, UCUM."`
	Count    int64     `json:"count"`
	Meaning  string    `json:"meaning,omitempty" doc:"When it is said, by default."`
	Advice   string    `json:"advice,omitempty" doc:"What to do."`
	Worst    []Verdict `json:"worst" doc:"Those that are furthest from their limits."`
}

// Verdict is a verdict about a span.
type Verdict struct {
	Evidence
	Run       string `json:"run,omitempty" doc:"Only in verdicts: the job."`
	Verdict   string `json:"verdict"`
	Cause     string `json:"cause,omitempty" doc:"Of several that the name stands for."`
	Stage     string `json:"stage,omitempty" doc:"Of TransferQueue, where it is about one of several."`
	Severity  string `json:"severity,omitempty" doc:"Only in verdicts: warning or bad."`
	Of        string `json:"of,omitempty" doc:"What it is said of: step, function, collective, …"`
	Reason    string `json:"reason" doc:"One English sentence with the numbers."`
	Value     number `json:"value" doc:"What was judged; null: not given."`
	Threshold number `json:"threshold" doc:"The limit."`
}

// File is the fate of a file.
type File struct {
	File     string            `json:"file"`
	Receiver string            `json:"receiver,omitempty" doc:"Who understands it; absent: nobody."`
	Also     string            `json:"also,omitempty" doc:"Who understands lines of a second kind: the output of verl has steps and TransferQueue."`
	Binary   bool              `json:"binary,omitempty" doc:"It was not looked at."`
	Size     int64             `json:"bytes"`
	Lines    int64             `json:"lines" doc:"records + ignored + rejected."`
	Records  int64             `json:"records" doc:"Lines that are records."`
	Ignored  map[string]Reason `json:"ignored" doc:"Lines that are not for the receiver, by reason."`
	Rejected map[string]Reason `json:"rejected" doc:"Lines that should be records and cannot be read, by reason."`
}

// Reason is why lines are no records.
type Reason struct {
	Lines int64  `json:"lines"`
	Line  int64  `json:"first_line" doc:"The number of the first, from 1."`
	Text  string `json:"first_text" doc:"Its beginning."`
}
