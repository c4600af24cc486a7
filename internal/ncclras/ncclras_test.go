package ncclras_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/ncclras"
	"github.com/trainbridge/trainbridge/internal/ncclras/rastest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hang is a job: two ranks have launched a collective more than 29 others, and a rank is gone.
func hang() *ncclras.Answer {
	a := rastest.Job(32)
	c := &a.Communicators[0]
	c.Missing = []ncclras.Missing{{Rank: 31, Process: c.Ranks[31].Process, Unresponsive: true, Dead: true}}
	c.Ranks = c.Ranks[:31]
	for i := range c.Ranks {
		c.Ranks[i].Counts = []uint64{3, 0, 640, 640, 1<<63 + 7}
	}
	c.Ranks[12].Counts[2], c.Ranks[13].Counts[2] = 641, 641
	c.Ranks[13].AsyncError, c.Ranks[0].InitState = 6, ncclras.InProgress
	c.Ranks[1].FinalizeCalled, c.Ranks[2].DestroyFlag, c.Ranks[3].AbortedFlag = true, true, true
	a.Communicators = append(a.Communicators, rastest.Comm(8, 10))
	a.Timeouts = 1
	return a
}

func ask(t *testing.T, addr string, risky bool, patience time.Duration) (*ncclras.Answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := ncclras.Client{Endpoint: addr, Risky: risky}
	return c.Ask(ctx)
}

// The output of each version is read correctly, the JSON with a missing comma too, and no command is sent that a version might not survive.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		version  string
		risky    bool
		err      error
		commands string
	}{
		{rastest.V2307, false, nil, "CLIENT PROTOCOL 2|SET FORMAT json|MONITOR ?|STATUS"},
		{rastest.V2289, true, nil, "CLIENT PROTOCOL 2|SET FORMAT json|MONITOR ?|STATUS"},
		{rastest.V2289, false, ncclras.ErrRisky, "CLIENT PROTOCOL 2|SET FORMAT json|MONITOR ?"},
		{rastest.V2283, true, ncclras.ErrOld, "CLIENT PROTOCOL 2|SET FORMAT json"},
	} {
		s := rastest.Serve(t, c.version, hang)
		got, err := ask(t, s.Addr, c.risky, time.Minute)
		require.ErrorIs(t, err, c.err)
		assert.Equal(t, c.commands, strings.Join(s.Commands(), "|"))
		if c.err == nil {
			want := hang()
			want.Version = c.version
			assert.Equal(t, want, got)
		}
	}
}

// A job without communicators prints two empty lists.
func TestNoCommunicators(t *testing.T) {
	s := rastest.Serve(t, rastest.V2307, func() *ncclras.Answer { return &ncclras.Answer{} })
	a, err := ask(t, s.Addr, false, time.Minute)
	require.NoError(t, err)
	assert.Empty(t, a.Communicators)
}

