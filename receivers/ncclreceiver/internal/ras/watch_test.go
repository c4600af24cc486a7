package ras

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/ncclras"
	"github.com/trainbridge/trainbridge/internal/ncclras/rastest"
)

const (
	broadcast = 0
	gather    = 2
	reduce    = 4
)

// job is a job, asked once a minute.
type job struct {
	Watch
	at    time.Time
	comms []ncclras.Communicator
}

func newJob(comms ...ncclras.Communicator) *job {
	return &job{Watch: Watch{Patience: 5 * time.Minute}, at: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), comms: comms}
}

// launch has all ranks of a communicator launch n collectives.
func (j *job) launch(comm, op int, n uint64) {
	for i := range j.comms[comm].Ranks {
		j.comms[comm].Ranks[i].Counts[op] += n
	}
}

// see asks once.
func (j *job) see() ([]Finding, Summary) {
	a := rastest.Job(1)
	a.Communicators = nil
	for _, c := range j.comms { // an answer is not changed by the next
		own := c
		own.Ranks, own.Missing = nil, append([]ncclras.Missing(nil), c.Missing...)
		for _, r := range c.Ranks {
			r.Counts = append([]uint64(nil), r.Counts...)
			own.Ranks = append(own.Ranks, r)
		}
		a.Communicators = append(a.Communicators, own)
	}
	j.at = j.at.Add(time.Minute)
	return j.See(j.at, a)
}

// polls asks n times and returns each finding with the number of its question: "2 behind".
func (j *job) polls(n int) (said []string) {
	for i := range n {
		found, _ := j.see()
		for _, f := range found {
			said = append(said, fmt.Sprintf("%d %s", i, f.Kind))
		}
	}
	return said
}

// A healthy job says nothing: counts advance, ranks differ by the launches between the reading of the first and the last rank, and some communicators
// (pipelines, CUDA graphs) are not counted at all.
func TestHealthy(t *testing.T) {
	j := newJob(rastest.Comm(0, 16), rastest.Comm(0, 8), rastest.Comm(8, 16))
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		j.launch(0, reduce, 50+random.Uint64N(50))
		for i := range j.comms[0].Ranks {
			j.comms[0].Ranks[i].Counts[gather] += random.Uint64N(3)
		}
		if random.IntN(3) > 0 {
			j.launch(2, gather, 1)
		}
		found, sum := j.see()
		require.Empty(t, found)
		require.EqualValues(t, 32, sum.Heard)
	}
}

// A rank behind is named when all have stood still over two answers, and again as a hang after Patience.
func TestBehind(t *testing.T) {
	j := newJob(rastest.Comm(0, 32), rastest.Comm(0, 2))
	assert.Empty(t, j.polls(1))
	j.launch(0, gather, 640)
	j.launch(1, reduce, 3)
	assert.Empty(t, j.polls(1))
	j.launch(0, gather, 1)
	j.comms[0].Ranks[12].Counts[gather]--
	assert.Empty(t, j.polls(2))
	found, sum := j.see()
	require.Len(t, found, 1)
	f := found[0]
	assert.Equal(t, Behind, f.Kind)
	assert.Equal(t, []int32{12}, f.Behind)
	assert.EqualValues(t, 31, f.AheadCount)
	assert.Equal(t, 2*time.Minute, f.For)
	assert.False(t, f.Hang)
	assert.Equal(t, []string{"rank 12: 10.137.0.2, pid 323012, GPU 4"}, f.Processes)
	assert.Contains(t, f.Counts, "AllGather: 1 rank at 640, 31 ranks at 641")
	assert.Equal(t, "communicator 0xfa93daea854b060b of 32 ranks: rank 12 is behind 31 ranks (0, 1, 2, 3, 4, 5, 6, 7, …), and nobody of them has launched anything "+
		"for 2m0s (AllGather: 1 rank at 640, 31 ranks at 641). RAS counts launches: who is behind need not be the cause", f.Text)
	assert.Equal(t, Summary{Heard: 33, Behind: 1, For: 2 * time.Minute, Known: true}, sum)
	assert.Equal(t, []string{"2 behind"}, j.polls(30)) // the hang
	j.comms[0].Ranks[12].Counts[gather]++
	assert.Equal(t, []string{"0 moved"}, j.polls(1))
	j.launch(0, gather, 1)
	assert.Empty(t, j.polls(4))
}

// nccl#1911: two ranks are ahead, and the thirty are behind.
func TestMinorityAhead(t *testing.T) {
	j := newJob(rastest.Comm(0, 32))
	j.launch(0, gather, 640)
	j.comms[0].Ranks[12].Counts[gather]++
	j.comms[0].Ranks[13].Counts[gather]++
	assert.Empty(t, j.polls(2))
	found, _ := j.see()
	require.Len(t, found, 1)
	assert.Equal(t, []int32{12, 13}, found[0].Ahead)
	assert.EqualValues(t, 30, found[0].BehindCount)
	assert.Contains(t, found[0].Text, "30 ranks (0, 1, 2, 3, 4, 5, 6, 7, …) are behind ranks 12, 13")
}

