package events

import (
	"regexp"
	"strconv"
	"strings"
)

// Event is an instance of a form in a log.
type Event struct {
	Form  *Form
	Class Class  // the form's; of a traceback refined by its frames
	Text  string // the line, or its consecutive lines; at most MaxText bytes
	Time  int64  // ns since the epoch: of the line, else of the last stamped line before; 0: none
	Own   bool   // the line itself has the stamp
	Line  int64  // number of the first line in the Scanner's input, from 1

	Ranks     []int64 // global ranks that the line is about
	Rank      int64   // global rank that printed the line; -1: unknown
	Local     int64   // rank on its node that printed the line; -1: unknown
	GroupRank int64   // rank in Group; -1: unknown
	Group     string  // the process group
	Host      string
	PID       int64 // 0: unknown
	Device    int64 // index of the GPU on its node; -1: unknown
	Bus       string
	Op        string
	Seq       int64 // -1: unknown, also of Enqueued and Completed
	Enqueued  int64
	Completed int64
	Waited    int64 // ms; 0: unknown
	Code      int64 // exit code, or status; 0: unknown
	Signal    int64 // 0: none
	Xid       int64
	Step      string // of Slurm
	Process   string
	Peer      string // address or rank of the peer
	What      string // the words of the error
	Exception string // type of the exception of a traceback
	Last      Frame  // the innermost frame
}

// Frame is a line of a traceback: file, line and function.
type Frame struct {
	File string
	Line int64
	Func string
}

func (f Frame) String() string {
	if f.File == "" {
		return ""
	}
	return f.File + ":" + strconv.FormatInt(f.Line, 10) + " in " + f.Func
}

// MaxText bounds Event.Text.
const MaxText = 2048

// signals of Linux on x86 and ARM (signal(7)), by name and by the text printed by shells.
var signals = map[string]int64{
	"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGILL": 4, "SIGTRAP": 5, "SIGABRT": 6, "SIGBUS": 7, "SIGFPE": 8, "SIGKILL": 9, "SIGUSR1": 10, "SIGSEGV": 11,
	"SIGUSR2": 12, "SIGPIPE": 13, "SIGALRM": 14, "SIGTERM": 15,
	"Killed": 9, "killed": 9, "Segmentation fault": 11, "segmentation fault": 11, "segfault": 11, "Aborted": 6, "Bus error": 7, "Floating point exception": 8,
	"Floating-point exception": 8, "Illegal instruction": 4, "Terminated": 15, "Quit": 3,
}

var taskName = regexp.MustCompile(`/task:(\d+)`)

// SignalName returns the name of a signal, "SIGKILL" for 9; "" for a number without a name.
func SignalName(n int64) string {
	for name, number := range signals {
		if number == n && strings.HasPrefix(name, "SIG") {
			return name
		}
	}
	return ""
}

// set fills the field of a group in Form.Pattern with the group's text. The names of groups are listed at Form.Pattern.
func (e *Event) set(name, v string) {
	switch v = strings.TrimSpace(v); name {
	case "rank":
		e.Ranks = append(e.Ranks, list(strings.Join(strings.Fields(v), ","))...)
	case "tasks":
		for _, m := range taskName.FindAllStringSubmatch(v, -1) {
			e.Ranks = append(e.Ranks, number(m[1], -1))
		}
	case "group_rank":
		e.GroupRank = number(v, -1)
	case "local":
		e.Local = number(v, -1)
	case "pid":
		e.PID = number(v, 0)
	case "host":
		e.Host = v
	case "seq":
		e.Seq = number(v, -1)
	case "op":
		e.Op = v
	case "enqueued":
		e.Enqueued = number(v, -1)
	case "completed":
		e.Completed = number(v, -1)
	case "ms":
		e.Waited = number(v, 0)
	case "seconds":
		e.Waited = 1000 * number(v, 0)
	case "device":
		e.Device = number(v, -1)
	case "bus":
		e.Bus = v
	case "peer":
		e.Peer = v
	case "signal":
		e.Signal = number(v, 0)
	case "code":
		e.Code = number(v, 0)
		if e.Code < 0 && e.Class == ClassSummary { // subprocess.Popen.returncode: minus the signal
			e.Signal = -e.Code
		}
	case "xid":
		e.Xid = number(v, 0)
	case "step":
		e.Step = v
	case "process":
		e.Process = v
	case "what":
		e.What = v
		if n := signals[v]; n > 0 { // "SIGKILL", "Killed"
			e.Signal = n
		} else if e.Class == ClassSignal { // "9"
			e.Signal = number(v, 0)
		}
	}
}

// number reads a decimal number; none for any other text.
func number(s string, none int64) int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	return none
}

// list reads a list of ranks, "0,2" or "0-3,7", up to most ranks. A part that does not begin with a number is left out; of a range without an end, the
// beginning counts.
func list(s string) (all []int64) {
	const most = 1 << 16 // a damaged range must not fill the memory
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a := number(from, -1)
		if a < 0 {
			continue
		}
		b := a
		if isRange {
			b = number(to, a)
		}
		for ; a <= b && len(all) < most; a++ {
			all = append(all, a)
		}
	}
	return all
}
