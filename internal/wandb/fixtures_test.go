package wandb_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/wandb"
)

// event is a record in the form of tools/record-trainers/wandb_offline.py, which asks the SDK's own reader. A single field is set.
type event struct {
	History *history `json:"history,omitempty"`
	Stats   *stats   `json:"stats,omitempty"`
	Run     *run     `json:"run,omitempty"`
	Config  *config  `json:"config,omitempty"`
	Exit    *exit    `json:"exit,omitempty"`
}

type history struct {
	Step      *int64      `json:"step"`
	Items     [][2]string `json:"items"`
	timestamp float64
	runtime   float64
}

type stats struct {
	Timestamp float64     `json:"timestamp"`
	Items     [][2]string `json:"items"`
}

type run struct {
	ID           string      `json:"id"`
	Entity       string      `json:"entity"`
	Project      string      `json:"project"`
	Group        string      `json:"group"`
	JobType      string      `json:"job_type"`
	Name         string      `json:"name"`
	Host         string      `json:"host"`
	Start        float64     `json:"start"`
	StartingStep int64       `json:"starting_step"`
	Resumed      bool        `json:"resumed"`
	Config       [][2]string `json:"config"`
}

type config struct {
	Items   [][2]string `json:"items"`
	Removed []string    `json:"removed"`
}

type exit struct {
	Code        int32 `json:"code"`
	Runtime     int32 `json:"runtime"`
	NotComplete bool  `json:"not_complete"`
}

// events are the records from a decoder.
type events []event

// handler appends to the events.
func (e *events) handler() wandb.Handler {
	add := func(one event) { *e = append(*e, one) }
	return wandb.Handler{
		History: func(h *wandb.History) {
			of := history{Items: pairs(h.Items), timestamp: h.Timestamp, runtime: h.Runtime}
			if h.Step >= 0 {
				step := h.Step
				of.Step = &step
			}
			add(event{History: &of})
		},
		Stats: func(s *wandb.Stats) { add(event{Stats: &stats{s.Timestamp, pairs(s.Items)}}) },
		Run: func(r *wandb.Run) {
			add(event{Run: &run{
				string(r.ID), string(r.Entity), string(r.Project), string(r.Group), string(r.JobType), string(r.Name), string(r.Host), r.Start, r.StartingStep,
				r.Resumed, pairs(r.Config),
			}})
		},
		Config: func(c *wandb.Config) {
			of := config{pairs(c.Items), []string{}}
			for _, item := range c.Removed {
				of.Removed = append(of.Removed, string(item.Key))
			}
			add(event{Config: &of})
		},
		Exit: func(e *wandb.Exit) { add(event{Exit: &exit{e.Code, e.Runtime, e.NotComplete}}) },
	}
}

func pairs(items []wandb.Item) [][2]string {
	all := [][2]string{}
	for _, item := range items {
		all = append(all, [2]string{string(item.Key), string(item.Value)})
	}
	return all
}

// special moves items of the truth to the fields of a History.
func (h *history) special(t *testing.T) {
	t.Helper()
	items := [][2]string{}
	for _, item := range h.Items {
		v, err := strconv.ParseFloat(item[1], 64)
		switch item[0] {
		case "_step":
			require.NoError(t, err)
			step := int64(v)
			if h.Step != nil {
				require.Equal(t, *h.Step, step, "the item says the same as the record")
			}
			h.Step = &step
		case "_timestamp":
			require.NoError(t, err)
			h.timestamp = v
		case "_runtime":
			require.NoError(t, err)
			h.runtime = v
		default:
			items = append(items, item)
		}
	}
	h.Items = items
}

func unzip(tb testing.TB, path string) []byte {
	tb.Helper()
	f, err := os.Open(path)
	require.NoError(tb, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	require.NoError(tb, err)
	b, err := io.ReadAll(r)
	require.NoError(tb, err)
	return b
}

func fixtures(tb testing.TB) []string {
	tb.Helper()
	paths, err := filepath.Glob("testdata/*.wandb.gz")
	require.NoError(tb, err)
	require.NotEmpty(tb, paths)
	return paths
}

func TestSDK(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var truth struct {
				Records events           `json:"records"`
				Skipped map[string]int64 `json:"skipped"`
			}
			require.NoError(t, json.Unmarshal(unzip(t, strings.TrimSuffix(path, "wandb.gz")+"json.gz"), &truth))
			var want wandb.Counts
			for _, e := range truth.Records {
				switch {
				case e.History != nil:
					e.History.special(t)
					want.History++
				case e.Stats != nil:
					want.Stats++
				case e.Run != nil:
					want.Run++
				case e.Config != nil:
					want.Config++
				case e.Exit != nil:
					want.Exit++
				}
			}
			for _, n := range truth.Skipped {
				want.Skipped += n
			}
			b := unzip(t, path)
			got := events{}
			d := wandb.NewDecoder(0, got.handler())
			require.NoError(t, d.Feed(b))
			assert.Equal(t, truth.Records, got)
			assert.Equal(t, want, d.Counts())
			assert.Equal(t, int64(len(b)), d.Offset())

			d = wandb.NewDecoder(0, wandb.Handler{})
			require.NoError(t, d.Feed(b))
			assert.Equal(t, want, d.Counts(), "without functions")
		})
	}
}

// A growing file: byte by byte, and read again from every Offset.
func TestGrowing(t *testing.T) {
	b := unzip(t, "testdata/plain-0.31.0.wandb.gz")
	var want, grown events
	require.NoError(t, wandb.NewDecoder(0, want.handler()).Feed(b))
	d := wandb.NewDecoder(0, grown.handler())
	seen := int64(-1)
	for i := range b {
		require.NoError(t, d.Feed(b[i:i+1]))
		require.LessOrEqual(t, d.Offset(), int64(i+1))
		if d.Offset() == seen {
			continue
		}
		seen = d.Offset()
		rest := append(events{}, grown...)
		again := wandb.NewDecoder(d.Offset(), rest.handler())
		require.NoError(t, again.Feed(b[d.Offset():]))
		require.Equal(t, want, rest, "from %d", d.Offset())
	}
	assert.Equal(t, want, grown)
}