// While a process of a communicator launches something elsewhere, as pipeline stages do, nobody is behind.
func TestBusyElsewhere(t *testing.T) {
	j := newJob(rastest.Comm(0, 4), rastest.Comm(0, 2))
	j.comms[0].Ranks[3].Counts[gather]++
	for range 20 {
		j.launch(1, reduce, 1)
		assert.Empty(t, j.polls(1))
	}
	assert.Equal(t, []string{"1 behind", "4 behind"}, j.polls(10))
}

// Each side has launched more of some operation: nobody is behind.
func TestDiverged(t *testing.T) {
	j := newJob(rastest.Comm(0, 4))
	j.comms[0].Ranks[1].Counts[gather]++
	j.comms[0].Ranks[2].Counts[broadcast]++
	assert.Empty(t, j.polls(2))
	found, sum := j.see()
	require.Len(t, found, 1)
	assert.Equal(t, Diverged, found[0].Kind)
	assert.Empty(t, found[0].Behind)
	assert.Empty(t, found[0].Processes)
	assert.Contains(t, found[0].Text, "RAS cannot tell who is wrong")
	assert.EqualValues(t, 4, sum.Heard)
	assert.Equal(t, []string{"2 diverged"}, j.polls(10))
}

// nccl#1730: all counts are equal and no longer change. Nobody is named, once, and only after an advance.
func TestStill(t *testing.T) {
	j := newJob(rastest.Comm(0, 256), rastest.Comm(0, 8))
	assert.Empty(t, j.polls(30)) // waiting for data, or running CUDA graphs only
	j.launch(0, reduce, 2398578)
	assert.Empty(t, j.polls(5))
	found, sum := j.see()
	require.Len(t, found, 1)
	f := found[0]
	assert.Equal(t, Still, f.Kind)
	assert.Equal(t, "nobody advanced for 5m0s: none of 256 GPUs has launched a collective in any of 2 communicators, and all counts are equal. RAS cannot tell who "+
		"(it counts launches, and neither Send and Recv nor CUDA graphs)", f.Text)
	assert.Empty(t, f.Comm)
	assert.Empty(t, f.Processes)
	assert.False(t, f.Hang)
	assert.EqualValues(t, 264, sum.Heard)
	assert.Equal(t, 5*time.Minute, sum.For)
	assert.Empty(t, j.polls(30))
	j.launch(1, reduce, 1)
	found, _ = j.see()
	require.Len(t, found, 1)
	assert.Equal(t, "the job goes on: collectives are launched again after 36m0s", found[0].Text)
	assert.Equal(t, []string{"4 still"}, j.polls(10))
	// The job goes on in a new communicator alone.
	j.comms = append(j.comms, rastest.Comm(0, 16))
	assert.Empty(t, j.polls(1))
	j.launch(2, reduce, 1)
	assert.Equal(t, []string{"0 moved"}, j.polls(1))
}

// At the end of a job some ranks have destroyed the communicator, others not.
func TestEnding(t *testing.T) {
	j := newJob(rastest.Comm(0, 4))
	j.polls(1)
	j.launch(0, reduce, 5)
	j.comms[0].Ranks[1].Counts[reduce]--
	j.comms[0].Ranks[2].DestroyFlag = true
	assert.Empty(t, j.polls(20))
	j.comms[0].Missing = []ncclras.Missing{{Rank: 3, Process: rastest.Process(3)}} // has answered
	j.comms[0].Ranks = j.comms[0].Ranks[:3]
	assert.Empty(t, j.polls(20))
	_, sum := j.see()
	assert.EqualValues(t, 1, sum.Absent)
}

// Silent processes are reported at the second answer, dead processes at once, unknown processes never.
func TestMissing(t *testing.T) {
	j := newJob(rastest.Comm(0, 16))
	c := &j.comms[0]
	j.polls(2)
	lose := func(rank int, dead bool) {
		c.Missing = append(c.Missing, ncclras.Missing{Rank: int32(rank), Process: rastest.Process(rank), Unresponsive: true, Dead: dead})
		c.Ranks = c.Ranks[:rank]
	}
	lose(15, false)
	j.launch(0, reduce, 1)
	assert.Empty(t, j.polls(1))
	j.launch(0, reduce, 1)
	found, sum := j.see()
	require.Len(t, found, 1)
	assert.Equal(t, Missing, found[0].Kind)
	assert.Equal(t, []int32{15}, found[0].Missing)
	assert.Equal(t, []string{"rank 15: 10.137.0.2, pid 323015, GPU 7"}, found[0].Processes)
	assert.Contains(t, found[0].Text, "(0 given up by RAS)")
	assert.Equal(t, [2]int64{15, 1}, [2]int64{sum.Heard, sum.Unresponsive})
	c.Missing[0].Dead = true
	lose(14, true)
	found, sum = j.see()
	require.Len(t, found, 1)
	assert.Equal(t, []int32{14, 15}, found[0].Missing)
	assert.EqualValues(t, 2, sum.Dead)
	c.Missing[1].Process = ncclras.Process{Host: "unknown", PID: -1}
	_, sum = j.see()
	assert.EqualValues(t, 1, sum.Absent)

	all := rastest.Comm(0, 16)
	c.Missing, c.Ranks = nil, all.Ranks
	assert.Equal(t, []string{"0 moved"}, j.polls(1))
}

