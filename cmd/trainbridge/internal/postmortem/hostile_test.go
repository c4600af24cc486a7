package postmortem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// scan adds the events of a text to a case.
func (c *Case) scan(file string, text []byte) {
	s := events.NewScanner(file, time.UTC, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	add := func(all []events.Event) {
		for i := range all {
			c.Events = append(c.Events, Event{Event: all[i], At: digest.At{File: file, Offset: all[i].Line}})
		}
	}
	for line := range bytes.Lines(text) {
		add(s.Line(bytes.TrimRight(line, "\r\n")))
	}
	add(s.Flush())
}

// TestCuts: 10,000 random cuts of the logs of failed jobs never give an all-clear.
func TestCuts(t *testing.T) {
	var logs [][]byte
	truths, err := filepath.Glob("testdata/*/*.json")
	require.NoError(t, err)
	more, err := filepath.Glob("testdata/endings/*/truth.json")
	require.NoError(t, err)
	for _, path := range append(truths, more...) {
		var truth struct{ Kind string }
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &truth))
		if truth.Kind == "healthy" || truth.Kind == "after_end" {
			continue
		}
		log := strings.TrimSuffix(path, ".json") + ".log"
		if strings.HasSuffix(path, "truth.json") {
			log = filepath.Join(filepath.Dir(path), "job.log")
		}
		if b, err := os.ReadFile(log); err == nil {
			logs = append(logs, b)
		}
	}
	require.Greater(t, len(logs), 250)
	r := rand.New(rand.NewPCG(1, 2))
	cuts := 10_000
	if testing.Short() {
		cuts = 1_000
	}
	for range cuts {
		log := logs[r.IntN(len(logs))]
		from := 0
		if r.IntN(4) == 0 {
			from = r.IntN(len(log))
		}
		to := from + r.IntN(len(log)-from+1)
		c := &Case{LastStep: -1}
		c.scan("job.log", log[from:to])
		end := Judge(c)
		assert.NotEmpty(t, end.Sentence)
		if end.Kind == KindHealthy || end.Kind == KindAfterEnd {
			t.Fatalf("%s: %s\n%s", end.Kind, end.Sentence, log[from:to])
		}
	}
}

// job composes the logs of a job that dies: the line of the guilty rank, the consequences on all others, behind the prefixes of a launcher, on hosts with
// different clocks.
type job struct {
	*rand.Rand
	ranks, perHost int
	style          int // of prefixes
	files          map[string]*bytes.Buffer
	skew           []time.Duration // by host
	start          time.Time
}

const styles = 6

func (j *job) say(rank int, after time.Duration, glog bool, text string) {
	host := rank / j.perHost
	at := j.start.Add(after + j.skew[host])
	stamp := at.Format("2006-01-02 15:04:05,000") + " ERROR "
	if glog { // c10: the month has one digit, and the fraction of the second is of another clock
		stamp = fmt.Sprintf("[E%d%02d %s.%09d ProcessGroupNCCL.cpp:629] ", int(at.Month()), at.Day(), at.Format("15:04:05"), j.IntN(1e9))
	}
	file, prefix := "job.log", ""
	switch j.style {
	case 0:
		prefix = fmt.Sprintf("[rank%d]:", rank)
	case 1:
		prefix = fmt.Sprintf("%d: ", rank)
	case 2:
		prefix = fmt.Sprintf("10.0.0.%d: [rank%d]:", host+1, rank)
	case 3:
		file = fmt.Sprintf("rank_%d.log", rank)
	case 4:
		prefix = fmt.Sprintf("(WorkerDict pid=%d, ip=10.0.0.%d) [rank%d]:", 1000+rank, host+1, rank)
	case 5:
		file, prefix = fmt.Sprintf("node%d.log", host), fmt.Sprintf("[default%d]:[rank%d]:", rank%j.perHost, rank)
	}
	b := j.files[file]
	if b == nil {
		b = new(bytes.Buffer)
		j.files[file] = b
	}
	fmt.Fprintf(b, "%s%s%s\n", prefix, stamp, text)
}

