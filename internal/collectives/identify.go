package collectives

import (
	"math"
	"path/filepath"

	"github.com/trainbridge/trainbridge/internal/collectives/baseline"
	"github.com/trainbridge/trainbridge/internal/collectives/clocks"
	"github.com/trainbridge/trainbridge/internal/collectives/late"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/spans"
)

// record is a rank's record of an operation on its way into a collective.
type record struct {
	part
	comm  *communicator
	track *track // nil: no rank shares the operation
	op    *op.Op
	came  int   // number of its lent lines or offsets
	at    int64 // when the record was read, Unix ns
	known bool  // sent before a restart: Input.Known
}

// identify completes a record before it joins a collective: it updates the communicator, finds the sequence that has the number of the operation, and copies
// the fields of the operation into the part. false: a repeated record of a remote collector, to be dropped.
func (j *joiner) identify(in *input, r *record) bool {
	j.updateCommunicator(r)
	o := r.op
	if o.HasSeq && o.Rank >= 0 && o.Rank <= MaxRank { // the ranks share the number
		r.track = j.track(r.comm, o)
	}
	if j.set.Remote {
		in.alive = max(in.alive, r.at)
		if j.repeated(r) {
			return false
		}
	}
	r.rank, r.state, r.start, r.end, r.duration, r.late = o.Rank, o.State, o.Start, o.End, o.Duration, op.Unknown
	r.reportedAlg, r.reportedBus = o.ReportedAlg, o.ReportedBus
	r.how, r.more = j.howOf(o), moreOf(r)
	return true
}

