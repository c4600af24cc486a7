package flightrecorder

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var torch = flag.String("torch", "", "a directory with torch/distributed/flight_recorder of PyTorch 2.15.0: its answers are written anew")

const (
	oracleSets = 600
	answers    = "testdata/fr_trace.jsonl.gz"
)

// answer is a line of testdata/fr_trace.py.
type answer struct {
	Set     string            `json:"set"`
	Missing []int32           `json:"missing"`
	Odd     []json.RawMessage `json:"odd"`
	Error   string            `json:"error"`
}

// odd is a fault of an operation by fr_trace.
type odd struct {
	name, desc string
	seq, p2p   int64
	lacking    []int32
	differ     map[string]string
}

func (o *odd) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&o.name, &o.desc, &o.seq, &o.p2p, &o.lacking, &o.differ})
}

// read reads the pickles of dumps.
func read(t *testing.T, dumps []*Dump) []*Dump {
	t.Helper()
	var r Reader
	var out []*Dump
	for _, d := range dumps {
		again := &Dump{Rank: d.Rank}
		require.NoError(t, r.Read(pickled(d), again))
		out = append(out, again)
	}
	return out
}

// TestOracle compares Analyze with torch.distributed.flight_recorder.fr_trace of PyTorch 2.15.0. To record its answers anew:
//
//	make fr-trace TORCH=DIR
//
// Where fr_trace abstains or errs, less is compared:
//   - Of a group with a missing dump fr_trace names no rank that lacks an operation.
//   - After the first difference in a group fr_trace no longer checks the sums of all-to-alls.
//   - A send or a receive in a group of more than two ranks counts as lacking on the others: no set has one.
//   - fr_trace does not compare the data types of sends and receives.
//   - Dumps are cut to the highest first record_id, a count over the operations of all groups: sets with small buffers have one group, and begin
//     alike. Entries before the beginning of a dump count as lacking there.
//   - Where a coalesced launch of one rank meets another operation of another rank, fr_trace reports both as lacking or with different sizes, and takes
//     entries of other groups as the launch's: of these sets, the earlier part of the group is compared, and the presence of a fault at the number.
//   - fr_trace dies of dumps of gloo (TestGloo), and of unknown operations.
func TestOracle(t *testing.T) {
	if *torch != "" {
		ask(t)
	}
	f, err := os.Open(answers)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	sets, findings := 0, 0
	for lines.Scan() {
		var want answer
		require.NoError(t, json.Unmarshal(lines.Bytes(), &want))
		seed, err := strconv.ParseUint(want.Set, 10, 64)
		require.NoError(t, err)
		sets++
		findings += same(t, want, seed)
	}
	require.NoError(t, lines.Err())
	assert.Equal(t, oracleSets, sets)
	t.Logf("%d sets, %d operations that ranks lack or that differ", sets, findings)
}

// same compares the answers about one set.
func same(t *testing.T, want answer, seed uint64) int {
	t.Helper()
	require.Empty(t, want.Error, "set %d", seed)
	dumps := read(t, generate(seed))
	groups := Analyze(slices.Values(dumps))
	tornGroup, tornSeq := torn(dumps)
	missing, abstains := []int32{}, map[string]bool{} // ranks, groups
	for _, g := range groups {
		missing = append(missing, g.Missing...)
		abstains[g.Name] = len(g.Missing) > 0
	}
	slices.Sort(missing)
	assert.ElementsMatch(t, want.Missing, slices.Compact(missing), "set %d", seed)

	// comparable leaves out the faults that fr_trace omits or gets wrong.
	comparable := func(o odd) (string, bool) {
		switch {
		case tornSeq > 0 && (o.name != tornGroup || o.seq > tornSeq), o.seq < begins(dumps):
			return "", false
		case tornSeq > 0 && o.seq == tornSeq:
			o.lacking, o.differ = nil, nil
			return key(o), !abstains[o.name]
		}
		return key(o), len(o.lacking)+len(o.differ) > 0
	}
	wanted, got := map[string]bool{}, map[string]bool{}
	for _, raw := range want.Odd {
		var o odd
		require.NoError(t, json.Unmarshal(raw, &o))
		if k, ok := comparable(o); ok {
			wanted[k] = true
		}
	}
	for _, g := range groups {
		for i, c := range g.Odd {
			if sums := len(c.Differ) == 1 && c.Differ[0].Rank == c.Reference; sums && c.Seq != tornSeq && (i > 0 || abstains[g.Name]) {
				continue
			}
			if k, ok := comparable(oddOf(&g, c)); ok {
				got[k] = true
			}
		}
	}
	assert.Equal(t, sortedKeys(wanted), sortedKeys(got), "set %d", seed)
	return len(wanted)
}

