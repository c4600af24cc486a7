package offline

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// The output of verl's driver has verl's steps between lines of TransferQueue, which Ray forwards. Both are read, as from two files, whichever comes first, and
// each line counts once.
func TestMixed(t *testing.T) {
	const calls = 12
	queue := strings.SplitAfter(tq(calls, at), "\n")
	var steps, mixed, first strings.Builder
	step := func(i int) string {
		return fmt.Sprintf("(TaskRunner pid=15930) step:%d - actor/pg_loss:0.1%d - timing_s/gen:2.5 - timing_s/update_actor:1.0 - timing_s/step:4.5\n", i, i)
	}
	first.WriteString(step(0))
	for i := range calls {
		call := strings.Join(queue[8*i:8*i+8], "")
		steps.WriteString(step(i + 1))
		mixed.WriteString(call + "Training Progress\n" + step(i+1))
		first.WriteString(call + "Training Progress\n" + step(i+1))
	}
	names := func(all []seen) map[string]int {
		count := map[string]int{}
		for _, s := range all {
			count[s.name]++
		}
		return count
	}
	apart := t.TempDir()
	put(t, apart, "console.log", steps.String())
	put(t, apart, "worker.err", tq(calls, at))
	_, all := read(t, Options{Run: "job"}, apart)
	want := names(all)
	require.Equal(t, calls, want["train.step"])
	require.Equal(t, calls, want["tq.get"])

	for name, tt := range map[string]struct {
		text  string
		packs bool
		extra int64 // steps
	}{
		"TransferQueue first": {text: mixed.String()},
		"a step first":        {text: first.String(), extra: 1},
		"compressed":          {text: mixed.String(), packs: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := put(t, t.TempDir(), "driver.log", tt.text)
			if tt.packs {
				path = packed(t, path, tt.text)
			}
			r, all := read(t, Options{Run: "job"}, path)
			got := names(all)
			for _, name := range []string{"train.step", "gen", "update_actor", "breakdown"} {
				got[name] -= int(tt.extra)
			}
			assert.Equal(t, want, got)
			require.Len(t, r.Files, 1)
			f := r.Files[0]
			assert.Equal(t, "tq_trace, train_log", f.Readers())
			lines, records := int64(strings.Count(tt.text, "\n")), 9*calls+tt.extra
			assert.Equal(t, []int64{lines, records, lines, records}, []int64{f.Lines, f.Records, r.Lines, r.Records}, "lines and records, of the file and in all")
			require.Contains(t, f.Ignored, "not_tq")
			assert.Equal(t, lines-records, f.Ignored["not_tq"].Lines)
		})
	}
}

// A single step of verl is found wherever it begins in a long log, also across two reads of 256 KiB, in any encoding and at the end.
func TestMixedFar(t *testing.T) {
	const read256 = 256 << 10
	for _, at256 := range []int{read256 - 40, read256 - 25, read256 - 1, read256, 3*read256 - 25, read256 + 5000} {
		for _, encode := range []func(string) string{func(s string) string { return s }, utf16LE} {
			text := tq(1, at)
			text += strings.Repeat("x\n", (at256-len(text))/2-1)
			text += strings.Repeat("x", at256-len(text)-1) + "\n"
			require.Len(t, text, at256)
			for _, rest := range []string{"", strings.Repeat("y\n", read256)} {
				path := put(t, t.TempDir(), "driver.log", encode(text+"(TaskRunner pid=15930) step:3 - actor/pg_loss:0.1 - timing_s/step:4.5\n"+rest))
				r, _ := read(t, Options{Run: "job"}, path)
				require.Equal(t, "tq_trace, train_log", r.Files[0].Readers(), at256)
			}
		}
	}
}

// utf16LE is a text in UTF-16 with its mark.
func utf16LE(text string) string {
	b := []byte{0xff, 0xfe}
	for _, c := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return string(b)
}

// packed is a text compressed beside the path.
func packed(t *testing.T, path, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path+".gz", b.Bytes(), 0o600))
	return path + ".gz"
}

// Files of one kind have one receiver, also where words of the other kind are in them.
func TestNotMixed(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"TransferQueue": {tq(3, at) + "Finished step:9 of the plan\nglobal step:12 - nothing\n", "tq_trace"},
		"steps":         {jsonl(20, at) + `{"step": 21, "loss": 2, "note": "see [TQ-TRACE]"}` + "\n", "train_log"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := read(t, Options{Run: "job"}, put(t, t.TempDir(), filepath.Base("a.log"), tt.text))
			require.Len(t, r.Files, 1)
			assert.Equal(t, tt.want, r.Files[0].Readers())
		})
	}
}

// A log of both kinds that is still written is followed by both receivers.
func TestFollowMixed(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "driver.log", tq(2, at)+"step:1 - actor/pg_loss:0.1 - timing_s/step:4.5\n")
	in, err := Open([]string{dir}, nil)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	came := make(chan string, 1000)
	traces, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					came <- s.Name()
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- Follow(ctx, in, Options{}, Sink{Traces: traces}) }()
	for open := map[string]bool{"train.step": true, "rollout": true}; len(open) > 0; {
		delete(open, <-came)
	}
	stop()
	require.NoError(t, <-done)
}
