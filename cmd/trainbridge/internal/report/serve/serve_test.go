package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/html"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func request() format.Request {
	return format.Request{Options: offline.Options{Run: "r", Positions: true}, Conclude: func(j *digest.Job, _ *offline.Reading) format.Conclusion {
		return format.Conclusion{Title: "Run " + j.Run, Headline: "It went well.", Severity: "good"}
	}}
}

// steps are lines of a training log.
func steps(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, `{"step": %d, "timestamp": %q, "loss": %g, "step_time_s": %g, "tokens": 4096}`+"\n",
			i, time.Date(2026, 11, 23, 2, 0, 2*i, 0, time.UTC).Format(time.RFC3339), 1+10/float64(i), 2+float64(i%7)/8)
	}
	return b.String()
}

func logOf(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "train.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func add(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// written is the page of --format html.
func written(t *testing.T, file string) string {
	t.Helper()
	in, err := offline.Open([]string{file}, nil)
	require.NoError(t, err)
	defer in.Close()
	var out bytes.Buffer
	req := request()
	req.In, req.Out = in, &out
	w := html.New(req)
	read, err := offline.Read(t.Context(), in, req.Options, w.Sink())
	require.NoError(t, err)
	require.NoError(t, w.Finish(t.Context(), read))
	return out.String()
}

// again reads the logs as run does, and returns the error.
func (p *page) again(t *testing.T) (tag, trouble string) {
	t.Helper()
	p.end(p.read(t.Context(), time.Unix(1, 0)))
	_, tag, s := p.now()
	assert.False(t, s.Reading)
	return tag, s.Trouble
}

var dataOf = regexp.MustCompile(`(?s)id="data"(?: data-tag='("[0-9a-f]{16}")')?>(.*?)</script>`)

// The page is the page of --format html, except its tag, the script for updates, and the policy with the script's hash.
func TestSamePage(t *testing.T) {
	file := logOf(t, steps(1, 30))
	p, err := newPage([]string{file}, request(), io.Discard)
	require.NoError(t, err)
	tag, trouble := p.again(t)
	require.Empty(t, trouble)
	want := written(t, file)
	data, _, _ := p.now()
	assert.Equal(t, dataOf.FindStringSubmatch(want)[2], string(data))

	var b bytes.Buffer
	require.NoError(t, html.Served().Write(&b, data, tag))
	served := b.String()
	assert.Equal(t, tag, dataOf.FindStringSubmatch(served)[1])
	script := regexp.MustCompile(`(?s)<script>\(\(\) => \{\n"use strict";\n(.*)\}\)\(\);\n</script>`)
	own, asks := script.FindStringSubmatch(want)[1], script.FindStringSubmatch(served)[1]
	require.True(t, strings.HasPrefix(asks, own))
	policy := regexp.MustCompile(`content="default-src[^"]*"`)
	served = strings.Replace(policy.ReplaceAllString(served, ""), asks, own, 1)
	served = strings.Replace(served, " data-tag='"+tag+"'", "", 1)
	assert.Equal(t, policy.ReplaceAllString(want, ""), served)
}

// New lines of the logs come onto the page; an unreadable log leaves the page unchanged, and is named on the console once.
func TestGrowth(t *testing.T) {
	file := logOf(t, steps(1, 30))
	var console bytes.Buffer
	p, err := newPage([]string{file}, request(), &console)
	require.NoError(t, err)
	_, empty, _ := p.now()
	first, _ := p.again(t)
	assert.NotEqual(t, empty, first)
	same, _ := p.again(t)
	assert.Equal(t, first, same)

	add(t, file, steps(31, 32))
	second, trouble := p.again(t)
	assert.Empty(t, trouble)
	assert.NotEqual(t, first, second)
	data, _, _ := p.now()
	assert.Equal(t, dataOf.FindStringSubmatch(written(t, file))[2], string(data))

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, gone := range []struct {
		how  func() error
		want string
	}{
		{func() error { return os.Truncate(file, 0) }, "nothing to read: the file is empty"},
		{func() error { return os.WriteFile(file, []byte("nothing\n"), 0o600) }, "nothing to read: the file is text in no format that is known"},
		{func() error { return os.Remove(file) }, file + ": "},
	} {
		require.NoError(t, gone.how())
		for range 2 {
			tag, trouble := p.again(t)
			assert.Equal(t, second, tag)
			assert.Contains(t, trouble, gone.want)
		}
	}
	assert.Equal(t, 3, strings.Count(console.String(), "\n"), console.String())
	require.NoError(t, os.WriteFile(file, text, 0o600))
	last, trouble := p.again(t)
	assert.Empty(t, trouble)
	assert.Equal(t, second, last, "the same logs")
}

// A path among several that names nothing any more is named for as long as that lasts.
func TestMissing(t *testing.T) {
	file, other := logOf(t, steps(1, 30)), logOf(t, steps(1, 30))
	p, err := newPage([]string{file, other}, request(), io.Discard)
	require.NoError(t, err)
	_, trouble := p.again(t)
	require.Empty(t, trouble)
	require.NoError(t, os.Remove(other))
	for range 2 {
		_, trouble = p.again(t)
		assert.Contains(t, trouble, other)
	}
}

func listen(t *testing.T, address string) *Listener {
	t.Helper()
	l, err := Listen(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestListen(t *testing.T) {
	for _, address := range []string{"8080", "127.0.0.1", "[::1"} {
		_, err := Listen(t.Context(), address)
		require.ErrorContains(t, err, "write it as 127.0.0.1:8080", address)
	}
	l := listen(t, "127.0.0.1:0")
	_, err := Listen(t.Context(), l.Addr().String())
	require.ErrorContains(t, err, "address already in use")
	assert.False(t, l.Open())
	assert.Regexp(t, `^http://127\.0\.0\.1:[1-9]\d*/\?token=[0-9a-f]{32}$`, l.URL())
	assert.NotEqual(t, l.token, listen(t, "127.0.0.1:0").token)
	all := listen(t, ":0")
	assert.True(t, all.Open())
	name, err := os.Hostname()
	require.NoError(t, err)
	assert.Contains(t, all.URL(), "//"+name+":")
}

// Who asks under another name, for a page of another origin, without the token, or for anything but reading, gets nothing of the logs.
func TestAdmission(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	p, err := newPage(nil, request(), io.Discard)
	require.NoError(t, err)
	p.set([]byte(`"secret"`))
	h := newHandler(l, p)
	host := l.Addr().String()
	_, port, _ := net.SplitHostPort(host)
	cookie := "trainbridge_" + port + "=" + l.token
	for _, tt := range []struct {
		name, method, host, origin, target, cookie string
		want                                       int
	}{
		{"token", "GET", host, "", "/?token=" + l.token, "", 200},
		{"cookie", "GET", host, "", "/", cookie, 200},
		{"cookie among others", "GET", host, "http://" + host, "/state.json", "a=b; " + cookie, 200},
		{"localhost", "GET", "localhost:" + port, "http://localhost:" + port, "/document.json", cookie, 200},
		{"a tunnel's port", "GET", "localhost:9", "http://localhost:9", "/document.json", cookie, 200},
		{"IPv6", "GET", "[::1]:" + port, "", "/document.json", cookie, 200},
		{"HEAD", "HEAD", host, "", "/document.json", cookie, 200},
		{"no such page", "GET", host, "", "/etc/passwd", cookie, 404},
		{"no token", "GET", host, "", "/", "", 403},
		{"no token for data", "GET", host, "", "/document.json", "", 403},
		{"part of a token", "GET", host, "", "/?token=" + l.token[:31], "", 403},
		{"other token", "GET", host, "", "/?token=" + strings.Repeat("0", 32), cookie, 403},
		{"empty token", "GET", host, "", "/?token=", "", 403},
		{"empty cookie", "GET", host, "", "/", "trainbridge_" + port + "=", 403},
		{"cookie of another port", "GET", host, "", "/", "trainbridge_1=" + l.token, 403},
		{"other name", "GET", "evil.example:" + port, "", "/?token=" + l.token, cookie, 421},
		{"name that begins alike", "GET", "127.0.0.1.evil.example", "", "/", cookie, 421},
		{"no name", "GET", "", "", "/", cookie, 421},
		{"other address", "GET", "192.0.2.1:" + port, "", "/", cookie, 421},
		{"other origin", "GET", host, "http://evil.example", "/document.json", cookie, 403},
		{"other port", "GET", host, "http://127.0.0.1:1", "/document.json", cookie, 403},
		{"opaque origin", "GET", host, "null", "/document.json", cookie, 403},
		{"POST", "POST", host, "", "/", cookie, 405},
		{"PUT", "PUT", host, "http://" + host, "/document.json", cookie, 405},
		{"OPTIONS of another origin", "OPTIONS", host, "http://evil.example", "/document.json", "", 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.target, nil)
			r.Host = tt.host
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			if tt.cookie != "" {
				r.Header.Set("Cookie", tt.cookie)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			assert.Equal(t, tt.want, w.Code, w.Body)
			assert.Equal(t, tt.want == 200 && tt.target != "/state.json", strings.Contains(w.Body.String(), "secret"))
			checkHead(t, w.Header())
			set := ""
			if strings.Contains(tt.target, "token") && tt.want == 200 {
				set = cookie + "; Path=/; HttpOnly; SameSite=Strict"
			}
			assert.Equal(t, set, w.Header().Get("Set-Cookie"))
		})
	}
}

func checkHead(t *testing.T, head http.Header) {
	t.Helper()
	policy := head.Get("Content-Security-Policy")
	assert.True(t, strings.HasPrefix(policy, "default-src 'none'; "), policy)
	assert.Contains(t, policy, "; connect-src 'self'; ")
	assert.True(t, strings.HasSuffix(policy, "; frame-ancestors 'none'"), policy)
	assert.Empty(t, head.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, "no-store", head.Get("Cache-Control"))
}

// A public page is asked for by any address of the host, or by the given name.
func TestNames(t *testing.T) {
	l := listen(t, "0.0.0.0:0")
	own, err := os.Hostname()
	require.NoError(t, err)
	for host, want := range map[string]bool{
		own: true, "192.0.2.1:1": true, "[2001:db8::1]:1": true, "localhost": true, "evil.example": false, "": false, "[": false,
	} {
		assert.Equal(t, want, l.named(host), host)
	}
	l = listen(t, "localhost:0")
	assert.True(t, l.named("LOCALHOST:1"))
	assert.False(t, l.named("192.0.2.1"))
}

// serving serves a page until the test ends, or until stopped.
func serving(t *testing.T, paths ...string) (client *http.Client, address string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := listen(t, "127.0.0.1:0")
	done := make(chan error, 1)
	go func() { done <- l.Serve(ctx, paths, request(), io.Discard) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	t.Cleanup(stop)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client = &http.Client{Jar: jar, Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	_, err = get(client, l.URL())
	require.NoError(t, err)
	u, err := url.Parse(l.URL())
	require.NoError(t, err)
	return client, "http://" + u.Host, stop
}

func get(client *http.Client, address string) (text string, err error) {
	r, err := client.Get(address)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return "", errors.New(r.Status)
	}
	body, err := io.ReadAll(r.Body)
	return string(body), err
}

// Two hundred clients of a growing log all come to its end, and nothing is left of them after the end of the server.
func TestClients(t *testing.T) {
	file := logOf(t, steps(1, 30))
	client, address, stop := serving(t, file)
	has := func(what string) {
		assert.Eventually(t, func() bool {
			_, err := get(client, address+"/state.json")
			text, failed := get(client, address+"/document.json")
			return err == nil && failed == nil && strings.Contains(text, what)
		}, 2*time.Minute, 100*time.Millisecond)
	}
	has("30 records in 30 lines")
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() { has("40 records in 40 lines") })
	}
	add(t, file, steps(31, 40))
	all.Wait()
	stop()
	_, err := client.Get(address)
	require.Error(t, err)
}

// A page of 10,000 steps keeps 64 MiB at most, after any number of readings.
func TestMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	file := logOf(t, steps(1, 10_000))
	html.Served()
	before := heap()
	p, err := newPage([]string{file}, request(), io.Discard)
	require.NoError(t, err)
	for i := range 3 {
		_, trouble := p.again(t)
		require.Empty(t, trouble)
		more := int64(heap()) - int64(before)
		t.Logf("%d bytes more", more)
		assert.Less(t, more, int64(64<<20))
		add(t, file, steps(10_001+i, 10_001+i))
	}
	runtime.KeepAlive(p)
}
