package ncclras

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Answer is RAS's report on all communicators of a job, read rank by rank: two counts may be seconds apart.
type Answer struct {
	// Version of NCCL, such as "2.29.7". CUDARuntime and CUDADriver are as CUDA numbers them: 12040.
	Version                 string
	CUDARuntime, CUDADriver int64
	// Timestamp is "2026-11-26 12:00:00" by the clock and in the zone of the answering process.
	Timestamp string
	// Operations names the columns of Rank.Counts: Broadcast, Reduce, AllGather, ReduceScatter, AllReduce. Send and Recv are not counted.
	Operations    []string
	Communicators []Communicator
	// Collected is the time of RAS for asking all processes, s, and Timeouts the number of connections without an answer.
	Collected float64
	Timeouts  int64
}

// Communicator is a communicator as far as its processes have reported.
type Communicator struct {
	// Hash is the communicator's "0x…", as NCCL Inspector logs it; Secondary is made of the host and the process of its first rank.
	Hash, Secondary string
	// Size counts all ranks. While a communicator is created, NCCL 2.29 to 2.31 may list communicators of size 0, or the same twice (nccl#2346).
	Size    int64
	Ranks   []Rank
	Missing []Missing
}

// Process is where a rank is.
type Process struct {
	// Host is an IP address; "unknown" or "" where RAS does not know the process, whose PID is -1 then.
	Host string
	PID  int64
	// CUDADev and NVMLDev are the indices of the GPU, as the process and as nvidia-smi count.
	CUDADev, NVMLDev int64
}

// Known says whether RAS knows the process.
func (p *Process) Known() bool { return p.PID > 0 }

// Rank is a rank with a report.
type Rank struct {
	Process
	Rank int32
	// InitState and AsyncError are values of ncclResult_t.
	InitState, AsyncError                    Result
	FinalizeCalled, DestroyFlag, AbortedFlag bool
	// Counts are the collectives launched by the rank, in the order of Answer.Operations; completion is unknown, and CUDA graphs are left out.
	// Missing ones at the end are 0.
	Counts []uint64
}

// Missing is a rank without a report of the communicator.
type Missing struct {
	Process
	Rank int32
	// Unresponsive: the process has not answered, or is unknown. Otherwise the process has answered, and is no member (yet, or any more).
	Unresponsive bool
	// Dead: RAS could not reach its process for 60 s, perhaps because the process ended in peace.
	Dead bool
}

// Result is a value of ncclResult_t (nccl.h).
type Result int64

// The results besides errors.
const (
	Success    Result = 0
	InProgress Result = 7
)

var results = [...]string{
	"ncclSuccess", "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument", "ncclInvalidUsage", "ncclRemoteError",
	"ncclInProgress", "ncclTimeout",
}

// Failed says whether the result is an error.
func (r Result) Failed() bool { return r != Success && r != InProgress }

func (r Result) String() string {
	if r >= 0 && int(r) < len(results) {
		return results[r]
	}
	return fmt.Sprintf("ncclResult_t %d", int64(r))
}

// The bounds of an answer. A rank takes 600 bytes: 300 MB are a job of 50,000 GPUs with ten communicators each.
const (
	maxBytes      = 512 << 20
	maxRanks      = 1 << 19 // of all communicators together, the missing ones too
	maxComms      = 1 << 17
	maxOperations = 32
	maxHosts      = 1 << 17
)

var (
	errNoComms = errors.New("it has no communicators")
	errNoRank  = errors.New("a rank has no number")
	errLarge   = errors.New("it is larger than any job")
)

// Read reads the JSON of rasDumpCommsToJSON (client_support.cc), up to its closing brace. A comma may be missing: before 2.29.2 NCCL leaves out the comma
// behind nvml_dev of each missing rank. Unknown members are passed over. Errors are ErrInvalid with the cause.
func Read(from io.Reader) (*Answer, error) { return readMost(from, maxBytes) }

// readMost is Read of an answer of at most most bytes.
func readMost(from io.Reader, most int64) (*Answer, error) {
	r := reader{scanner: newScanner(from, most), answer: new(Answer), hosts: make(map[string]string)}
	err := r.object(r.top)
	switch {
	case err == nil && !r.found:
		err = errNoComms
	case errors.Is(err, io.EOF) && r.limit.N <= 0:
		err = errLarge
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return r.answer, nil
}

// reader reads an answer. Its methods read a value each.
type reader struct {
	scanner
	answer *Answer
	found  bool              // the communicators
	ranks  int               // of all communicators
	hosts  map[string]string // each host once in memory
	counts []uint64          // room for the counts of later ranks
}

// top reads a member of the answer's outermost object, {"nccl_version": "2.29.7", …, "communicators": […], "ras": {…}}, into the Answer. name is the member's.
func (r *reader) top(name []byte) (err error) {
	a := r.answer
	switch string(name) {
	case "nccl_version":
		a.Version, err = r.text()
	case "cuda_runtime_version":
		a.CUDARuntime, err = r.integer()
	case "cuda_driver_version":
		a.CUDADriver, err = r.integer()
	case "timestamp":
		a.Timestamp, err = r.text()
	case "communicators":
		r.found = true
		err = r.array(r.communicator)
	case "ras":
		err = r.object(func(name []byte) (err error) {
			switch string(name) {
			case "collection_time_sec":
				a.Collected, err = r.number()
			case "timeouts_count":
				a.Timeouts, err = r.integer()
			default:
				err = r.skip()
			}
			return err
		})
	default:
		err = r.skip()
	}
	return err
}

// communicator reads an element of communicators, {"hash": "0x…", "size": 8, "ranks": […], "missing_ranks": […], …}, and adds it to the Answer.
func (r *reader) communicator() error {
	if len(r.answer.Communicators) >= maxComms {
		return errLarge
	}
	var c Communicator
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case "hash":
			c.Hash, err = r.text()
		case "secondary_hash":
			c.Secondary, err = r.text()
		case "size":
			c.Size, err = r.integer()
		case "ranks":
			err = r.array(func() error { return r.rank(&c) })
		case "missing_ranks":
			err = r.array(func() error { return r.missing(&c) })
		default: // ranks_count and missing_ranks_count too
			err = r.skip()
		}
		return err
	})
	r.answer.Communicators = append(r.answer.Communicators, c)
	return err
}

