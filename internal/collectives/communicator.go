package collectives

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/collectives/baseline"
	"github.com/trainbridge/trainbridge/internal/collectives/clocks"
	"github.com/trainbridge/trainbridge/internal/collectives/late"
	"github.com/trainbridge/trainbridge/internal/collectives/links"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// run is what is known of one run.
type run struct {
	scores    int             // series of nccl.rank.score
	id, file  string          // the first of its files, by name
	trace     pcommon.TraceID // of its span
	span      pcommon.SpanID
	began     int64 // ns: of its first collective so far that was sent
	comms     map[commKey]*communicator
	clocks    map[string]int32
	hosts     []*source // the first of each clock
	nodes     map[string]int32
	nodeNames []string
	est       clocks.Estimator
	links     links.Links     // rank to rank
	between   links.Links     // node to node
	ranks     map[int32]int32 // node of a global rank
	closed    int
	hot, slow []string           // names of links
	moved     bool               // links have changed since they were told
	since     int64              // the end of the first collective that had links
	toldAt    int64              // when points of links were told last
	told      map[[2]int32]int64 // records of the pairs when they were told last
}

type commKey struct{ family, id string }

// communicator is what is known of one communicator.
type communicator struct {
	run         *run
	family      string // family of formats: each counts by itself
	id, name    string
	size        int32
	tracks      [op.Kinds]*track
	others      map[string]*track
	all         *track // where one sequence counts all operations
	seen        bits   // ranks that had a record
	known       int    // how many
	gone        bits   // ranks that had a record and were waited for in vain since
	lost        int    // how many
	global      bool   // its ranks are global ranks, with any number
	sparse      bool   // ranks may well have no record: VCCL logs sends between nodes, and only some of them
	settled     bool   // ranks that were never seen are not waited for any more
	completedAt int64  // when the first record of the last complete collective was read
	window      *late.Window
	baselines   map[baselineKey]*baseline.Baseline
	hosts       []*source // by rank
	inputs      []*input  // by rank, where it matters which of them live (Settings.Remote)
	rows        []string  // by rank: the name of its spans
	closed      int
	reported    int   // closed, when the scores were told last
	scored      bool  // its ranks have series
	open        int   // collectives
	bytes       int64 // memory, about
	used        int64 // when its last record was read
	forgotten   bool  // there may be another communicator in its place

	counted
}

type baselineKey struct {
	kind   op.Kind
	name   string
	bucket int
}

// track is one sequence of a communicator: its collectives of one operation, or all its collectives where the log counts them together.
type track struct {
	key  trackKey
	open map[uint64]*Collective
	seqs []uint64 // of open collectives, in order
	last []lastSeq
	top  uint64
	any  bool
	// again: top is of a record that was read again.
	again bool
	// shaky is how many collectives must be whole, where numbers are counted, before anything is concluded from one.
	shaky int
}

// lastSeq is how far a rank has come.
type lastSeq struct {
	seq  uint64
	seen bool
}

// The memory of a communicator's state, about, in bytes: itself, each sequence, each rank, and each rank in each collective of the window.
const (
	commBytes       = 1600
	trackBytes      = 300
	rankBytes       = 250
	rankWindowBytes = 12
	rankSlotBytes   = 33 // of each rank up to the largest: its place in hosts and rows
	lastSeqBytes    = 16
	baselineBytes   = 16 // of each collective of the window
)

func (j *joiner) runOf(from *From) *run {
	r := j.runs[from.Run]
	if r == nil {
		trace, span := spans.RunIDs(from.Run)
		r = &run{
			id: from.Run, trace: trace, span: span, file: from.Path, began: math.MaxInt64, comms: make(map[commKey]*communicator), clocks: make(map[string]int32),
			nodes: make(map[string]int32), ranks: make(map[int32]int32), told: make(map[[2]int32]int64),
		}
		j.runs[from.Run] = r
	}
	r.file = min(r.file, from.Path) // ranks' logs are met in any order
	return r
}

// source makes the source of a host. Each host has a clock of its own, and so has each file where the host is not known or the clock is no host's.
func (j *joiner) source(from *From, host []byte, pid int64) *source {
	r := j.runOf(from)
	name := j.names.Text(host)
	s := &source{host: name, pid: pid, name: name, key: name, coarse: from.Coarse}
	if name == "" || from.OwnClock {
		s.name, s.key = from.Path, filepath.Base(from.Path)
	}
	var ok bool
	if s.clock, ok = r.clocks[s.name]; !ok {
		s.clock = clocks.MaxClocks // is not looked at
		if len(r.hosts) < clocks.MaxClocks {
			s.clock = int32(len(r.hosts))
			r.hosts = append(r.hosts, s)
			r.clocks[s.name] = s.clock
		}
	}
	if s.node, ok = r.nodes[s.host]; !ok {
		s.node = op.Unknown
		if s.host != "" && len(r.nodeNames) < clocks.MaxClocks {
			s.node = int32(len(r.nodeNames))
			r.nodeNames = append(r.nodeNames, s.host)
			r.nodes[s.host] = s.node
		}
	}
	return s
}

// communicator finds the one of an id, or takes it up.
func (j *joiner) communicator(from *From, id []byte) *communicator {
	return j.find(j.runOf(from), commKey{from.Family, spans.Name(id)})
}

