package flightrecorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
)

// dump is the file. There is more in it: nccl_comm_state, frames.
type dump struct {
	PGConfig map[string]pg   `json:"pg_config"`
	PGStatus json.RawMessage `json:"pg_status"`
	Entries  []entry         `json:"entries"`
}

type pg struct {
	Ranks ranks `json:"ranks"`
}

type entry struct {
	PGID         integer   `json:"pg_id"`
	ProcessGroup []text    `json:"process_group"` // name, description
	Collective   *integer  `json:"collective_seq_id"`
	P2P          integer   `json:"p2p_seq_id"`
	Name         text      `json:"profiling_name"`
	Created      integer   `json:"time_created_ns"`
	Millis       *float    `json:"duration_ms"`
	InputSizes   [][]int64 `json:"input_sizes"`
	InputDtypes  []text    `json:"input_dtypes"`
	OutputSizes  [][]int64 `json:"output_sizes"`
	OutputDtypes []text    `json:"output_dtypes"`
	State        text      `json:"state"`
	Started      integer   `json:"time_discovered_started_ns"` // 0 or null: it did not start
	Completed    integer   `json:"time_discovered_completed_ns"`
	Retired      bool      `json:"retired"`
	TimeoutMS    integer   `json:"timeout_ms"`
	IsP2P        bool      `json:"is_p2p"`

	end  *entry // the end of the launch that it was coalesced into
	over bool   // it makes no operation of its own
}

// decode reads a dump. A value of a wrong type counts as missing.
func decode(text []byte, d *dump) bool {
	err := json.Unmarshal(text, d)
	var mistyped *json.UnmarshalTypeError
	return err == nil || errors.As(err, &mistyped)
}

// integer is a number that is exact to 64 bits, or a string of one; 0 where it is none.
type integer int64

func (n *integer) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	if err != nil {
		v = 0
	}
	*n = integer(v)
	return nil
}

// float is a number, or NaN.
type float float64

func (f *float) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		v = math.NaN()
	}
	*f = float(v)
	return nil
}

// text is a string, or any other value as it is written.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	*t = text(s)
	return nil
}

// maxRanks bounds the ranks that are read of a process group.
const maxRanks = 1 << 20

// ranks are the global ranks of a process group, in its order: "[0, 1]" in JSON, a list elsewhere.
type ranks []int32

func (r *ranks) UnmarshalJSON(b []byte) error {
	*r = (*r)[:0]
	for field := range bytes.FieldsFuncSeq(b, func(c rune) bool { return c < '0' || c > '9' }) {
		n, err := strconv.ParseInt(string(field), 10, 32)
		if err != nil || len(*r) == maxRanks || bytes.IndexByte(b, '-') >= 0 {
			*r = nil
			return nil //nolint:nilerr // unknown ranks are no reason to lose the entries
		}
		*r = append(*r, int32(n))
	}
	slices.Sort(*r) // as tools/flight_recorder does to find a group's rank
	return nil
}
