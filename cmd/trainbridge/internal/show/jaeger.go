package show

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Errors that tell what to do.
var (
	ErrUnreachable = errors.New("show: cannot reach Jaeger")
	ErrNotJaeger   = errors.New("show: this is not Jaeger's query API")
	ErrNoTraces    = errors.New("show: no traces")
)

// jaeger is the query API of Jaeger 2 at base, such as http://127.0.0.1:16686.
type jaeger struct {
	base string
	http *http.Client
}

const maxAnswer = 512 << 20

// get returns the body of a GET; found is false on 404.
func (j *jaeger) get(ctx context.Context, path string, query url.Values) (body []byte, found bool, err error) {
	address := strings.TrimSuffix(j.base, "/") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, false, fmt.Errorf("%w: --jaeger %q is no URL: use such as http://127.0.0.1:16686", ErrUnreachable, j.base)
	}
	resp, err := j.http.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return nil, false, fmt.Errorf("%w at %s: %w: start it, or give the address of its query port with --jaeger", ErrUnreachable, j.base, err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, false, fmt.Errorf("%w at %s: the answer broke off: %w", ErrUnreachable, j.base, err)
	}
	if len(body) > maxAnswer {
		return nil, false, fmt.Errorf("show: Jaeger's answer exceeds %d MiB: ask for one trace with --trace", maxAnswer>>20)
	}
	if resp.StatusCode == http.StatusOK {
		return body, true, nil
	}
	var failed struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(body, &failed) != nil || failed.Error.Message == "" {
		return nil, false, fmt.Errorf("%w: %s answered %s: --jaeger needs the query port of Jaeger 2, 16686 by default", ErrNotJaeger, address, resp.Status)
	}
	if resp.StatusCode == http.StatusNotFound {
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("show: Jaeger at %s: %s", j.base, failed.Error.Message)
}

func (j *jaeger) services(ctx context.Context) ([]string, error) {
	body, _, err := j.get(ctx, "/api/v3/services", nil)
	if err != nil {
		return nil, err
	}
	var answer struct{ Services []string }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%w: %s/api/v3/services is not JSON: --jaeger needs the query port of Jaeger 2, 16686 by default", ErrNotJaeger, j.base)
	}
	slices.Sort(answer.Services)
	return answer.Services, nil
}

// window asks for traces of a service with spans that began in a time, at most n of them; none is no error.
func (j *jaeger) window(ctx context.Context, service string, from, to time.Time, n int) (ptrace.Traces, error) {
	body, found, err := j.get(ctx, "/api/v3/traces", url.Values{
		"query.service_name":   {service},
		"query.start_time_min": {from.UTC().Format(time.RFC3339Nano)},
		"query.start_time_max": {to.UTC().Format(time.RFC3339Nano)},
		"query.num_traces":     {strconv.Itoa(n)},
	})
	if err != nil || !found {
		return ptrace.NewTraces(), err
	}
	return decode(body)
}

// nothing says why there are no traces, and what to do.
func (j *jaeger) nothing(ctx context.Context, opt options) error {
	services, err := j.services(ctx)
	switch {
	case err != nil:
		return err
	case len(services) == 0:
		return fmt.Errorf("%w in Jaeger at %s yet: check that the collector runs, that its logs have lines and that its OTLP exporter points to this Jaeger", ErrNoTraces, j.base)
	case opt.run != "":
		return fmt.Errorf("%w of run %q: --list has the runs that there are", ErrNoTraces, opt.run)
	}
	return fmt.Errorf("%w of service %q: choose with --service among %s", ErrNoTraces, opt.service, strings.Join(services, ", "))
}

func (j *jaeger) trace(ctx context.Context, id string) (ptrace.Traces, error) {
	body, found, err := j.get(ctx, "/api/v3/traces/"+id, nil)
	if err != nil {
		return ptrace.Traces{}, err
	}
	if !found {
		return ptrace.Traces{}, fmt.Errorf("%w with id %s in Jaeger at %s: leave out --trace to list the latest", ErrNoTraces, id, j.base)
	}
	return decode(body)
}

func decode(body []byte) (ptrace.Traces, error) {
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil {
		return ptrace.Traces{}, fmt.Errorf("%w: its answer is not JSON: %w", ErrNotJaeger, err)
	}
	var u ptrace.JSONUnmarshaler
	td, err := u.UnmarshalTraces(answer.Result)
	if err != nil {
		return ptrace.Traces{}, fmt.Errorf("%w: its answer is not OTLP JSON: %w", ErrNotJaeger, err)
	}
	return td, nil
}
