package flightrecorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Dump is the dump of one rank. There is more in the file: frames, threads, nccl_comm_state.
type Dump struct {
	Rank     int32             `json:"-"` // global, of the file's name (RankOf); negative: unknown
	Version  Text              `json:"version"`
	PGConfig map[string]PG     `json:"pg_config"` // by the group's name
	PGStatus map[string]Status `json:"pg_status"` // by the group's pg_id
	Entries  []Entry           `json:"entries"`   // in the order of enqueueing
}

// PG is a process group of pg_config.
type PG struct {
	Desc  Text  `json:"desc"`
	Ranks Ranks `json:"ranks"`
}

// Status is what a process group counts: ProcessGroupStatus.hpp. -1: none yet.
type Status struct {
	Enqueued  Integer `json:"last_enqueued_collective"`
	Started   Integer `json:"last_started_collective"`
	Completed Integer `json:"last_completed_collective"`
}

// Entry is an operation.
type Entry struct {
	RecordID     Integer   `json:"record_id"` // counts all operations of the rank; above 0 in the first entry: older ones were dropped
	PGID         Integer   `json:"pg_id"`
	ProcessGroup []Text    `json:"process_group"`     // name, description
	Collective   Integer   `json:"collective_seq_id"` // from 1 on; 0: none
	P2P          Integer   `json:"p2p_seq_id"`
	Name         Text      `json:"profiling_name"` // nccl:all_reduce
	Created      Integer   `json:"time_created_ns"`
	Millis       *Float    `json:"duration_ms"`
	InputSizes   [][]int64 `json:"input_sizes"`
	InputDtypes  []Text    `json:"input_dtypes"`
	OutputSizes  [][]int64 `json:"output_sizes"`
	OutputDtypes []Text    `json:"output_dtypes"`
	State        Text      `json:"state"`                      // scheduled, started, completed
	Started      Integer   `json:"time_discovered_started_ns"` // 0 or null: it did not start
	Completed    Integer   `json:"time_discovered_completed_ns"`
	Retired      bool      `json:"retired"`
	TimeoutMS    Integer   `json:"timeout_ms"`
	IsP2P        bool      `json:"is_p2p"`
}

// ErrNotDump is a file that is no dump: its value is no dictionary, or has more in it than fits into a file of its size.
var ErrNotDump = errors.New("no dump of the Flight Recorder")

// Prefixes begin the names of the files that PyTorch writes (TORCH_FR_DUMP_TEMP_FILE); the rank follows. FlightRecorder.cpp of c10d has the second since 2.9,
// torch_npu the third.
var Prefixes = []string{"nccl_trace_rank_", "comm_lib_trace_rank_", "hccl_trace_rank_"}

// IsName says whether a file is named as PyTorch names dumps.
func IsName(path string) bool {
	base := filepath.Base(path)
	return slices.ContainsFunc(Prefixes, func(prefix string) bool { return strings.Contains(base, prefix) })
}

// maxRankDigits tells a rank from a date.
const maxRankDigits = 6

// RankOf returns the global rank with which the name of a dump ends: nccl_trace_rank_3, …_3.json; -1: it ends with none.
func RankOf(file string) int32 {
	name := filepath.Base(file)
	for _, ext := range []string{".gz", ".zst", ".json", ".txt", ".log"} {
		name = strings.TrimSuffix(name, ext)
	}
	before := strings.TrimRight(name, "0123456789")
	digits := name[len(before):]
	if len(digits) > maxRankDigits || !strings.HasSuffix(before, "_") && !strings.HasSuffix(before, "rank") {
		return -1
	}
	rank, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return -1
	}
	return int32(rank)
}

// readJSON reads a dump in JSON. A value of a wrong type counts as missing.
func readJSON(text []byte, d *Dump) error {
	err := json.Unmarshal(text, d)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// Integer is a number that is exact to 64 bits, or a string of one; 0 where it is none.
type Integer int64

// UnmarshalJSON reads it; there is no error.
func (n *Integer) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	if err != nil {
		v = 0
	}
	*n = Integer(v)
	return nil
}

// Float is a number, or NaN.
type Float float64

// UnmarshalJSON reads it; there is no error.
func (f *Float) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		v = math.NaN()
	}
	*f = Float(v)
	return nil
}

// Text is a string, or any other value as it is written.
type Text string

// UnmarshalJSON reads it; there is no error.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	*t = Text(s)
	return nil
}

// maxRanks bounds the ranks that are read of a process group.
const maxRanks = 1 << 20

// Ranks are the global ranks of a process group, in its order: "[0, 1]" as PyTorch writes them, a list elsewhere. Of unknown ones there are none.
type Ranks []int32

// UnmarshalJSON reads them; there is no error.
func (r *Ranks) UnmarshalJSON(b []byte) error {
	*r = (*r)[:0]
	for field := range bytes.FieldsFuncSeq(b, func(c rune) bool { return c < '0' || c > '9' }) {
		n, err := strconv.ParseInt(string(field), 10, 32)
		if err != nil || len(*r) == maxRanks || bytes.IndexByte(b, '-') >= 0 {
			*r = nil
			return nil //nolint:nilerr // unknown ranks are no reason to lose the entries
		}
		*r = append(*r, int32(n))
	}
	slices.Sort(*r) // as torch/distributed/flight_recorder does to find a group's rank
	return nil
}
