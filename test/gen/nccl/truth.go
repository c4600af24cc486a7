package nccl

import "github.com/trainbridge/trainbridge/internal/logfile"

// Collective is the truth about one collective. Times are true, by no host's clock.
type Collective struct {
	Index        int    `json:"index"` // of the run, from 0
	Step         int    `json:"step"`
	Communicator string `json:"communicator"` // in the log's spelling; empty if not logged
	Operation    string `json:"operation"`    // AllReduce, AllGather, ReduceScatter, Broadcast
	// Sequence is the logged number, or without one the number of operations of the kind before.
	Sequence    uint64 `json:"sequence"`
	MessageSize int64  `json:"message_size"` // By, as logged; of a flight recorder the size of the input; 0: not logged
	DataSize    int64  `json:"data_size"`    // By, S of nccl-tests
	// Start: the first rank arrives; Begun: data begins to flow; End: the last rank leaves.
	StartUnixNano int64 `json:"start_unix_nano"`
	BegunUnixNano int64 `json:"begun_unix_nano"`
	EndUnixNano   int64 `json:"end_unix_nano"`
	TransferNS    int64 `json:"transfer_ns"`
	// The last to arrive, how late after the first, and the time the others would have saved together had it come with the last but one. Durations identify the
	// last rank only if this time exceeds the scatter of the ranks' leaving: CostNS / (ranks − 1) against --end-jitter.
	LateRank int   `json:"late_rank"`
	LateNS   int64 `json:"late_ns"`
	CostNS   int64 `json:"cost_ns"`
	// Records is the number of records in the logs: of ranks, or of the network cards' sends. Missing are the ranks without records.
	Records int   `json:"records"`
	Missing []int `json:"missing,omitempty"`
	// The shortest and the longest duration as printed; 0 where the log has none.
	ShortestNS   int64 `json:"shortest_ns,omitempty"`
	ShortestRank int   `json:"shortest_rank"`
	LongestNS    int64 `json:"longest_ns,omitempty"`
	// Bandwidths, By/s, of the shortest duration: DataSize / t, and times the factor of nccl-tests.
	AlgBandwidth float64 `json:"algbw,omitempty"`
	BusBandwidth float64 `json:"busbw,omitempty"`
	Errors       int64   `json:"errors,omitempty"` // of all ranks
	Retries      int64   `json:"retries,omitempty"`
	Slow         bool    `json:"slow,omitempty"`
	// State is how far the ranks with a record came, if not to the end: started or scheduled.
	State string `json:"state,omitempty"`
}

// record adds the printed duration of a rank's record, in ns; negative: none.
func (c *Collective) record(rank int, ns int64) {
	c.Records++
	if ns < 0 {
		return
	}
	if c.LongestNS == 0 || ns < c.ShortestNS {
		c.ShortestNS, c.ShortestRank = ns, rank
	}
	c.LongestNS = max(c.LongestNS, ns)
}

// Host is the truth about a host's clock: at true time t it shows t + SkewNS + DriftPPM·1e-6·(t − StartUnixNano of the run).
type Host struct {
	Name     string  `json:"name"`
	SkewNS   int64   `json:"skew_ns"`
	DriftPPM float64 `json:"drift_ppm"`
	// OffsetNS is how much the clock is ahead of the first host's clock at the end of the last collective.
	OffsetNS int64 `json:"offset_ns"`
}

// Link is the truth about the sends between two ranks.
type Link struct {
	From    int   `json:"from"`
	To      int   `json:"to"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes,omitempty"` // where the log has sizes
	// Bandwidth is the mean of the bandwidths in the log, By/s.
	Bandwidth float64 `json:"bandwidth"`
	Slow      bool    `json:"slow,omitempty"`
	sum       float64 // bit/s
}

// Run sums up a run of `gen nccl`: the last line of its truth file, {"run": Run}. The lines before are a Collective each.
type Run struct {
	Format            string         `json:"format"`
	Seed              uint64         `json:"seed"`
	Ranks             int            `json:"ranks"`
	Nodes             int            `json:"nodes"`
	Steps             int            `json:"steps"`
	Communicator      string         `json:"communicator"`      // in the log's spelling; empty if not logged
	CommunicatorHash  string         `json:"communicator_hash"` // "0x…"
	CollectivesInStep int            `json:"collectives_in_step"`
	Collectives       int            `json:"collectives"`
	Files             []logfile.File `json:"files"`
	// Lines are physical lines. Operations are records of an operation of a rank, or of a send.
	Lines int64 `json:"lines"`
	logfile.LineCounts
	Operations    int64  `json:"operations"`
	StartUnixNano int64  `json:"start_unix_nano"`
	EndUnixNano   int64  `json:"end_unix_nano"`
	Hosts         []Host `json:"hosts"`
	Links         []Link `json:"links,omitempty"`
	// The faults; -1: none.
	SlowRank       int     `json:"slow_rank"`
	SlowFrom       int     `json:"slow_from,omitempty"` // step
	SlowBy         float64 `json:"slow_by,omitempty"`
	MissingRank    int     `json:"missing_rank"`
	MissingFrom    int     `json:"missing_from,omitempty"` // index of the collective, as the next two fields
	GapRank        int     `json:"gap_rank"`
	GapAt          int     `json:"gap_at,omitempty"`
	SlowCollective int     `json:"slow_collective"`
	Errors         int64   `json:"errors,omitempty"`
	Retries        int64   `json:"retries,omitempty"`
}
