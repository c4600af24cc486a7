package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// maxSamples bounds the samples of a request. Prometheus' own remote write sends 2,000.
	maxSamples = 10_000
	// patience is how long requests to an absent or overloaded server are retried.
	patience = time.Minute
)

// remote sends samples by Prometheus' remote write, version 1 (https://prometheus.io/docs/specs/prw/remote_write_spec/).
type remote struct {
	url    *url.URL
	client *http.Client
	pause  backoff.BackOff // between tries

	waiting []*series // for the next request
	n       int       // samples in waiting
	message []byte    // the last request, before compression: memory to reuse

	sent, there int64 // samples: taken; refused, because the same time has a different value
}

// newRemote is a remote of the URL of a remote write.
func newRemote(to *url.URL) *remote {
	return &remote{url: to, client: &http.Client{Timeout: 30 * time.Second}, pause: backoff.NewExponentialBackOff()}
}

// check sends an empty request, once, to learn before the reading whether the server takes remote writes.
func (r *remote) check(ctx context.Context) error {
	err := r.try(ctx, s2.EncodeSnappy(nil, nil))
	if of := (*backoff.PermanentError)(nil); errors.As(err, &of) {
		return of.Err
	}
	return err
}

// put adds series, with samples in order of time, to the next request, and sends each request once full, with maxSamples samples. The samples of the last
// request wait for flush.
func (r *remote) put(ctx context.Context, all []*series) error {
	for _, s := range all {
		for rest := s.samples; len(rest) > 0; {
			n := min(len(rest), maxSamples-r.n)
			r.waiting = append(r.waiting, &series{labels: s.labels, samples: rest[:n]})
			r.n += n
			rest = rest[n:]
			if r.n == maxSamples {
				if err := r.flush(ctx); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// flush sends what waits.
func (r *remote) flush(ctx context.Context) error {
	all := r.waiting
	r.waiting, r.n = nil, 0
	return r.send(ctx, all)
}

// send sends a request. Prometheus refuses a whole request for a single sample if the series has another value at the sample's time: the sample is found by
// halving the request, counted, and left out.
func (r *remote) send(ctx context.Context, all []*series) error {
	n := count(all)
	if n == 0 {
		return nil
	}
	r.message = encode(r.message[:0], all)
	err := r.post(ctx, s2.EncodeSnappy(nil, r.message))
	var answer *httpError
	switch {
	case err == nil:
		r.sent += int64(n)
	case errors.As(err, &answer) && answer.ofOne() && n > 1:
		first, second := halves(all)
		if err := r.send(ctx, first); err != nil {
			return err
		}
		return r.send(ctx, second)
	case errors.As(err, &answer) && answer.ofOne():
		r.there++
	default:
		return fmt.Errorf("--metrics %s: %w", r.url.Redacted(), err)
	}
	return nil
}

// count is the number of samples.
func count(all []*series) (n int) {
	for _, s := range all {
		n += len(s.samples)
	}
	return n
}

// halves cuts a request in two; a single series is cut between its samples.
func halves(all []*series) (first, second []*series) {
	if len(all) > 1 {
		return all[:len(all)/2], all[len(all)/2:]
	}
	s := all[0]
	middle := len(s.samples) / 2
	return []*series{{labels: s.labels, samples: s.samples[:middle]}}, []*series{{labels: s.labels, samples: s.samples[middle:]}}
}

// httpError is an answer of the server other than success.
type httpError struct {
	status int
	text   string
}

// ofOne reports whether a single sample is refused, for another value of the same time, and not the whole request.
func (r *httpError) ofOne() bool {
	return r.status == http.StatusBadRequest && strings.Contains(r.text, "duplicate sample")
}

// Error includes advice.
func (r *httpError) Error() string {
	what := fmt.Sprintf("HTTP %d: %s", r.status, r.text)
	switch {
	case strings.Contains(r.text, "out of bounds") || strings.Contains(r.text, "out of order") || strings.Contains(r.text, "too old"):
		return what + ": the samples are older than it takes. Set storage.tsdb.out_of_order_time_window in its configuration to more than their age, such as 30d"
	case strings.Contains(r.text, "remote write receiver") || r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed:
		return what + ": it takes no remote write there. Start Prometheus with --web.enable-remote-write-receiver; its URL ends with /api/v1/write"
	}
	return what
}

// post sends a compressed message until the server accepts or refuses, or the patience ends.
func (r *remote) post(ctx context.Context, body []byte) error {
	try := func() (struct{}, error) { return struct{}{}, r.try(ctx, body) }
	_, err := backoff.Retry(ctx, try, backoff.WithBackOff(r.pause), backoff.WithMaxElapsedTime(patience))
	return err
}

// try sends a compressed message once. Errors of the network, an overloaded server (429) and the server's own errors (5xx) may pass; any other refusal is a
// permanent error, which ends the tries of post.
func (r *remote) try(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url.String(), bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("User-Agent", "trainbridge-replay")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	resp, err := r.client.Do(req)
	if err != nil {
		if of := (*url.Error)(nil); errors.As(err, &of) {
			err = of.Err // the URL may hold a password
		}
		return err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode/100 == 5:
		return &httpError{resp.StatusCode, strings.TrimSpace(string(text))}
	}
	return backoff.Permanent(&httpError{resp.StatusCode, strings.TrimSpace(string(text))})
}

// Field numbers of prometheus.WriteRequest and its parts (prompb/remote.proto, prompb/types.proto).
const (
	requestSeries  = 1
	seriesLabels   = 1
	seriesSamples  = 2
	labelName      = 1
	labelValue     = 2
	sampleValue    = 1
	sampleTime     = 2
	sampleValueLen = 1 + 8
)

// encode appends a WriteRequest, field by field. A message within a message is written as a tag, its size, which is computed first, and its fields.
func encode(b []byte, all []*series) []byte {
	var inner []byte
	for _, s := range all {
		inner = inner[:0]
		for _, l := range s.labels {
			inner = protowire.AppendTag(inner, seriesLabels, protowire.BytesType)
			inner = protowire.AppendVarint(inner, uint64(protowire.SizeTag(labelName)+protowire.SizeBytes(len(l.name))+
				protowire.SizeTag(labelValue)+protowire.SizeBytes(len(l.value))))
			inner = protowire.AppendString(protowire.AppendTag(inner, labelName, protowire.BytesType), l.name)
			inner = protowire.AppendString(protowire.AppendTag(inner, labelValue, protowire.BytesType), l.value)
		}
		for _, x := range s.samples {
			inner = protowire.AppendTag(inner, seriesSamples, protowire.BytesType)
			inner = protowire.AppendVarint(inner, uint64(sampleValueLen+protowire.SizeTag(sampleTime)+protowire.SizeVarint(uint64(x.at))))
			inner = protowire.AppendFixed64(protowire.AppendTag(inner, sampleValue, protowire.Fixed64Type), math.Float64bits(x.value))
			inner = protowire.AppendVarint(protowire.AppendTag(inner, sampleTime, protowire.VarintType), uint64(x.at))
		}
		b = protowire.AppendBytes(protowire.AppendTag(b, requestSeries, protowire.BytesType), inner)
	}
	return b
}