// rank reads an element of ranks, a rank with a report, {"rank": 3, "host": "10.0.0.1", "pid": 4711, …, "status": {…}, "collective_counts": {…}}, and adds it
// to c.
func (r *reader) rank(c *Communicator) error {
	rank := Rank{Rank: -1, Process: Process{PID: -1}}
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case "status":
			err = r.object(func(name []byte) error { return r.status(&rank, name) })
		case "collective_counts":
			rank.Counts, err = r.countsOf()
		default:
			err = r.place(&rank.Process, &rank.Rank, name)
		}
		return err
	})
	c.Ranks = append(c.Ranks, rank) // even after an error: Read then returns no Answer at all
	return errors.Join(err, r.countRank(rank.Rank))
}

// status reads a member of a rank's status, {"init_state": 0, "async_error": 0, "finalize_called": false, …}.
func (r *reader) status(rank *Rank, name []byte) (err error) {
	var n int64
	switch string(name) {
	case "init_state":
		n, err = r.integer()
		rank.InitState = Result(n)
	case "async_error":
		n, err = r.integer()
		rank.AsyncError = Result(n)
	case "finalize_called":
		rank.FinalizeCalled, err = r.boolean()
	case "destroy_flag":
		rank.DestroyFlag, err = r.boolean()
	case "abort_flag":
		rank.AbortedFlag, err = r.boolean()
	default:
		err = r.skip()
	}
	return err
}

// missing reads an element of missing_ranks, a rank without a report, {"rank": 3, …, "status": {"unresponsive": true, "considered_dead": false}}, and adds it
// to c.
func (r *reader) missing(c *Communicator) error {
	rank := Missing{Rank: -1, Process: Process{PID: -1}}
	err := r.object(func(name []byte) error {
		if string(name) != "status" {
			return r.place(&rank.Process, &rank.Rank, name)
		}
		return r.object(func(name []byte) (err error) {
			switch string(name) {
			case "unresponsive":
				rank.Unresponsive, err = r.boolean()
			case "considered_dead":
				rank.Dead, err = r.boolean()
			default:
				err = r.skip()
			}
			return err
		})
	})
	c.Missing = append(c.Missing, rank) // even after an error: Read then returns no Answer at all
	return errors.Join(err, r.countRank(rank.Rank))
}

// countRank counts a rank of the answer, with or without a report: errLarge beyond maxRanks, errNoRank for a rank without a number.
func (r *reader) countRank(rank int32) error {
	if r.ranks++; r.ranks > maxRanks {
		return errLarge
	}
	if rank < 0 {
		return errNoRank
	}
	return nil
}

// place reads a member that both ranks and missing ranks have: the rank, and where its process is.
func (r *reader) place(p *Process, rank *int32, name []byte) (err error) {
	switch string(name) {
	case "rank":
		var n int64
		n, err = r.integer()
		if err == nil && n >= 0 && n <= math.MaxInt32 {
			*rank = int32(n)
		}
	case "host":
		p.Host, err = r.host()
	case "pid":
		p.PID, err = r.integer()
	case "cuda_dev":
		p.CUDADev, err = r.integer()
	case "nvml_dev":
		p.NVMLDev, err = r.integer()
	default:
		err = r.skip()
	}
	return err
}

// host reads the name of a host, as the same string for all its processes: an answer has as many names as ranks.
func (r *reader) host() (string, error) {
	text, err := r.raw()
	if err != nil {
		return "", err
	}
	host, ok := r.hosts[string(text)]
	if !ok {
		if len(r.hosts) >= maxHosts {
			return "", errLarge
		}
		host = string(text)
		r.hosts[host] = host
	}
	return host, nil
}

// slab is the number of counts allocated at once, for many ranks.
const slab = 4096

// countsOf reads the counts of a rank, {"Broadcast": 0, "AllReduce": 512}, in the order of Answer.Operations, to which new names are added. An operation
// that the rank does not name is 0, or missing at the end: the result may be shorter than Operations.
func (r *reader) countsOf() ([]uint64, error) {
	if cap(r.counts)-len(r.counts) < maxOperations {
		r.counts = make([]uint64, 0, slab)
	}
	own := r.counts[len(r.counts):len(r.counts):cap(r.counts)] // empty, with the rest of the slab as room
	next := 0                                                  // index of the expected operation: mostly all ranks have the same order
	err := r.object(func(name []byte) error {
		a := r.answer
		i := next
		if i >= len(a.Operations) || a.Operations[i] != string(name) {
			i = slices.IndexFunc(a.Operations, func(op string) bool { return op == string(name) })
		}
		if i < 0 {
			i = len(a.Operations)
			if i >= maxOperations {
				return errLarge
			}
			a.Operations = append(a.Operations, string(name))
		}
		n, err := r.natural()
		for len(own) <= i {
			own = append(own, 0)
		}
		own[i], next = n, i+1
		return err
	})
	r.counts = r.counts[:len(r.counts)+len(own)]
	return slices.Clip(own), err
}