// oddOf puts a Collective in the form of fr_trace.
func oddOf(g *Group, c *Collective) odd {
	o := odd{name: g.Name, desc: g.Desc, seq: c.Seq, lacking: c.Lacking, differ: map[string]string{}}
	if c.P2P {
		o.seq, o.p2p = 0, c.Seq
	}
	if len(g.Missing) > 0 {
		o.lacking = nil
	}
	for _, d := range c.Differ {
		if c.P2P && d.What == Dtypes {
			continue
		}
		o.differ[strconv.Itoa(int(d.Rank))] = map[What]string{
			Type: "COLLECTIVE_TYPE_MISMATCH", Sizes: "SIZE_OR_SYNTAX_MISMATCH", Dtypes: "COLLECTIVE_DTYPE_MISMATCH", State: "COLLECTIVE_STATE_MISMATCH",
		}[d.What]
	}
	return o
}

// torn finds a coalesced launch that is none on another rank: its group and the first number; 0: none.
func torn(dumps []*Dump) (name string, seq int64) {
	type number struct {
		name string
		seq  int64
	}
	forms := map[number]map[string]bool{}
	for _, d := range dumps {
		own := map[number]string{}
		for i := range d.Entries {
			if e := &d.Entries[i]; !e.IsP2P {
				form := "operation "
				if e.Name == "nccl:coalesced" {
					form = "end"
				}
				own[number{string(e.ProcessGroup[0]), int64(e.Collective)}] += form
			}
		}
		for n, form := range own {
			if forms[n] == nil {
				forms[n] = map[string]bool{}
			}
			forms[n][form] = true
		}
	}
	for n, all := range forms {
		if len(all) > 1 && (seq == 0 || n.seq < seq || n.seq == seq && n.name < name) {
			name, seq = n.name, n.seq
		}
	}
	return name, seq
}

// begins is the first number of the last dump with dropped entries; 0: none were dropped.
func begins(dumps []*Dump) (seq int64) {
	for _, d := range dumps {
		if len(d.Entries) > 0 && d.Entries[0].RecordID > 0 {
			seq = max(seq, int64(d.Entries[0].Collective))
		}
	}
	return seq
}

func key(o odd) string {
	if o.differ == nil {
		o.differ = map[string]string{}
	}
	return fmt.Sprintf("%s %s %d %d lack %v differ %v", o.name, o.desc, o.seq, o.p2p, append([]int32{}, o.lacking...), o.differ)
}

// ask has fr_trace look at the sets.
func ask(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for seed := range uint64(oracleSets) {
		set := filepath.Join(dir, fmt.Sprintf("%04d", seed))
		require.NoError(t, os.Mkdir(set, 0o755))
		for _, d := range generate(seed) {
			require.NoError(t, os.WriteFile(filepath.Join(set, fmt.Sprintf("nccl_trace_rank_%d", d.Rank)), pickled(d), 0o600))
		}
	}
	out, err := exec.Command("python3", "testdata/fr_trace.py", *torch, dir).Output()
	require.NoError(t, err)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err = w.Write(out)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(answers, z.Bytes(), 0o600))
}
