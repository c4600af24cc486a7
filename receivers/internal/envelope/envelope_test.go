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
