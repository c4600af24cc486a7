package replay

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/cenkalti/backoff/v5"
	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// store is a server of remote write that keeps the samples: "labels" → time → value. answer may refuse a request.
type store struct {
	*remote
	requests int
	samples  map[string]map[int64]float64
	answer   func(samples map[string]map[int64]float64) (status int, text string)
}

func newStore(tb testing.TB) *store {
	tb.Helper()
	s := &store{samples: map[string]map[int64]float64{}, answer: func(map[string]map[int64]float64) (int, string) { return http.StatusNoContent, "" }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests++
		assert.Equal(tb, "snappy application/x-protobuf 0.1.0",
			r.Header.Get("Content-Encoding")+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("X-Prometheus-Remote-Write-Version"))
		body, err := io.ReadAll(r.Body)
		assert.NoError(tb, err)
		message, err := s2.Decode(nil, body)
		assert.NoError(tb, err)
		got := decode(tb, message)
		status, text := s.answer(got)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
		if status/100 != 2 {
			return
		}
		for labels, points := range got {
			if s.samples[labels] == nil {
				s.samples[labels] = map[int64]float64{}
			}
			for at, v := range points {
				if _, twice := s.samples[labels][at]; twice {
					tb.Errorf("%s at %d is sent twice", labels, at)
				}
				s.samples[labels][at] = v
			}
		}
	}))
	tb.Cleanup(server.Close)
	to, err := url.Parse(server.URL)
	require.NoError(tb, err)
	s.remote = newRemote(to)
	s.client, s.pause = server.Client(), &backoff.ZeroBackOff{}
	return s
}

// decode reads a WriteRequest.
func decode(tb testing.TB, b []byte) map[string]map[int64]float64 {
	tb.Helper()
	all := map[string]map[int64]float64{}
	fields(tb, b, func(_ protowire.Number, series []byte, _ uint64) {
		var labels []string
		points := map[int64]float64{}
		fields(tb, series, func(n protowire.Number, part []byte, _ uint64) {
			if n == seriesLabels {
				var of [3]string
				fields(tb, part, func(n protowire.Number, text []byte, _ uint64) { of[n] = string(text) })
				labels = append(labels, of[labelName]+"="+of[labelValue])
				return
			}
			var of [3]uint64
			fields(tb, part, func(n protowire.Number, _ []byte, v uint64) { of[n] = v })
			points[int64(of[sampleTime])] = math.Float64frombits(of[sampleValue])
		})
		all[strings.Join(labels, ",")] = points
	})
	return all
}

func fields(tb testing.TB, b []byte, f func(n protowire.Number, text []byte, number uint64)) {
	tb.Helper()
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		require.NoError(tb, protowire.ParseError(size))
		b = b[size:]
		var text []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			number, size = protowire.ConsumeFixed64(b)
		default:
			tb.Fatalf("a field of kind %d", kind)
		}
		require.NoError(tb, protowire.ParseError(size))
		f(n, text, number)
		b = b[size:]
	}
}

// someSeries has n series of m samples each.
func someSeries(n, m int) (all []*series) {
	for i := range n {
		s := &series{labels: []label{{"__name__", "m"}, {"i", strconv.Itoa(i)}}}
		for at := range m {
			s.samples = append(s.samples, sample{int64(at), float64(i) + float64(at)/8})
		}
		all = append(all, s)
	}
	return all
}

func (s *store) send(t *testing.T, all []*series) error {
	t.Helper()
	if err := s.put(t.Context(), all); err != nil {
		return err
	}
	return s.flush(t.Context())
}

// has checks that the server has each sample of the series, but for a number of them.
func (s *store) has(t *testing.T, all []*series, but int) {
	t.Helper()
	n := 0
	for _, x := range all {
		got := s.samples["__name__=m,i="+x.labels[1].value]
		for _, p := range x.samples {
			v, ok := got[p.at]
			if ok {
				n++
			}
			if ok && v != p.value {
				t.Errorf("%v at %d, want %v", v, p.at, p.value)
			}
		}
	}
	assert.Equal(t, count(all)-but, n)
	assert.Equal(t, int64(n), s.sent)
	assert.Equal(t, int64(but), s.there)
}

