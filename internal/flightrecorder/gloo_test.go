package flightrecorder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gloo reads dumps that torch 2.15.0 wrote on CPUs, of jobs with these real failures.
func gloo(t *testing.T, name string) (dumps []*Dump) {
	t.Helper()
	files, err := filepath.Glob("testdata/gloo/" + name + "/nccl_trace_rank_*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var r Reader
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		d := &Dump{Rank: RankOf(file)}
		require.NoError(t, r.Read(b, d))
		dumps = append(dumps, d)
	}
	return dumps
}

// PyTorch's pickle and its JSON have the same content (torch._C._distributed_c10d._dump_fr_trace_json).
func TestSameAsJSON(t *testing.T) {
	n := 0
	for _, name := range []string{"group-hang", "mismatch-op"} {
		for _, d := range gloo(t, name) {
			b, err := os.ReadFile(fmt.Sprintf("testdata/gloo/%s/rank_%d.json", name, d.Rank))
			require.NoError(t, err)
			same := &Dump{Rank: d.Rank}
			require.NoError(t, new(Reader).Read(b, same))
			for _, d := range []*Dump{same, d} { // written a moment later
				d.Entries[len(d.Entries)-1].Retired = true
				for id, s := range d.PGStatus {
					s.Completed = s.Enqueued
					d.PGStatus[id] = s
				}
			}
			assert.Equal(t, same, d)
			assert.NotEmpty(t, d.Entries)
			n++
		}
	}
	assert.Equal(t, 8, n)
}

// say puts a group into a line.
func say(g *Group) string {
	parts := []string{fmt.Sprintf("%s %s %v", g.Name, g.Desc, g.Ranks)}
	for _, list := range []struct {
		name  string
		ranks []int32
	}{{"missing", g.Missing}, {"behind", g.Behind}, {"elsewhere", g.Elsewhere}} {
		if len(list.ranks) > 0 {
			parts = append(parts, fmt.Sprintf("%s %v", list.name, list.ranks))
		}
	}
	if g.Stuck != nil {
		parts = append(parts, "stuck "+sayOperation(g.Stuck))
	}
	if g.Mismatch != nil {
		parts = append(parts, "mismatch "+sayOperation(g.Mismatch))
	}
	return strings.Join(parts, ", ")
}

func sayOperation(c *Collective) string {
	parts := []string{fmt.Sprintf("%s %d of %v", c.Name, c.Seq, c.Enqueued)}
	if len(c.Lacking) > 0 {
		parts = append(parts, fmt.Sprintf("not %v", c.Lacking))
	}
	for _, d := range c.Differ {
		parts = append(parts, fmt.Sprintf("%d %s", d.Rank, d.What))
	}
	return strings.Join(parts, " ")
}

// fr_trace ends in KeyError: ('0', 0) on all of them.
func TestGloo(t *testing.T) {
	for name, want := range map[string][]string{
		"healthy":        {"0 default_pg [0 1 2 3]"},
		"hang":           {"0 default_pg [0 1 2 3], missing [2], stuck gloo:all_reduce 15 of [0 1 3]"},
		"hang-all-dumps": {"0 default_pg [0 1 2 3], behind [2], stuck gloo:all_reduce 15 of [0 1 3] not [2]"},
		"mismatch-op": {
			"0 default_pg [0 1 2 3], stuck gloo:all_reduce 15 of [0 1 2 3] 2 type, mismatch gloo:all_reduce 15 of [0 1 2 3] 2 type",
		},
		"group-hang": { // rank 3 sleeps: rank 2 waits in their group, and so is behind in the world
			"1 undefined [0 1]",
			"0 default_pg [0 1 2 3], behind [2 3], elsewhere [2], stuck gloo:all_reduce 11 of [0 1] not [2 3]",
			"2 undefined [2 3], behind [3], stuck gloo:all_reduce 6 of [2] not [3]",
		},
		"group-crossed": { // ranks 2 and 3 call two groups in different orders, and wait for each other
			"1 undefined [0 1]",
			"0 default_pg [0 1 2 3], behind [2], elsewhere [2], stuck gloo:all_reduce 25 of [0 1 3] not [2] 3 sizes, " +
				"mismatch gloo:all_reduce 25 of [0 1 3] not [2] 3 sizes",
			"2 undefined [2 3], behind [3], elsewhere [3], stuck gloo:all_reduce 13 of [2] not [3]",
		},
	} {
		var got []string
		for _, g := range Analyze(slices.Values(gloo(t, name))) {
			got = append(got, say(&g))
		}
		assert.Equal(t, want, got, name)
	}
	members := Analyze(slices.Values(gloo(t, "hang")))[0].Members
	assert.Equal(t, []Member{
		{Rank: 0, HasDump: true, Last: 15, Enqueued: 15, Started: -1, Completed: 15},
		{Rank: 1, HasDump: true, Last: 15, Enqueued: 15, Started: -1, Completed: 14},
		{Rank: 2, Enqueued: -1, Started: -1, Completed: -1},
		{Rank: 3, HasDump: true, Last: 15, Enqueued: 15, Started: -1, Completed: 15},
	}, members, "completed counts what timed out")
}