func (j *joiner) find(r *run, key commKey) *communicator {
	c := r.comms[key]
	if c == nil {
		c = &communicator{run: r, family: key.family, id: key.id, baselines: make(map[baselineKey]*baseline.Baseline)}
		c.window = late.NewWindow(j.set.WindowSize)
		r.comms[key] = c
		j.remember(c, commBytes)
	}
	return c
}

// note takes over what a record says about its communicator.
func (j *joiner) note(r *record) {
	if r.comm.forgotten {
		r.comm = j.find(r.comm.run, commKey{r.comm.family, r.comm.id})
	}
	c, o := r.comm, r.op
	c.used = r.at
	if o.CommSize > 0 {
		c.size = o.CommSize
	}
	c.sparse = c.sparse || o.Sends > 0
	c.global = c.global || o.Global
	if len(o.CommName) > 0 && string(o.CommName) != c.name && string(o.CommName) != unnamed {
		c.name = j.names.Text(o.CommName)
	}
}

// unnamed is the name that NCCL Inspector writes where a communicator has none.
const unnamed = "unknown"

// track finds the sequence of an operation.
func (j *joiner) track(comm *communicator, o *op.Op) *track {
	var at **track
	switch {
	case o.SeqOfAll:
		at = &comm.all
	case o.Kind != op.Other:
		at = &comm.tracks[o.Kind]
	default:
		t := comm.others[string(o.Name)]
		if t == nil {
			if comm.others == nil {
				comm.others = make(map[string]*track)
			}
			t = j.newTrack(comm)
			comm.others[j.names.Text(o.Name)] = t
		}
		return t
	}
	if *at == nil {
		*at = j.newTrack(comm)
	}
	return *at
}

func (j *joiner) newTrack(comm *communicator) *track {
	j.remember(comm, trackBytes)
	return &track{key: j.ghosts.track(), open: make(map[uint64]*Collective)}
}

// beyond says whether a rank has gone on.
func (t *track) beyond(rank int32, seq uint64) bool {
	return int(rank) < len(t.last) && t.last[rank].seen && t.last[rank].seq > seq
}

// see takes note of a rank of a communicator.
func (j *joiner) see(comm *communicator, rank int32, src *source, in *input) {
	if comm.seen.set(rank) {
		comm.known++
		if n := int(rank) + 1 - len(comm.hosts); n > 0 {
			comm.hosts = append(comm.hosts, make([]*source, n)...)
			comm.rows = append(comm.rows, make([]string, n)...)
			if j.set.Remote {
				comm.inputs = append(comm.inputs, make([]*input, n)...)
			}
			j.remember(comm, rankSlotBytes*n)
		}
		j.remember(comm, rankBytes+rankWindowBytes*j.set.WindowSize)
	}
	if before := comm.hosts[rank]; before == nil || before.host != src.host {
		comm.rows[rank] = j.row(rank, src.host)
	}
	comm.hosts[rank] = src
	if j.set.Remote {
		comm.inputs[rank] = in
	}
	if comm.gone.has(rank) {
		comm.gone.unset(rank)
		comm.lost--
	}
}

// hostOf is where a rank of the communicator runs, as far as the log says.
func (comm *communicator) hostOf(rank int32) string {
	if int(rank) < len(comm.hosts) && comm.hosts[rank] != nil {
		return comm.hosts[rank].host
	}
	return ""
}

// ranksOf is how many ranks of a communicator of so many have records that come.
func (j *joiner) ranksOf(size int32) int {
	if j.ranks == nil {
		return int(size)
	}
	n := 0
	for rank := range j.ranks {
		if rank < size {
			n++
		}
	}
	return n
}

// lose takes note that a rank was waited for in vain.
func (comm *communicator) lose(rank int32) {
	if !comm.gone.has(rank) {
		comm.gone.set(rank)
		comm.lost++
	}
}

// rowKey is the key of the name of a rank's spans.
type rowKey struct {
	rank int32
	host string
}

// maxRows bounds the names of ranks' spans: Jaeger lists them as operations, and metrics made of spans have a series for each.
const maxRows = 4096

// row names the spans of a rank. Beyond so many all have one name.
func (j *joiner) row(rank int32, host string) string {
	if j.set.HideHosts {
		host = ""
	}
	key := rowKey{rank, host}
	name, ok := j.rows[key]
	if !ok {
		if name = spans.SpanNCCLRank; len(j.rows) < maxRows {
			name = spans.NCCLRankName(rank, host)
			j.rows[key] = name
		}
	}
	return name
}

func (j *joiner) remember(c *communicator, bytes int) {
	c.bytes += int64(bytes)
	j.remembered += int64(bytes)
}

// forget makes room for new communicators: it forgets communicators in which nothing waits, the least recently heard of first.
func (j *joiner) forget() {
	var idle []*communicator
	for _, r := range j.runs {
		for _, c := range r.comms {
			if c.open == 0 {
				idle = append(idle, c)
			}
		}
	}
	slices.SortFunc(idle, func(x, y *communicator) int { return cmp.Compare(x.used, y.used) })
	for _, c := range idle {
		if j.remembered <= j.set.MaxStateBytes*3/4 {
			return
		}
		j.remembered -= c.bytes
		delete(c.run.comms, commKey{c.family, c.id})
		// Inputs still have it, and collectives that have left.
		c.tracks, c.others, c.all, c.seen, c.gone, c.window, c.baselines = [op.Kinds]*track{}, nil, nil, nil, nil, nil, nil
		c.hosts, c.inputs, c.rows, c.progress = nil, nil, nil, nil
		c.forgotten = true
	}
}
