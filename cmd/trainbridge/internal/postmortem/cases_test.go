package postmortem_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

type truth struct {
	File      string   `json:"file"`
	Kind      string   `json:"kind"`
	Rank      *int64   `json:"rank"`
	May       []int64  `json:"may_name"`
	MustNot   []int64  `json:"must_not_name"`
	Ambiguous bool     `json:"ambiguous"`
	First     string   `json:"first_cause"`
	Files     []string `json:"files"`
}

// end reads logs as `trainbridge report` does, and says how their job ended.
func end(t *testing.T, paths ...string) postmortem.End {
	t.Helper()
	in, err := offline.Open(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	jobs := digest.New()
	read, err := offline.Read(t.Context(), in, offline.Options{Run: "r", Positions: true}, format.Digest(jobs))
	if err != nil {
		t.Fatal(err)
	}
	rows := format.Jobs(jobs, read)
	if len(rows) == 0 {
		return postmortem.Of(new(digest.Ends), in.Files, 0, -1, 0)
	}
	return postmortem.Of(&rows[0].Ends, in.Files, 0, -1, 0)
}

func TestCases(t *testing.T) {
	var sum score
	truths, _ := filepath.Glob("testdata/cases/*.json")
	for _, path := range truths {
		sum.judge(t, path, strings.TrimSuffix(path, ".json")+".log")
	}
	sum.hold(t, 200)
}

// TestEndings: logs of real jobs ended by tools/endings.
func TestEndings(t *testing.T) {
	var sum score
	truths, _ := filepath.Glob("testdata/endings/*/truth.json")
	for _, path := range truths {
		sum.judge(t, path)
	}
	sum.hold(t, 80)
}

// score counts right and wrong conclusions.
type score struct{ all, kinds, innocents, ranks, missed, clear, clearWrong int }

func (s *score) judge(t *testing.T, path string, logs ...string) {
	t.Helper()
	var want truth
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	for _, f := range want.Files {
		logs = append(logs, filepath.Join(filepath.Dir(path), f))
	}
	got := end(t, logs...)
	if got.Sentence == "" || got.Kind == "" {
		t.Errorf("%s: no sentence", path)
	}
	s.all++
	var marks []string
	alive := want.Kind == "healthy" || want.Kind == "after_end"
	wrong := got.Kind != want.Kind && (!alive || got.Failed())
	if wrong {
		s.kinds++
		marks = append(marks, "KIND")
		if want.Ambiguous {
			marks[0] += "?"
		}
	}
	if !want.Ambiguous {
		if s.clear++; wrong {
			s.clearWrong++
		}
	}
	for _, r := range got.Ranks {
		if slices.Contains(want.MustNot, r) {
			s.innocents++
			marks = append(marks, "INNOCENT")
		} else if !slices.Contains(want.May, r) {
			marks = append(marks, "UNKNOWN")
		}
	}
	if want.Rank != nil {
		if s.ranks++; len(got.Ranks) != 1 || got.Ranks[0] != *want.Rank {
			s.missed++
			marks = append(marks, "RANK")
		}
	}
	if len(marks) > 0 {
		t.Logf("%s: %s\n   want %s %v may %v not %v: %s\n   got  %s %v: %s", path, marks, want.Kind, deref(want.Rank), want.May, want.MustNot, want.First, got.Kind, got.Ranks, got.Sentence)
	}
}

// hold checks the promise: no innocent rank is named, and of unambiguous cases at least 95 in 100 are right.
func (s *score) hold(t *testing.T, least int) {
	t.Helper()
	t.Logf("%d cases: %d kinds wrong (%d of %d that are not ambiguous), %d innocents, %d of %d ranks missed",
		s.all, s.kinds, s.clearWrong, s.clear, s.innocents, s.missed, s.ranks)
	if s.all < least || s.innocents > 0 || s.clearWrong*20 > s.clear {
		t.Error("see above")
	}
}

func deref(p *int64) any {
	if p == nil {
		return nil
	}
	return *p
}

// TestLastWords: an event that waits for more lines is none the less told where its line is the last of a log with steps.
func TestLastWords(t *testing.T) {
	log := filepath.Join(t.TempDir(), "driver.log")
	text := "step:1 - actor/pg_loss:0.1 - timing_s/step:9.5\nstep:2 - actor/pg_loss:0.1 - timing_s/step:9.5\n" +
		"ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: Worker\n\tpid: 4711\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := end(t, log)
	if got.Kind != "process_gone" || len(got.Evidence) != 1 || got.Evidence[0].At.File == "" {
		t.Errorf("%s: %s %+v", got.Kind, got.Sentence, got.Evidence)
	}
}

// TestFinished: a trainer's record of the whole run ends training, unless steps or an error come after.
func TestFinished(t *testing.T) {
	const step, whole = "{'loss': 1.5, 'grad_norm': 1.1, 'learning_rate': 1e-05, 'epoch': 0.5}\n", "{'train_runtime': 38.6, 'train_loss': 1.5, 'epoch': 1.0}\n"
	const state = `{"global_step": 20, "max_steps": 20, "log_history": [{"step": 10, "loss": 1.5, "epoch": 0.5}, {"step": 20, "loss": 1.4, "epoch": 1.0}`
	for _, c := range []struct{ name, file, text, want string }{
		{"the record of the run", "train.log", step + step + whole, "healthy"},
		{"no record", "train.log", step + step, "silent"},
		{"more steps", "train.log", step + whole + step + step, "silent"},
		{"an error after", "train.log", step + whole + "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n", "exception"},
		{"a document", "trainer_state.json", state + `, {"step": 20, "train_runtime": 38.6, "train_loss": 1.5, "epoch": 1.0}]}`, "healthy"},
		{"a document of a run that goes on", "trainer_state.json", state + `]}`, "silent"},
	} {
		log := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(log, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := end(t, log); got.Kind != c.want {
			t.Errorf("%s: %s, not %s: %s", c.name, got.Kind, c.want, got.Sentence)
		}
	}
}
