package envelope_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/receivers/internal/envelope"
)

func TestPeel(t *testing.T) {
	for _, c := range []struct{ name, in, text, at string }{
		{"docker", `{"log":"a \"b\" \u003c\ud83d\ude00\n","stream":"stdout","time":"2026-08-03T09:14:22.7Z"}`, "a \"b\" <😀", "2026-08-03T09:14:22.7Z"},
		{"docker, indented", `{"log":"\t x\n", "stream":"stdout", "time":"2026-08-03T09:14:22.7Z"}`, "\t x", "2026-08-03T09:14:22.7Z"},
		{"journal", `{"_PID":"1","MESSAGE":"x","__REALTIME_TIMESTAMP":"1785748462523417","__CURSOR":"s"}`, "x", "2026-08-03T09:14:22.523417Z"},
		{"journal, bytes", `{"MESSAGE":[13,120, 121],"__CURSOR":"s"}`, "\rxy", ""},
		{"cloud", `{"insertId":"1","jsonPayload":{"step":1,"loss":2},"timestamp":"2026-08-03T09:14:22.7Z"}`, `{"step":1,"loss":2}`, "2026-08-03T09:14:22.7Z"},
		{"date", `{"date":1785748462.5,"log":"x"}`, "x", "2026-08-03T09:14:22.500000Z"},
		{"nested", `{"log":"{\"message\":\"[1,3]<stdout>:x\",\"stream\":\"a\"}\n","time":"2026-08-03T09:14:22.7Z"}`, "x", "2026-08-03T09:14:22.7Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p envelope.Peeler
			var pre line.Prefix
			in := []byte(c.in)
			for range 2 {
				assert.Equal(t, c.text, string(p.Peel(in, &pre)))
				assert.True(t, p.Opened)
				assert.Equal(t, c.at, string(pre.Container))
			}
			assert.Equal(t, c.in, string(in), "the line must stay as it was")
			assert.Zero(t, testing.AllocsPerRun(10, func() { p.Peel(in, &pre) }))
		})
	}
	var p envelope.Peeler
	var pre line.Prefix
	for _, record := range []string{
		`{"step":1,"loss":2}`, `{"log":2,"time":3}`, `{"log":"x"}`, `{"message":"x","time":3}`, `{"message":"x","step":3}`, `{"log":"x","stream":"a"`, `{"log":"\x","stream":"a"}`,
		`{"MESSAGE":[300],"__CURSOR":"s"}`, `{"labels":[1],"line":"x"}`, `{'log':'x','stream':'a'}`, `{"log":"x","stream":"a"} tail`, "{}", "{",
	} {
		assert.Equal(t, record, string(p.Peel([]byte(record), &pre)))
		assert.False(t, p.Opened, record)
	}
}

func TestLogger(t *testing.T) {
	for in, want := range map[string]string{
		`{"level":"info","ts":1785748462.25,"msg":"step 1"}`:                                      "step 1 2026-08-03T09:14:22.250000Z",
		`{"ts":"2026-11-26 12:31:03,609","msg":"step 1"}`:                                         "step 1 2026-11-26 12:31:03,609",
		`{"event":"step 1","timestamp":1785748462250}`:                                            "step 1 2026-08-03T09:14:22.250000Z",
		`{"text":"a | step 1\n","record":{"message":"step 1","time":{"timestamp":1785748462.5}}}`: "step 1 2026-08-03T09:14:22.500000Z",
	} {
		var p envelope.Peeler
		var pre line.Prefix
		text, ok := p.Logger([]byte(in), &pre, 0)
		assert.True(t, ok, in)
		assert.Equal(t, want, fmt.Sprintf("%s %s", text, pre.Stamp))
	}
	var p envelope.Peeler
	var pre line.Prefix
	for _, in := range []string{`{"event":"step 1"}`, `{"step":1,"ts":2}`, `{"msg":5,"ts":2}`, `{'msg':'x'}`, "{", "{}", "x"} {
		_, ok := p.Logger([]byte(in), &pre, 0)
		assert.False(t, ok, in)
	}
}