// Other servers, and servers that break off.
func TestHostile(t *testing.T) {
	var whole bytes.Buffer
	rastest.Write(&whole, rastest.V2307, hang())
	text := whole.String()
	until := func(conn net.Conn, answers ...string) { // answers the commands in turn
		buf := make([]byte, 1024)
		for _, a := range answers {
			if _, err := conn.Read(buf); err != nil {
				return
			}
			_, _ = io.WriteString(conn, a)
		}
	}
	status := func(answer string) func(net.Conn) {
		return func(conn net.Conn) {
			until(conn, "SERVER PROTOCOL 2\n", "OK\n", "ERROR: Invalid event group '?'\n", answer)
		}
	}
	for name, c := range map[string]struct {
		talk func(net.Conn)
		err  error
		what string
	}{
		"closed at once":    {func(net.Conn) {}, ncclras.ErrInvalid, "closed"},
		"another protocol":  {func(conn net.Conn) { until(conn, "HTTP/1.1 400 Bad Request\r\n") }, ncclras.ErrInvalid, "HTTP/1.1"},
		"no end of a line":  {func(conn net.Conn) { until(conn, strings.Repeat("x", 1<<20)) }, ncclras.ErrInvalid, "1024 bytes"},
		"refused format":    {func(conn net.Conn) { until(conn, "SERVER PROTOCOL 2\n", "ERROR: Invalid format json\n") }, ncclras.ErrInvalid, "Invalid format"},
		"monitoring":        {func(conn net.Conn) { until(conn, "SERVER PROTOCOL 2\n", "OK\n", "OK\n") }, ncclras.ErrInvalid, "OK"},
		"closed in between": {func(conn net.Conn) { until(conn, "SERVER PROTOCOL 2\n", "OK\n") }, ncclras.ErrInvalid, "MONITOR"},
		"nothing":           {status(""), ncclras.ErrInvalid, "EOF"},
		"half":              {status(text[:len(text)/2]), ncclras.ErrInvalid, "unexpected EOF"},
		"without its end":   {status(text[:len(text)-2]), ncclras.ErrInvalid, "unexpected EOF"},
		"text":              {status("NCCL version 2.30.7 compiled with CUDA 12.9\n"), ncclras.ErrInvalid, "NCCL"},
		"no answer":         {status("{}"), ncclras.ErrInvalid, "no communicators"},
		"NaN":               {status(strings.Replace(text, "0.012", "NaN", 1)), ncclras.ErrInvalid, "invalid character 'N'"},
		"a count of -1":     {status(strings.Replace(text, ": 640", ": -1", 1)), ncclras.ErrInvalid, "invalid syntax"},
		"a count too large": {status(strings.Replace(text, ": 640", ": 18446744073709551616", 1)), ncclras.ErrInvalid, "out of range"},
		"a rank of -1":      {status(strings.Replace(text, `"rank": 7`, `"rank": -7`, 1)), ncclras.ErrInvalid, "no number"},
		"a rank too large":  {status(strings.Replace(text, `"rank": 7`, `"rank": 4294967296`, 1)), ncclras.ErrInvalid, "no number"},
		"another type":      {status(strings.Replace(text, `"size": 32`, `"size": "32"`, 1)), ncclras.ErrInvalid, "in place of"},
		"not true":          {status(strings.Replace(text, `"destroy_flag": true`, `"destroy_flag": yes`, 1)), ncclras.ErrInvalid, "true or false"},
		"a long text":       {status(`{"nccl_version": "` + strings.Repeat("x", 1<<16)), ncclras.ErrInvalid, "4096 bytes"},
		"a long word":       {status(`{"x": ` + strings.Repeat("1", 1<<16)), ncclras.ErrInvalid, "is no value"},
		"deep":              {status(`{"x": ` + strings.Repeat("[", 1<<16)), ncclras.ErrInvalid, "too deep"},
		"a line in a text":  {status("{\"nccl_version\": \"2\n\""), ncclras.ErrInvalid, "does not end"},
		"many operations":   {status(operations(100)), ncclras.ErrInvalid, "larger than any job"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, rastest.Listen(t, c.talk), false, time.Minute)
			require.ErrorIs(t, err, c.err)
			require.ErrorContains(t, err, c.what)
		})
	}
}

func operations(n int) string {
	var w strings.Builder
	w.WriteString(`{"communicators":[{"ranks":[{"rank":0,"collective_counts":{`)
	for i := range n {
		fmt.Fprintf(&w, `"op%d":1,`, i)
	}
	return w.String()
}