// Errors are reported at once, with the reporting ranks.
func TestFailed(t *testing.T) {
	j := newJob(rastest.Comm(0, 8))
	j.comms[0].Ranks[3].AsyncError, j.comms[0].Ranks[4].AsyncError, j.comms[0].Ranks[5].InitState = 6, 6, 2
	found, sum := j.see()
	require.Len(t, found, 1)
	assert.Equal(t, []string{"ncclSystemError: rank 5", "ncclRemoteError: ranks 3, 4"}, found[0].Errors)
	assert.EqualValues(t, 3, sum.Failed)
	assert.Len(t, found[0].Processes, 3)
	assert.Empty(t, j.polls(10))
}

// While communicators are made, NCCL may list empty communicators, and communicators and ranks twice: these are not compared.
func TestUnsettled(t *testing.T) {
	for _, odd := range []func(j *job){
		func(j *job) {
			j.comms = append(j.comms, ncclras.Communicator{Hash: "0x0", Secondary: "0x0:0x0"}, ncclras.Communicator{Hash: "0x0"})
		},
		func(j *job) {
			j.comms[0].Ranks[1].Counts[reduce]++
			j.comms = append(j.comms, j.comms[0])
		},
		func(j *job) { j.comms[0].Ranks = append(j.comms[0].Ranks, j.comms[0].Ranks[0]) },
		func(j *job) { j.comms[0].Ranks[1].Rank = 0 },
	} {
		j := newJob(rastest.Comm(0, 4))
		j.polls(1)
		odd(j)
		assert.Empty(t, j.polls(10))
	}
	j := newJob()
	_, sum := j.see()
	assert.False(t, sum.Known)
}

// Two jobs of a user share a port and answer in turns: each is judged by its own answers.
func TestTwoJobs(t *testing.T) {
	a, b := rastest.Comm(0, 8), rastest.Comm(100, 108)
	j := newJob(a)
	var said []string
	for i := range 16 {
		j.comms = []ncclras.Communicator{a}
		if i%2 == 0 {
			a.Ranks[0].Counts[reduce] = 1 // the others never
		} else {
			j.comms = []ncclras.Communicator{b}
			j.launch(0, reduce, 1)
		}
		found, _ := j.see()
		for _, f := range found {
			said = append(said, fmt.Sprintf("%d %s %s", i, f.Kind, f.Comm))
		}
	}
	assert.Equal(t, []string{"4 behind " + a.Hash, "6 behind " + a.Hash}, said)
}

// Of many communicators 32 are reported, with the number of equal ones; and 50,000 ranks are judged in little time.
func TestMany(t *testing.T) {
	var comms []ncclras.Communicator
	for i := range 100 {
		c := rastest.Comm(2*i, 2*i+2)
		c.Ranks[1].Counts[reduce] = 1
		comms = append(comms, c)
	}
	j := newJob(comms...)
	j.polls(2)
	found, _ := j.see()
	require.Len(t, found, maxFindings)
	assert.EqualValues(t, 100, found[0].Communicators)
	assert.Empty(t, j.polls(2))

	j = newJob(rastest.Comm(0, 50_000))
	j.comms[0].Ranks[1].Counts[reduce] = 1
	j.polls(2)
	found, sum := j.see()
	require.Len(t, found, 1)
	assert.EqualValues(t, 49_999, found[0].BehindCount)
	assert.Len(t, found[0].Behind, maxNamed)
	assert.Len(t, found[0].Processes, maxProcesses)
	assert.Less(t, len(found[0].Text)+len(strings.Join(found[0].Counts, "")), 1000)
	assert.EqualValues(t, 49_999, sum.Behind)
}

// Kinds take turns where findings are too many: a host missing everywhere hides nothing else.
func TestMostOfEachKind(t *testing.T) {
	j := judge{}
	for i := range 100 {
		j.found = append(j.found, Finding{Kind: Missing, Comm: fmt.Sprint("m", i), Size: int64(i)})
	}
	j.found = append(j.found, Finding{Kind: Moved}, Finding{Kind: Diverged, Comm: "d"}, Finding{Kind: Diverged, Comm: "e"})
	var got []string
	for _, f := range j.most() {
		if f.Kind != Missing || f.Size > 97 {
			got = append(got, fmt.Sprint(f.Kind, f.Comm, f.Communicators))
		}
	}
	assert.Equal(t, []string{"divergedd2", "divergede2", "missingm99100", "missingm98100", "moved0"}, got)
	assert.Len(t, j.most(), maxFindings)
}

// Absent communicators are forgotten, and endless new communicators take bounded memory.
func TestForget(t *testing.T) {
	j := newJob()
	for i := range 300 {
		j.comms = []ncclras.Communicator{rastest.Comm(1000*i, 1000*i+1000)}
		j.see()
		assert.LessOrEqual(t, len(j.Watch.comms), forget)
		assert.LessOrEqual(t, len(j.gpus), forget*1000)
		assert.LessOrEqual(t, j.kept, forget*1000)
	}
}
