package source

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
)

// Jaeger is the query API of Jaeger 2, /api/v3, which answers with OTLP JSON.
type Jaeger struct{ client }

// NewJaeger returns the Jaeger whose query port, 16686 by default, is at an address.
func NewJaeger(address string) *Jaeger { return &Jaeger{newClient("Jaeger", address)} }

// ask returns the body of a GET; found is false on Jaeger's 404. Jaeger's own errors are JSON with a message; any other body is of a foreign server.
func (j *Jaeger) ask(ctx context.Context, path string, query url.Values) (body []byte, found bool, err error) {
	status, body, err := j.get(ctx, path, query, "application/json")
	if err != nil || status == http.StatusOK {
		return body, err == nil, err
	}
	var failed struct {
		Error struct{ Message string }
	}
	switch err := json.Unmarshal(body, &failed); {
	case err != nil || failed.Error.Message == "":
		return nil, false, j.other(path, fmt.Sprintf("answered %d %s", status, http.StatusText(status)))
	case status == http.StatusNotFound:
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("%s: %s", j, failed.Error.Message)
}

// Services implements Source. Jaeger's own service is left out: Jaeger traces itself.
func (j *Jaeger) Services(ctx context.Context) ([]string, error) {
	defer j.done()
	const path = "/api/v3/services"
	body, _, err := j.ask(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	var answer struct{ Services []string }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, j.other(path, "is not JSON")
	}
	slices.Sort(answer.Services)
	return slices.DeleteFunc(answer.Services, func(s string) bool { return s == "jaeger" }), nil
}

// Trace implements Source.
func (j *Jaeger) Trace(ctx context.Context, id pcommon.TraceID) (*tree.Trace, error) {
	defer j.done()
	traces, err := j.traces(ctx, "/api/v3/traces/"+id.String(), nil)
	switch {
	case err != nil:
		return nil, err
	case len(traces) == 0:
		return nil, noTrace(j, id)
	}
	return traces[0], nil
}

// Find implements Source. The last days are searched first, then all time since 2000.
func (j *Jaeger) Find(ctx context.Context, q Query) (*Found, error) {
	defer j.done()
	services, err := q.services(ctx, j)
	if err != nil {
		return nil, err
	}
	days := q.Now.Add(-recent)
	return newWindows(j, q, time.Microsecond).all(ctx, services, []window{
		{days, q.Now.Add(tomorrow)}, {time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), days},
	})
}

// window implements store.
func (j *Jaeger) window(ctx context.Context, service string, in window, n int) (traces []*tree.Trace, full bool, err error) {
	traces, err = j.traces(ctx, "/api/v3/traces", url.Values{
		"query.service_name":   {service},
		"query.start_time_min": {in.from.UTC().Format(time.RFC3339Nano)},
		"query.start_time_max": {in.to.UTC().Format(time.RFC3339Nano)},
		"query.num_traces":     {strconv.Itoa(n)},
	})
	return traces, len(traces) >= n, err
}

// traces returns the traces of an answer; to have none is no error.
func (j *Jaeger) traces(ctx context.Context, path string, query url.Values) ([]*tree.Trace, error) {
	body, found, err := j.ask(ctx, path, query)
	if err != nil || !found {
		return nil, err
	}
	td, err := decodeJaeger(body)
	if err != nil {
		return nil, j.other(path, err.Error())
	}
	return tree.Build(td), nil
}

// decodeJaeger reads an answer of /api/v3: {"result": OTLP JSON}.
func decodeJaeger(body []byte) (ptrace.Traces, error) {
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil {
		return ptrace.Traces{}, fmt.Errorf("is not JSON: %w", err)
	}
	var u ptrace.JSONUnmarshaler
	td, err := u.UnmarshalTraces(answer.Result)
	if err != nil {
		return ptrace.Traces{}, fmt.Errorf("is not OTLP JSON: %w", err)
	}
	return td, nil
}