// Nobody listens; a stopped process takes connections and says nothing; a slow process is waited for no longer than ctx.
func TestSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := l.Addr().String()
	l.Close()
	_, err = ask(t, gone, false, time.Minute)
	require.ErrorIs(t, err, ncclras.ErrAbsent)

	_, err = ask(t, "no.such.host.invalid:28028", false, time.Minute)
	require.ErrorIs(t, err, ncclras.ErrAbsent)

	read := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	_, err = ask(t, rastest.Listen(t, read), false, 1500*time.Millisecond)
	require.ErrorIs(t, err, ncclras.ErrTimeout)

	slow := func(conn net.Conn) {
		_, _ = io.WriteString(conn, "SERVER PROTOCOL 2\nOK\nERROR: Invalid event group '?'\n{")
		read(conn)
	}
	_, err = ask(t, rastest.Listen(t, slow), false, 500*time.Millisecond)
	require.ErrorIs(t, err, ncclras.ErrTimeout)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	c := ncclras.Client{Endpoint: rastest.Listen(t, slow)}
	_, err = c.Ask(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// Behind a port are several processes. Where the first is stopped, the next connection may get to another.
func TestStoppedProcess(t *testing.T) {
	alive := rastest.Serve(t, rastest.V2307, hang)
	var stopped atomic.Bool
	addr := rastest.Listen(t, func(conn net.Conn) {
		if stopped.CompareAndSwap(false, true) {
			_, _ = io.Copy(io.Discard, conn)
			return
		}
		to, err := net.Dial("tcp", alive.Addr)
		if err != nil {
			return
		}
		defer to.Close()
		go func() { _, _ = io.Copy(to, conn) }()
		_, _ = io.Copy(conn, to)
	})
	a, err := ask(t, addr, false, time.Minute)
	require.NoError(t, err)
	assert.Len(t, a.Communicators, 2)
}

// 50,000 ranks are read in bounded memory, and more ranks than any job has are not.
func TestLarge(t *testing.T) {
	ranks := 50_000
	if testing.Short() {
		ranks /= 8
	}
	s := rastest.Serve(t, rastest.V2307, func() *ncclras.Answer { return rastest.Job(ranks) })
	a, err := ask(t, s.Addr, false, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, rastest.Job(ranks), a)

	before := memory()
	endless := &repeat{head: `{"communicators":[{"ranks":[`, again: `{"rank":1,"host":"10.0.0.1"},`}
	_, err = ncclras.Read(endless)
	require.ErrorContains(t, err, "larger than any job")
	assert.Less(t, memory()-before, int64(256<<20))
	_, err = ncclras.Read(&repeat{head: `{"communicators":[`, again: `{},`})
	require.ErrorContains(t, err, "larger than any job")
}

func memory() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

// repeat is head, then again for ever.
type repeat struct{ head, again string }

func (r *repeat) Read(b []byte) (n int, err error) {
	if r.head == "" {
		r.head = r.again
	}
	n = copy(b, r.head)
	r.head = r.head[n:]
	return n, nil
}

// Unknown members, in any order, and texts with escapes.
func TestUnknown(t *testing.T) {
	a, err := ncclras.Read(strings.NewReader(`{"future":{"a":[1,{"b":null}],"c":"\""},"communicators":[{"ranks":[{"host":"\u00e4\\","rank":0,"collective_counts":` +
		`{"AllReduce":3,"AlltoAll":1},"more":true},{"collective_counts":{"AlltoAll":2,"Gather":5},"rank":1}],"size":2}],"nccl_version":"2.40.0"}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"AllReduce", "AlltoAll", "Gather"}, a.Operations)
	assert.Equal(t, []uint64{3, 1}, a.Communicators[0].Ranks[0].Counts)
	assert.Equal(t, []uint64{0, 2, 5}, a.Communicators[0].Ranks[1].Counts)
	assert.Equal(t, `ä\`, a.Communicators[0].Ranks[0].Host)
	assert.Equal(t, "ncclRemoteError", ncclras.Result(6).String())
	assert.Equal(t, "ncclResult_t 12", ncclras.Result(12).String())
}

// FuzzRead: nothing panics, errors are ErrInvalid, and no rank has more counts than the answer has operations.
func FuzzRead(f *testing.F) {
	for _, version := range []string{rastest.V2289, rastest.V2307} {
		var b bytes.Buffer
		rastest.Write(&b, version, hang())
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"communicators":[{"ranks":[{"rank":0,"collective_counts":{"A":1}},{"rank":0,"collective_counts":{"B":1,"A":2}}]}],"x":"\u0041"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ncclras.Read(bytes.NewReader(data))
		if err != nil {
			require.ErrorIs(t, err, ncclras.ErrInvalid)
			return
		}
		for i := range a.Communicators {
			for j := range a.Communicators[i].Ranks {
				r := &a.Communicators[i].Ranks[j]
				require.LessOrEqual(t, len(r.Counts), len(a.Operations))
				require.GreaterOrEqual(t, r.Rank, int32(0))
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	var text bytes.Buffer
	rastest.Write(&text, rastest.V2307, rastest.Job(8192))
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ncclras.Read(bytes.NewReader(text.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}
