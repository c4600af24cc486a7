package postmortem

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/bridge/events"
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

func read(t *testing.T, path string, c *Case) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(text) {
		return // a dump
	}
	s := events.NewScanner(path, time.UTC, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	add := func(all []events.Event) {
		for _, e := range all {
			c.Events = append(c.Events, Event{Event: e, At: digest.At{File: filepath.Base(path), Offset: e.Line}})
		}
	}
	for line := range bytes.Lines(text) {
		add(s.Line(bytes.TrimRight(line, "\r\n")))
	}
	add(s.Flush())
}

func TestCases(t *testing.T) {
	var sum score
	for _, dir := range []string{"testdata/cases", os.Getenv("CASES")} {
		logs, _ := filepath.Glob(dir + "/*.json")
		for _, path := range logs {
			sum.judge(t, path, strings.TrimSuffix(path, ".json")+".log")
		}
	}
	sum.tell(t)
}

// TestEndings: what real jobs left that tools/endings has ended.
func TestEndings(t *testing.T) {
	var sum score
	for _, dir := range []string{"testdata/endings", os.Getenv("ENDINGS")} {
		truths, _ := filepath.Glob(dir + "/*/truth.json")
		for _, path := range truths {
			sum.judge(t, path)
		}
	}
	sum.tell(t)
}

// score counts how often the truth was told.
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
	c := &Case{LastStep: -1}
	for _, log := range logs {
		read(t, log, c)
	}
	got := Judge(c)
	s.all++
	mark := ""
	wrong := got.Kind != want.Kind && !((want.Kind == "healthy" || want.Kind == "after_end") && !got.Failed())
	if wrong {
		s.kinds++
		mark += " KIND"
		if want.Ambiguous {
			mark += "?"
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
			mark += " INNOCENT"
		} else if !slices.Contains(want.May, r) {
			mark += " UNKNOWN"
		}
	}
	if want.Rank != nil {
		if s.ranks++; len(got.Ranks) != 1 || got.Ranks[0] != *want.Rank {
			s.missed++
			mark += " RANK"
		}
	}
	if mark != "" {
		t.Logf("%s:%s\n   want %s %v may %v not %v: %s\n   got  %s %v: %s", strings.TrimPrefix(path, os.Getenv("ENDINGS")), mark, want.Kind, deref(want.Rank), want.May, want.MustNot, want.First, got.Kind, got.Ranks, got.Sentence)
		for _, e := range c.Events {
			if os.Getenv("V") != "" {
				t.Logf("      %s:%d %s %s rank %d local %d time %d %.100q", e.At.File, e.Line, e.Form.Name, e.Class, e.Rank, e.Local, e.Time, e.Text)
			}
		}
	}
}

func (s *score) tell(t *testing.T) {
	t.Logf("%d cases: %d kinds wrong (%d of %d that are not ambiguous), %d innocents, %d of %d ranks missed", s.all, s.kinds, s.clearWrong, s.clear, s.innocents, s.missed, s.ranks)
}

func deref(p *int64) any {
	if p == nil {
		return nil
	}
	return *p
}