// die has a rank die, or all wait, or all raise, and returns the expected conclusion.
func (j *job) die(guilty, how int) (kind string, ranks []int64) {
	others := func(after time.Duration, glog bool, text string) {
		for _, rank := range j.Perm(j.ranks) {
			if rank != guilty {
				j.say(rank, after+time.Duration(j.IntN(1500))*time.Millisecond, glog, text)
			}
		}
	}
	raise := func(rank int, exception string) {
		for i, line := range []string{"Traceback (most recent call last):", `  File "/job/train.py", line 7, in step`, exception} {
			j.say(rank, time.Minute+time.Duration(i)*time.Millisecond, false, line)
		}
	}
	const timeout = "[PG ID 0 PG GUID 0(default_pg) Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=57, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600009 milliseconds before timing out."
	ranks = []int64{int64(guilty)}
	switch how {
	case 0:
		j.say(guilty, time.Minute, true, "[PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered")
		others(11*time.Minute, true, timeout)
		return "cuda_error", ranks
	case 1:
		raise(guilty, "ValueError: bad batch")
		others(11*time.Minute, true, timeout)
		return "exception", ranks
	case 2:
		j.say(guilty, time.Minute, false, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.00 GiB is free.")
		others(time.Minute+5*time.Second, false, "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.9]:4711")
		return "cuda_oom", ranks
	case 3:
		others(11*time.Minute, true, timeout)
		others(11*time.Minute+2*time.Second, true, "[PG ID 0 PG GUID 0(default_pg) Rank 1] To avoid data inconsistency, we are taking the entire process down.")
		return "collective_timeout", nil
	case 4:
		j.say(guilty, time.Minute, false, "RuntimeError: CUDA error: uncorrectable ECC error encountered")
		others(time.Minute+5*time.Second, false, "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, remote process exited or there was a network error, NCCL version 2.21.5")
		return "gpu_ecc", ranks
	}
	for rank := range j.ranks {
		raise(rank, "KeyError: 'labels'")
	}
	return "exception", nil
}

func TestCompositions(t *testing.T) {
	wrong := 0
	const seeds, ways = 360, 6
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		j := &job{Rand: r, ranks: 8 * (1 + r.IntN(4)), perHost: 8, style: seed % styles, files: map[string]*bytes.Buffer{}}
		j.start = time.Date(2025, 11, 3, 10, 0, 0, 0, time.UTC)
		for range j.ranks / j.perHost {
			j.skew = append(j.skew, time.Duration(r.IntN(4000)-2000)*time.Millisecond)
		}
		want, ranks := j.die(r.IntN(j.ranks), seed/styles%ways)
		c := &Case{LastStep: -1, WorldSize: int64(j.ranks)}
		for _, file := range slices.Sorted(maps.Keys(j.files)) {
			c.scan(file, j.files[file].Bytes())
		}
		end := Judge(c)
		for _, rank := range end.Ranks {
			assert.Contains(t, ranks, rank, "seed %d: an innocent rank: %s", seed, end.Sentence)
		}
		if end.Kind != want || !slices.Equal(end.Ranks, ranks) {
			wrong++
			t.Logf("seed %d, style %d: want %s %v, got %s %v: %s", seed, j.style, want, ranks, end.Kind, end.Ranks, end.Sentence)
		}
	}
	assert.LessOrEqual(t, wrong*20, seeds, "wrong of %d", seeds)
}

// Of two failed processes, one of an unknown rank, none is named: process 100 would be called rank 9.
func TestFailedProcessOfUnknownRank(t *testing.T) {
	first := "E0813 06:19:49.809000 1 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 100) of binary: /usr/bin/python3\n"
	named := "Root Cause (first observed failure):\n[0]:\n  time      : 2024-08-13_06:19:50\n  host      : node-1\n  rank      : 9 (local_rank: 1)\n" +
		"  exitcode  : 1 (pid: 200)\n  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
	for _, tt := range []struct {
		text string
		want []int64
	}{
		{first + named, nil},
		{strings.ReplaceAll(first, "pid: 100", "pid: 200") + named, []int64{9}},
		{named, []int64{9}},
	} {
		c := &Case{LastStep: -1, WorldSize: 16}
		c.scan("job.log", []byte(tt.text))
		end := Judge(c)
		assert.Equal(t, tt.want, end.Ranks, end.Sentence)
	}
}