// Envelopes in envelopes are opened three deep.
func TestDepth(t *testing.T) {
	text := "x"
	for range 5 {
		text = fmt.Sprintf(`{"log":%q,"stream":"a"}`, text)
	}
	var p envelope.Peeler
	var pre line.Prefix
	assert.Equal(t, 2, strings.Count(string(p.Peel([]byte(text), &pre)), "stream"))
}

func FuzzPeel(f *testing.F) {
	for _, s := range []string{`{"log":"x\n","stream":"a","time":"2026-08-03T09:14:22.7Z"}`, `{"MESSAGE":[13,120],"__CURSOR":"s"}`, `{"date":1e300,"log":"x"}`, `{"record":{"message":"a"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, in []byte) {
		var p envelope.Peeler
		var pre line.Prefix
		text := p.Peel(in, &pre)
		p.Logger(text, &pre, 0)
	})
}

func TestJoin(t *testing.T) {
	const at = "2026-02-11T16:40:00.123456789+08:00"
	var p envelope.Pieces
	join := func(in string) string {
		whole, more := p.Join([]byte(in))
		if more {
			return "…"
		}
		return string(whole)
	}
	assert.Equal(t, "…", join(at+" stdout P ab"))
	assert.Equal(t, "…", join(at+" stderr P xx"))
	assert.Equal(t, at+" stderr F xxy", join(at+" stderr F y"))
	assert.Equal(t, "…", join(at+" stdout P cd"))
	assert.Equal(t, at+" stdout F abcdef", join(at+" stdout F ef"))
	assert.Empty(t, p.Out)
	long := strings.Repeat("a", 16<<10)
	assert.Equal(t, "…", join(`{"log":"`+long+`","stream":"stdout","time":"t"}`))
	assert.Equal(t, `{"log":"`+long+`b\n","stream":"stdout","time":"u"}`, join(`{"log":"b\n","stream":"stdout","time":"u"}`))
	for range 100 { // a line without an end
		assert.Equal(t, "…", join(at+" stdout P "+long))
	}
	assert.Less(t, len(p.Out), 300<<10)
	for _, in := range []string{"", "{}", at, at + " stdout F x", at + " other P x", "2026-02-11 16:40:00 stdout P text of a program", `{"log":"x","stream":"stdout","time":"2026"}`} {
		p = envelope.Pieces{}
		assert.Equal(t, in, join(in))
	}
}

func FuzzJoin(f *testing.F) {
	f.Add([]byte("2026-02-11T16:40:00.1Z stdout P ab"), []byte("2026-02-11T16:40:00.1Z stdout F cd"))
	f.Add([]byte(`{"log":"x","stream":"a"}`), []byte(`{"log":"x\n","stream":"stderr"}`))
	f.Fuzz(func(_ *testing.T, a, b []byte) {
		var p envelope.Pieces
		p.Join(a)
		p.Join(b)
	})
}

func TestExport(t *testing.T) {
	var p envelope.Peeler
	var pre line.Prefix
	peel := func(in string) string { return string(p.Peel([]byte(in), &pre)) }
	assert.Equal(t, "MESSAGE=x", peel("MESSAGE=x"), "of no entry")
	assert.Empty(t, peel("__REALTIME_TIMESTAMP=1785748462523417"))
	assert.Equal(t, "step 1", peel("MESSAGE=[default0]:step 1"))
	assert.Equal(t, "2026-08-03T09:14:22.523417Z", string(pre.Container))
	assert.Empty(t, peel("MESSAGE"))
	assert.Equal(t, "\rstep 2", peel("\x07\x00\x00\x00\x00\x00\x00\x00\rstep 2"))
	assert.Empty(t, peel("MESSAGE"))
	assert.Empty(t, peel("")) // ten bytes long: the length begins with a line's end
	assert.Equal(t, "\rstep 1234", peel("\x00\x00\x00\x00\x00\x00\x00\rstep 1234"))
	assert.Equal(t, "__REALTIME_TIMESTAMP=x", peel("__REALTIME_TIMESTAMP=x"))
}
