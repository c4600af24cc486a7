package flightrecorder

import (
	"math/rand/v2"
	"slices"
	"strconv"
)

// jobGroup is a process group of a generated job.
type jobGroup struct {
	name, desc string
	ranks      []int32
}

// step is a common operation of the ranks of a group.
type step struct {
	group int
	op    string
	parts int // of a coalesced launch
	count int64
}

// generate makes the dumps of a job of 2 to 16 ranks, with faults: ranks that stop, omit or exchange an operation, different sizes, data types and states,
// missing dumps, and buffers that were too small. The dumps depend on the seed alone.
func generate(seed uint64) []*Dump {
	r := rand.New(rand.NewPCG(seed, 30))
	n := int32(2 + r.IntN(15))
	groups := jobGroups(r, n)
	steps := make([]step, 4+r.IntN(20))
	for i := range steps {
		steps[i] = someStep(r, groups)
	}
	dumps := make([]*Dump, n)
	for rank := range n {
		dumps[rank] = &Dump{Rank: rank, Version: "2.10", PGConfig: map[string]PG{}, PGStatus: map[string]Status{}}
		for i, g := range groups {
			if slices.Contains(g.ranks, rank) {
				dumps[rank].PGConfig[g.name] = PG{Desc: Text(g.desc), Ranks: g.ranks}
				dumps[rank].PGStatus[strconv.Itoa(i)] = Status{}
			}
		}
	}
	j := job{groups: groups, steps: steps, stops: map[int32]int{}}
	for range r.IntN(3) {
		switch f := (fault{r.Int32N(n), r.IntN(len(steps)), []string{"stop", "op", "size", "dtype", "state", "skip", "none"}[r.IntN(7)]}); f.kind {
		case "stop":
			j.stops[f.rank] = f.step
		default:
			j.faults = append(j.faults, f)
		}
	}
	j.completed = r.IntN(len(steps) + 1)
	for _, d := range dumps {
		j.run(d)
	}
	return lose(r, groups, dumps)
}

// lose drops the entries beyond small buffers, and dumps.
func lose(r *rand.Rand, groups []jobGroup, dumps []*Dump) []*Dump {
	if len(groups) == 1 && r.IntN(4) == 0 { // the buffer was too small
		room := 2 + r.IntN(8)
		first := 0
		for _, d := range dumps {
			first = max(first, len(d.Entries)-room)
		}
		for _, d := range dumps {
			d.Entries = d.Entries[min(first, len(d.Entries)):]
		}
	}
	if r.IntN(4) == 0 {
		for range 1 + r.IntN(2) {
			if len(dumps) > 1 {
				i := r.IntN(len(dumps))
				dumps = slices.Delete(dumps, i, i+1)
			}
		}
	}
	return dumps
}

type fault struct {
	rank int32
	step int
	kind string
}

// job is the work of the ranks.
type job struct {
	groups    []jobGroup
	steps     []step
	faults    []fault
	stops     map[int32]int // the step at which a rank stops
	completed int           // steps
}

// run adds the work of a rank to its dump.
func (j *job) run(d *Dump) {
	seqs, p2ps := make([]Integer, len(j.groups)), make([]Integer, len(j.groups))
	for i, s := range j.steps {
		if stop, ok := j.stops[d.Rank]; ok && i >= stop {
			break
		}
		g := j.groups[s.group]
		own := slices.Index(g.ranks, d.Rank)
		s, state := j.does(d.Rank, i)
		if own < 0 || s.op == "" {
			continue
		}
		entries := entriesOf(s, g, own)
		p2p := entries[0].IsP2P
		if p2p {
			p2ps[s.group]++
		} else {
			seqs[s.group]++
		}
		for _, e := range entries {
			e.RecordID, e.PGID, e.ProcessGroup = Integer(len(d.Entries)), Integer(s.group), []Text{Text(g.name), Text(g.desc)}
			e.Collective, e.P2P, e.Created = seqs[s.group], p2ps[s.group], 1_790_000_000_000_000_000+Integer(i)*1_000_000+Integer(d.Rank)
			e.State, e.Retired, e.TimeoutMS = state, state == "completed", 600_000
			d.Entries = append(d.Entries, e)
		}
		if !p2p {
			status := d.PGStatus[strconv.Itoa(s.group)]
			status.Enqueued++
			if state != "scheduled" {
				status.Started = status.Enqueued
			}
			if state == "completed" {
				status.Completed = status.Enqueued
			}
			d.PGStatus[strconv.Itoa(s.group)] = status
		}
	}
}

