package flightrecorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Dump is the dump of one rank. The file has more: frames, threads, nccl_comm_state.
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

// Status is the counters of a process group: ProcessGroupStatus.hpp. -1: none yet.
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
	Started      Integer   `json:"time_discovered_started_ns"` // 0 or null: not started
	Completed    Integer   `json:"time_discovered_completed_ns"`
	Retired      bool      `json:"retired"`
	TimeoutMS    Integer   `json:"timeout_ms"`
	IsP2P        bool      `json:"is_p2p"`
}

// ErrNotDump is the error for a file that is no dump: its value is no dictionary, or has more content than fits into a file of its size.
var ErrNotDump = errors.New("no dump of the Flight Recorder")

// Prefixes are the prefixes of PyTorch's file names (TORCH_FR_DUMP_TEMP_FILE); the rank follows. FlightRecorder.cpp of c10d has the second since 2.9, torch_npu
// the third.
var Prefixes = []string{"nccl_trace_rank_", "comm_lib_trace_rank_", "hccl_trace_rank_"}

// IsName says whether a file is named as PyTorch names dumps.
func IsName(path string) bool {
	base := filepath.Base(path)
	return slices.ContainsFunc(Prefixes, func(prefix string) bool { return strings.Contains(base, prefix) })
}

// maxRankDigits distinguishes a rank from a date.
const maxRankDigits = 6

// dated is the time behind a date: six digits, too.
var dated = regexp.MustCompile(`[0-9]{4}-?[0-9]{2}-?[0-9]{2}_[0-9]{6}$`)

// RankOf returns the global rank at the end of a dump's name: nccl_trace_rank_3, x_3.json, rank7.json.gz; -1: none, or a longer number, or a date and a time.
func RankOf(file string) int32 {
	name := filepath.Base(file)
	for _, ext := range []string{".gz", ".zst", ".json", ".txt", ".log"} {
		name = strings.TrimSuffix(name, ext)
	}
	before := strings.TrimRight(name, "0123456789")
	digits := name[len(before):]
	if len(digits) > maxRankDigits || dated.MatchString(name) || !strings.HasSuffix(before, "_") && !strings.HasSuffix(before, "rank") {
		return -1
	}
	rank, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return -1
	}
	return int32(rank)
}

// readJSON reads a dump in JSON. A value of a wrong type counts as missing: json.Unmarshal goes on behind the value.
func readJSON(text []byte, d *Dump) error {
	err := json.Unmarshal(text, d)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// Integer is a number exact to 64 bits, or a string of one; 0 otherwise.
type Integer int64

// UnmarshalJSON never returns an error.
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

// UnmarshalJSON never returns an error.
func (f *Float) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		v = math.NaN()
	}
	*f = Float(v)
	return nil
}

// Text is a string, or any other value as written; null is empty.
type Text string

// UnmarshalJSON never returns an error.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	*t = Text(s)
	return nil
}

// maxRanks bounds the ranks of a process group.
const maxRanks = 1 << 20

// Ranks are the global ranks of a process group, ascending: "[0, 1]" in PyTorch's dumps, a list elsewhere. Empty: unknown.
type Ranks []int32

// UnmarshalJSON reads the numbers in b, whatever is between, in ascending order: "[0, 1]" as a text or a list. A minus, a number beyond int32, or more than
// maxRanks numbers leave the ranks unknown. UnmarshalJSON never returns an error.
func (r *Ranks) UnmarshalJSON(b []byte) error {
	*r = (*r)[:0]
	if bytes.IndexByte(b, '-') >= 0 {
		*r = nil
		return nil
	}
	for field := range bytes.FieldsFuncSeq(b, func(c rune) bool { return c < '0' || c > '9' }) {
		n, err := strconv.ParseInt(string(field), 10, 32)
		if err != nil || len(*r) == maxRanks {
			*r = nil
			return nil //nolint:nilerr // unknown ranks are no reason to lose the entries
		}
		*r = append(*r, int32(n))
	}
	slices.Sort(*r) // as torch/distributed/flight_recorder does to find a group's rank
	return nil
}
