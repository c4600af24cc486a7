package html

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// made is the page of a file, as a report makes it.
func made(t *testing.T, file string) string {
	t.Helper()
	in, err := offline.Open([]string{file}, nil)
	require.NoError(t, err)
	defer in.Close()
	var out bytes.Buffer
	w := New(format.Request{Out: &out, In: in, Conclude: func(j *digest.Job, _ *offline.Reading) format.Conclusion {
		return format.Conclusion{Title: "Run " + j.Run, Headline: "It went well.", Severity: "good", Claims: []format.Claim{{Text: "one", Advice: "do"}, {Text: "two", Advice: "do"}}}
	}})
	read, err := offline.Read(context.Background(), in, offline.Options{Run: "r"}, w.Sink())
	require.NoError(t, err)
	require.NoError(t, w.Finish(context.Background(), read))
	return out.String()
}

// A page of a training log: its figures by step, the conclusions, the slowest step as a trace; the same logs make the same bytes.
func TestPageOfLog(t *testing.T) {
	var log strings.Builder
	for i := 1; i <= 30; i++ {
		fmt.Fprintf(&log, `{"step": %d, "timestamp": "2026-11-23T02:%02d:00Z", "loss": %g, "lr": 0.001, "step_time_s": %g, "timing_s/gen": 1.5, "timing_s/update": 0.25}`+"\n",
			i, i, 10/float64(i), 2+float64(i%7)/8)
	}
	file := filepath.Join(t.TempDir(), "train.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(log.String()), 0o600))
	text := made(t, file)
	assert.Equal(t, text, made(t, file))

	data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(text)
	require.NotNil(t, data)
	var p struct {
		Jobs []struct {
			Name, Conclusion string
			Causes           []struct{ Text, Advice string }
			Sections         []struct {
				Charts []struct {
					Kind, Title string
					Series      []struct{ Values []float64 }
					Rows        [][]any
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(data[1]), &p))
	require.Len(t, p.Jobs, 1)
	assert.Equal(t, "Run r", p.Jobs[0].Name)
	assert.Equal(t, "do", p.Jobs[0].Causes[0].Advice)
	assert.Empty(t, p.Jobs[0].Causes[1].Advice, "advice is given once")
	found := map[string]bool{}
	for _, s := range p.Jobs[0].Sections {
		for _, c := range s.Charts {
			found[c.Kind+" "+c.Title] = true
			switch {
			case c.Title == "Loss and learning rate":
				for i, v := range c.Series[0].Values {
					assert.InEpsilon(t, 10/float64(i+1), v, 1e-6)
				}
			case c.Kind == "waterfall":
				assert.Greater(t, len(c.Rows), 2, c.Title)
			}
		}
	}
	for _, want := range []string{"series Step time", "series Loss and learning rate", "table Figures"} {
		assert.True(t, found[want], "%s: %v", want, found)
	}
}

// A single part beyond those with a colour keeps its name, with an unattributed rest too; several are put together.
func TestBreakdown(t *testing.T) {
	w := &digest.Window{Of: spans.WindowStep, Parts: map[string]*digest.Part{}}
	add := func(name string, seconds float64) {
		p := &digest.Part{Name: name}
		for step := range int64(3) {
			p.All.Add(seconds)
			p.Over.Add(step, seconds)
		}
		w.Parts[name] = p
	}
	names := func() (all []string) {
		for _, l := range (&composer{points: 100}).breakdown(w).Series {
			all = append(all, l.Name)
		}
		return all
	}
	add(spans.PartUnattributed, 9)
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		add(name, 8-float64(i))
	}
	assert.Equal(t, []string{"a", "b", "c", "d", "e", "f", "g", "unattributed"}, names())
	add("h", 0.5)
	assert.Equal(t, []string{"a", "b", "c", "d", "e", "f", "other parts", "unattributed"}, names())
}

// A file that cannot be read has the reason in the table of files. The page of a log without records says so.
func TestNothingRead(t *testing.T) {
	denied := &offline.File{Name: "a.log", Size: 3, Err: &fs.PathError{Op: "open", Path: "a.log", Err: fs.ErrPermission}}
	row := new(composer).files(&offline.Reading{Files: []*offline.File{denied}}).Charts[0].(*table).Cells[0]
	assert.Equal(t, []string{"cannot be read", "permission denied"}, []string{row[1], row[len(row)-1]})

	head := filepath.Join(t.TempDir(), "performance.csv")
	require.NoError(t, os.WriteFile(head, []byte("ID,Method,Serialize_ms,Send_ms,Recv_ms,Deserialize_ms,Total_ms,Sent_KB,Recv_KB,Throughput_MBps\n"), 0o600))
	assert.Contains(t, made(t, head), ". There is nothing in these logs.")
}

// A matrix of links has the sources as rows and the destinations as columns, ranks of both kinds first.
func TestLinks(t *testing.T) {
	nan := math.NaN()
	h := new(composer).links("t", "By/s", "rank", []*digest.Link{
		{Source: "0", Destination: "1", Bandwidth: 10}, {Source: "1", Destination: "9", Bandwidth: 20, Hot: 3}, {Source: "1", Destination: "0", Bandwidth: nan},
	}, func(l *digest.Link) float64 { return l.Bandwidth })
	assert.Equal(t, []string{"0", "1"}, h.Rows)
	assert.Equal(t, []string{"1", "9"}, h.Columns)
	text, err := json.Marshal(h.Values)
	require.NoError(t, err)
	assert.Equal(t, "[10,null,null,20]", string(text))
	assert.Equal(t, "1→9: hot 3×, slow 0×", h.Note)
}

// Several runs stand side by side, each called by its directory, with numbers for sorting.
func TestRuns(t *testing.T) {
	jobs := []*digest.Job{{Run: "run-1"}, {Run: "run-2"}, {Run: "run-3"}}
	first := []format.Conclusion{
		{Run: tables.Run{Job: jobs[0], Dir: "/data/a/", Steps: 10, Lost: 2, Whole: 20}},
		{Run: tables.Run{Job: jobs[1], Dir: "/data/b/", End: "exception", Steps: 3, Lost: math.NaN(), Whole: 5}},
		{Run: tables.Run{Job: jobs[2], Dir: "/", Steps: 3, Whole: 5}},
	}
	c := new(composer)
	assert.Nil(t, c.runs(first[:1]))
	got := c.runs(first)
	assert.Equal(t, []string{"run", "failed by", "steps", "time", "lost", "share"}, got.Head)
	assert.Equal(t, [][]string{{"a", "-", "10", "20 s", "2 s", "10%"}, {"b", "exception", "3", "5 s", "-", "-"}, {"run-3", "-", "3", "5 s", "0 s", "0%"}}, got.Cells)
	body, err := json.Marshal(got.By)
	require.NoError(t, err)
	assert.JSONEq(t, `[[null,null,10,20,2,0.1],[null,null,3,5,null,null],[null,null,3,5,0,0]]`, string(body))
}