// does is a rank's part in a step, and its state; without an operation: none.
func (j *job) does(rank int32, i int) (s step, state Text) {
	s, state = j.steps[i], "completed"
	if i == j.completed {
		state = "started"
	} else if i > j.completed {
		state = "scheduled"
	}
	for _, f := range j.faults {
		if f.rank != rank || f.step != i {
			continue
		}
		switch f.kind {
		case "op":
			s.op = otherOp(s.op)
		case "size":
			s.count += 7
		case "dtype":
			s.count = -s.count
		case "state":
			state = "started"
		case "skip":
			s.op = ""
		}
	}
	return s, state
}

// jobGroups are the group of all ranks, and groups of neighbours and of every second rank.
func jobGroups(r *rand.Rand, n int32) []jobGroup {
	all := jobGroup{name: "0", desc: "default_pg"}
	for rank := range n {
		all.ranks = append(all.ranks, rank)
	}
	groups := []jobGroup{all}
	add := func(desc string, ranks []int32) {
		if len(ranks) > 1 {
			groups = append(groups, jobGroup{name: strconv.Itoa(len(groups)), desc: desc, ranks: ranks})
		}
	}
	if r.IntN(2) == 0 {
		size := []int{2, 2, 4}[r.IntN(3)]
		for ranks := range slices.Chunk(all.ranks, size) {
			add("tp", ranks)
		}
	}
	if r.IntN(3) == 0 {
		for first := range int32(2) {
			var ranks []int32
			for rank := first; rank < n; rank += 2 {
				ranks = append(ranks, rank)
			}
			add("undefined", ranks)
		}
	}
	if r.IntN(3) == 0 {
		add(pipeline, []int32{0, n - 1})
	}
	return groups
}

// pipeline describes groups that only send. fr_trace dies where a send and a collective of a group have one number, because it takes both as a coalesced
// launch.
const pipeline = "pp"

var jobOps = []string{"all_reduce", "_all_gather_base", "_reduce_scatter_base", "broadcast", "all_to_all", "all_reduce_barrier", "reduce", "coalesced"}

func someStep(r *rand.Rand, groups []jobGroup) step {
	s := step{group: r.IntN(len(groups)), op: jobOps[r.IntN(len(jobOps))], parts: 2 + r.IntN(2), count: int64(1+r.IntN(64)) * 16}
	if groups[s.group].desc == pipeline {
		s.op = "send"
	}
	return s
}

func otherOp(op string) string {
	switch op {
	case "all_reduce":
		return "broadcast"
	case "coalesced", "send":
		return op
	}
	return "all_reduce"
}

// entriesOf are the entries of a rank's step; own is the rank in its group. A count below 0 means another data type.
func entriesOf(s step, g jobGroup, own int) []Entry {
	dtype, count, n := Text("BFloat16"), s.count, int64(len(g.ranks))
	if count < 0 {
		dtype, count = "Float", -count
	}
	tensors := func(op string, in, out int64) Entry {
		return Entry{
			Name: Text("nccl:" + op), InputSizes: [][]int64{{in}}, OutputSizes: [][]int64{{out}}, InputDtypes: []Text{dtype}, OutputDtypes: []Text{dtype},
		}
	}
	switch s.op {
	case "_all_gather_base":
		return []Entry{tensors(s.op, count, count*n)}
	case "_reduce_scatter_base":
		return []Entry{tensors(s.op, count*n, count)}
	case "coalesced":
		var all []Entry
		for part := range s.parts {
			all = append(all, tensors("all_reduce", count+int64(part), count+int64(part)))
		}
		return append(all, Entry{Name: "nccl:coalesced"})
	case "send":
		e := tensors("send 0->1", count, count)
		if own == 1 {
			e = tensors("recv 1<-0", count, count)
		}
		e.IsP2P = true
		return []Entry{e}
	}
	return []Entry{tensors(s.op, count, count)}
}