// updateCommunicator copies into the communicator what the record says about it: size, name, and how its ranks log. A communicator dropped meanwhile is made
// again.
func (j *joiner) updateCommunicator(r *record) {
	if r.comm.forgotten { // the input still has the dropped one
		r.comm = j.communicator(r.comm.run, commKey{r.comm.family, r.comm.id})
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

// unnamed is NCCL Inspector's name of a communicator without one.
const unnamed = "unknown"

// runOf returns the run of an input, made if absent.
func (j *joiner) runOf(from *From) *run {
	r := j.runs[from.Run]
	if r == nil {
		trace, span := spans.RunIDs(from.Run)
		r = &run{
			id: from.Run, trace: trace, span: span, file: from.Path, began: math.MaxInt64, comms: make(map[commKey]*communicator), clocks: make(map[string]int32),
			nodes: make(map[string]int32), ranks: make(map[int32]int32), reportedRecords: make(map[[2]int32]int64),
		}
		j.runs[from.Run] = r
	}
	r.file = min(r.file, from.Path) // ranks' logs are met in any order
	return r
}

// source makes the source of a process on a host, with the numbers of its clock and node in the run. Each host has a clock of its own, and so has each file of
// an unknown host or with a clock different from the host's (From.OwnClock).
func (j *joiner) source(from *From, host []byte, pid int64) *source {
	r := j.runOf(from)
	name := j.names.Text(host)
	s := &source{host: name, pid: pid, name: name, key: name, coarse: from.Coarse}
	if name == "" || from.OwnClock {
		s.name, s.key = from.Path, filepath.Base(from.Path)
	}
	var ok bool
	s.clock, ok = r.clocks[s.name]
	if !ok {
		s.clock = clocks.MaxClocks // without room for a new clock: the estimator ignores this number
		if len(r.hosts) < clocks.MaxClocks {
			s.clock = int32(len(r.hosts))
			r.hosts = append(r.hosts, s)
			r.clocks[s.name] = s.clock
		}
	}
	s.node, ok = r.nodes[s.host]
	if !ok {
		s.node = op.Unknown
		if s.host != "" && len(r.nodeNames) < clocks.MaxClocks {
			s.node = int32(len(r.nodeNames))
			r.nodeNames = append(r.nodeNames, s.host)
			r.nodes[s.host] = s.node
		}
	}
	return s
}

// communicator returns the communicator of a key in a run, made if absent.
func (j *joiner) communicator(r *run, key commKey) *communicator {
	c := r.comms[key]
	if c == nil {
		c = &communicator{run: r, family: key.family, id: key.id, baselines: make(map[baselineKey]*baseline.Baseline)}
		c.window = late.NewWindow(j.set.WindowSize)
		r.comms[key] = c
		j.countMemory(c, commBytes)
	}
	return c
}

// track returns the sequence in which an operation is numbered, made if absent: the sequence of all collectives of the communicator, of the kind of operation,
// or of its name.
func (j *joiner) track(comm *communicator, o *op.Op) *track {
	var place **track
	switch {
	case o.SeqOfAll:
		place = &comm.all
	case o.Kind != op.Other:
		place = &comm.tracks[o.Kind]
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
	if *place == nil {
		*place = j.newTrack(comm)
	}
	return *place
}

// newTrack makes a sequence of a communicator.
func (j *joiner) newTrack(comm *communicator) *track {
	j.countMemory(comm, trackBytes)
	j.departures.tracks++
	return &track{key: j.departures.tracks, open: make(map[uint64]*open)}
}

// maxHows bounds hows; dropped ones may be made again.
const maxHows = 256

// howOf returns the how that all records with the same values share, made if absent; mostly the one of the last record.
func (j *joiner) howOf(o *op.Op) *how {
	h := j.lastHow
	if h != nil && h.timing == string(o.Timing) && h.time == o.Time && h.global == o.Global && h.waits == o.Waits &&
		h.synthetic == (o.Start == 0) && h.unit == o.ReportedUnit {
		return h
	}
	key := how{
		global: o.Global, waits: o.Waits, synthetic: o.Start == 0, time: o.Time, timing: j.names.Text(o.Timing), unit: o.ReportedUnit,
	}
	h = j.hows[key]
	if h == nil {
		if len(j.hows) >= maxHows {
			clear(j.hows)
		}
		h = &key
		j.hows[key] = h
	}
	j.lastHow = h
	return h
}

// moreOf copies the rarely used fields of a record; nil: all are empty. These fields make ids of spans (recordKey), so whether a record has them must depend on
// the record alone.
func moreOf(r *record) *more {
	o := r.op
	noPlace := o.Peer < 0 && o.Source < 0 && o.Destination < 0 && o.Channel < 0 && o.Stream < 0
	noFault := o.Errors == 0 && o.Retries == 0 && !o.TimedOut
	if r.came <= 1 && noPlace && noFault && o.Sends == 0 && len(o.Details) == 0 && o.IDs == nil {
		return nil
	}
	m := &more{
		came: r.came, peer: o.Peer, sourceRank: o.Source, destRank: o.Destination, channel: o.Channel, stream: o.Stream, errors: o.Errors, retries: o.Retries,
		timedOut: o.TimedOut, sends: o.Sends, linkBandwidth: o.LinkBandwidth, linkWorst: o.LinkBandwidthWorst,
	}
	if o.IDs != nil {
		m.trace, m.parent, _ = spans.Carried(r.comm.run.id, o.IDs)
		m.traceText = spans.Text(o.IDs[logids.Trace])
		if m.traceText == "" {
			m.traceText = spans.Text(o.IDs[logids.TraceParent])
		}
	}
	if len(o.Details) > 0 {
		m.details = make([]detail, len(o.Details))
		for i := range o.Details {
			d := &o.Details[i]
			m.details[i] = detail{
				name: d.Name, direction: d.Direction, operation: spans.Name(d.Operation), start: d.Start, end: d.End, duration: d.Duration, size: d.Size,
				channel: d.Channel, peer: d.Peer, step: d.Step, parent: d.Under,
			}
		}
	}
	return m
}

// bytes returns the approximate memory of the rarely used fields, in bytes.
func (m *more) bytes() int64 {
	return moreBytes + int64(len(m.details))*detailBytes + int64(m.came)*moreCameBytes
}