func TestPut(t *testing.T) {
	s, all := newStore(t), someSeries(7, 3000)
	require.NoError(t, s.send(t, all))
	s.has(t, all, 0)
	assert.Equal(t, 3, s.requests, "10,000 samples each")

	s = newStore(t)
	require.NoError(t, s.send(t, nil))
	assert.Zero(t, s.requests)
	require.NoError(t, s.check(t.Context()))
	require.NoError(t, s.send(t, []*series{{labels: []label{{"__name__", "m"}, {"i", "0"}}, samples: []sample{{-5, math.Inf(1)}, {1 << 50, -1}}}}))
	assert.Equal(t, map[string]map[int64]float64{"__name__=m,i=0": {-5: math.Inf(1), 1 << 50: -1}}, s.samples)
}

// Samples that the server has already are left out, one by one, and all others arrive.
func TestDuplicates(t *testing.T) {
	s, all := newStore(t), someSeries(5, 7)
	s.answer = func(got map[string]map[int64]float64) (int, string) {
		for labels, points := range got {
			if _, ok := points[3]; ok && (labels == "__name__=m,i=1" || labels == "__name__=m,i=4") {
				return http.StatusBadRequest, "duplicate sample for timestamp\n"
			}
		}
		return http.StatusNoContent, ""
	}
	require.NoError(t, s.send(t, all))
	s.has(t, all, 2)
}

// An overloaded server is asked again; a refusal is final, with an error that has advice.
func TestAnswers(t *testing.T) {
	s, all := newStore(t), someSeries(2, 2)
	s.answer = func(map[string]map[int64]float64) (int, string) {
		if s.requests < 5 {
			return []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}[s.requests%2], "later"
		}
		return http.StatusOK, ""
	}
	require.NoError(t, s.send(t, all))
	s.has(t, all, 0)
	for text, tt := range map[string]struct {
		status int
		want   string
	}{
		"out of bounds":               {http.StatusBadRequest, "Set storage.tsdb.out_of_order_time_window in its configuration"},
		"too old sample":              {http.StatusBadRequest, "out_of_order_time_window"},
		"404 page not found":          {http.StatusNotFound, "Start Prometheus with --web.enable-remote-write-receiver; its URL ends with /api/v1/write"},
		"label name is not valid":     {http.StatusBadRequest, "HTTP 400: label name is not valid"},
		"no credentials":              {http.StatusUnauthorized, "HTTP 401: no credentials"},
		strings.Repeat("long", 10000): {http.StatusBadRequest, "longlong"},
	} {
		s := newStore(t)
		s.url.User = url.UserPassword("me", "secret")
		s.answer = func(map[string]map[int64]float64) (int, string) { return tt.status, text }
		err := s.send(t, all)
		require.ErrorContains(t, err, tt.want)
		require.ErrorContains(t, err, "--metrics http://me:xxxxx@127.0.0.1:")
		assert.NotContains(t, err.Error(), "secret")
		assert.Less(t, len(err.Error()), 2000)
		assert.Equal(t, 1, s.requests)
	}
}

func TestAway(t *testing.T) {
	to, err := url.Parse("http://me:secret@127.0.0.1:1/api/v1/write") // nothing listens on port 1
	require.NoError(t, err)
	err = newRemote(to).check(t.Context())
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error(), "secret")
}

func TestRemoteURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:9090":             "http://127.0.0.1:9090/api/v1/write",
		"https://p.example/":                "https://p.example/api/v1/write",
		"http://mimir:8080/api/v1/push?a=b": "http://mimir:8080/api/v1/push?a=b",
		"127.0.0.1:9090":                    "",
		"prometheus":                        "",
		"file:///etc/passwd":                "",
		"http://":                           "",
		"http://a b":                        "",
	} {
		u, err := remoteURL(text)
		if want == "" {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		assert.Equal(t, want, u.String())
	}
}
