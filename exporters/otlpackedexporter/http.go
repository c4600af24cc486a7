package otlpackedexporter

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	protobuf    = "application/x-protobuf"
	maxResponse = 64 << 10 // By that are read of an answer
	// The limit of net/http.
	maxRedirects = 10
)

// httpClient sends by OTLP/HTTP.
type httpClient struct {
	http      *http.Client
	endpoint  string
	userAgent string
}

// newHTTPClient is a client by the settings under http.
func newHTTPClient(ctx context.Context, e *otlpExporter, host component.Host) (client, error) {
	c, err := e.cfg.HTTP.Get().ToClient(ctx, host.GetExtensions(), e.set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	c.CheckRedirect = onlyPosts
	return &httpClient{http: c, endpoint: strings.TrimSuffix(e.cfg.HTTP.Get().Endpoint, "/"), userAgent: e.userAgent}, nil
}

// onlyPosts follows a redirection that repeats the request (307, 308). After other redirections a client sends GET: a login page has accepted nothing.
func onlyPosts(req *http.Request, via []*http.Request) error {
	if req.Method != http.MethodPost || len(via) >= maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

func (c *httpClient) close() error {
	c.http.CloseIdleConnections()
	return nil
}

// traces posts spans; an error is a gRPC status, as httpError makes.
func (c *httpClient) traces(ctx context.Context, td ptrace.Traces) (int64, string, error) {
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	if err != nil {
		return 0, "", status.Error(codes.InvalidArgument, err.Error())
	}
	answer, err := c.post(ctx, "/v1/traces", body)
	resp := ptraceotlp.NewExportResponse()
	if err != nil || resp.UnmarshalProto(answer) != nil { // an answer other than OTLP has no partial success
		return 0, "", err
	}
	return resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage(), nil
}

// metrics posts metrics, as traces does spans.
func (c *httpClient) metrics(ctx context.Context, md pmetric.Metrics) (int64, string, error) {
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		return 0, "", status.Error(codes.InvalidArgument, err.Error())
	}
	answer, err := c.post(ctx, "/v1/metrics", body)
	resp := pmetricotlp.NewExportResponse()
	if err != nil || resp.UnmarshalProto(answer) != nil {
		return 0, "", err
	}
	return resp.PartialSuccess().RejectedDataPoints(), resp.PartialSuccess().ErrorMessage(), nil
}

// post posts a request and returns the server's answer, nil if not protobuf. Any other outcome than acceptance is an error: an unreachable server, a refusal,
// and a web page, even with status 200, since a proxy and not the server has answered.
func (c *httpClient) post(ctx context.Context, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint+path, bytes.NewReader(body))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	req.Header.Set("Content-Type", protobuf)
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != protobuf {
		answer = nil
	}
	switch {
	case kind == "text/html" && resp.StatusCode <= 299:
		return nil, status.Error(codes.Unavailable, "HTTP status "+resp.Status+" with a web page, which an OTLP server does not send: a proxy's, or its login page")
	case resp.StatusCode >= 200 && resp.StatusCode <= 299:
		return answer, nil // the request was accepted, even where the answer's body broke off
	case err != nil: // of a refusal whose body broke off, the status is enough
		answer = nil
	}
	return nil, httpError(resp, answer)
}

// httpError maps an HTTP status, and the answer if protobuf, to the code of an OTLP/gRPC server (OTLP specification, "OTLP/HTTP Response"). Any
// status without a code of its own is Unavailable: the request is sent again.
func httpError(resp *http.Response, answer []byte) error {
	text := "HTTP status " + resp.Status
	var said spb.Status
	if proto.Unmarshal(answer, &said) == nil && said.GetMessage() != "" {
		text += ": " + said.GetMessage()
	}
	code := codes.Unavailable
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		code = codes.InvalidArgument
	case http.StatusUnauthorized:
		code = codes.Unauthenticated
	case http.StatusForbidden:
		code = codes.PermissionDenied
	case http.StatusNotFound:
		code = codes.Unimplemented
	case http.StatusTooManyRequests:
		code = codes.ResourceExhausted
	case http.StatusRequestEntityTooLarge:
		return status.Error(codes.ResourceExhausted, text+": request entity too large") // the words are for refusal.TooLarge: smaller parts may pass
	}
	st := status.New(code, text)
	if after := retryAfter(resp.Header.Get("Retry-After")); after > 0 {
		if with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); err == nil {
			st = with
		}
	}
	return st.Err()
}

// retryAfter is the delay until the seconds or the date of a header (RFC 9110, 10.2.3) have passed; 0 or less: none.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return time.Until(date)
	}
	return 0
}
