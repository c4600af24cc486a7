package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
)

const (
	tempoRange = 167 * time.Hour // by default Tempo refuses to search 168 h and a second
	tempoWeeks = 8               // searched back; by default Tempo keeps two
	ahead      = time.Hour       // so far the clock of the server, which dates arrivals, may be ahead
)

// Tempo is the HTTP API of Grafana Tempo. It searches blocks by the arrival time of spans: until spans of old logs are in a block, only a search without a time
// finds them.
type Tempo struct{ client }

// NewTempo returns the Tempo whose HTTP port, 3200 by default, is at an address.
func NewTempo(address string) *Tempo { return &Tempo{newClient("Tempo", address)} }

// ask returns the body of a GET; found is false on an empty 404. Status 400 or from 500 on is an error of Tempo, with the body as its text; any other answer is
// of a foreign server.
func (t *Tempo) ask(ctx context.Context, path string, query url.Values, accept string) (body []byte, found bool, err error) {
	status, body, err := t.get(ctx, path, query, accept)
	switch {
	case err != nil:
		return nil, false, err
	case status == http.StatusOK:
		return body, true, nil
	case status == http.StatusNotFound && len(body) == 0: // Tempo's answer about an unknown trace
		return nil, false, nil
	case status == http.StatusBadRequest || status >= http.StatusInternalServerError:
		return nil, false, fmt.Errorf("%s: %s", t, strings.TrimSpace(string(body[:min(len(body), 500)])))
	}
	return nil, false, t.other(path, fmt.Sprintf("answered %d %s", status, http.StatusText(status)))
}

// askJSON fills answer with the JSON of a GET. A 404 is an error: the paths exist in each Tempo.
func (t *Tempo) askJSON(ctx context.Context, path string, query url.Values, answer any) error {
	body, found, err := t.ask(ctx, path, query, "application/json")
	switch {
	case err != nil:
		return err
	case !found:
		return t.other(path, "answered 404 Not Found")
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return t.other(path, "is not JSON")
	}
	return nil
}

// Services implements Source.
func (t *Tempo) Services(ctx context.Context) ([]string, error) {
	defer t.done()
	var answer struct{ TagValues []struct{ Value string } }
	if err := t.askJSON(ctx, "/api/v2/search/tag/resource.service.name/values", nil, &answer); err != nil {
		return nil, err
	}
	var names []string
	for _, v := range answer.TagValues {
		names = append(names, v.Value)
	}
	slices.Sort(names)
	return names, nil
}

// Trace implements Source.
func (t *Tempo) Trace(ctx context.Context, id pcommon.TraceID) (*tree.Trace, error) {
	defer t.done()
	return t.trace(ctx, id)
}

// trace reads a whole trace, or ErrNoTrace.
func (t *Tempo) trace(ctx context.Context, id pcommon.TraceID) (*tree.Trace, error) {
	path := "/api/traces/" + id.String()
	body, found, err := t.ask(ctx, path, nil, "application/protobuf")
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, noTrace(t, id)
	}
	var u ptrace.ProtoUnmarshaler // the answer has the wire form of OTLP's TracesData
	td, err := u.UnmarshalTraces(body)
	if err != nil {
		return nil, t.other(path, "is not OTLP: "+err.Error())
	}
	traces := tree.Build(td)
	if len(traces) == 0 {
		return nil, noTrace(t, id)
	}
	return traces[0], nil
}

// Find implements Source. Week by week is searched, backwards from now; then once without a time.
func (t *Tempo) Find(ctx context.Context, q Query) (*Found, error) {
	defer t.done()
	services, err := q.services(ctx, t)
	if err != nil {
		return nil, err
	}
	var all []window
	for to := q.Now.Add(ahead); len(all) < tempoWeeks; to = to.Add(-tempoRange) {
		all = append(all, window{to.Add(-tempoRange), to})
	}
	all = append(all, window{}) // at any time: for traces not yet in a block
	return newWindows(&tempoSearch{Tempo: t, known: map[pcommon.TraceID]*tree.Trace{}}, q, time.Second).all(ctx, services, all)
}

// tempoSearch reads each trace once, however often a search finds it.
type tempoSearch struct {
	*Tempo
	known map[pcommon.TraceID]*tree.Trace
}

// window implements store. Tempo's search has whole seconds, and finds the ids of traces, which are then read one by one. spss is the
// number of spans of each trace in the answer.
func (t *tempoSearch) window(ctx context.Context, service string, in window, n int) (traces []*tree.Trace, full bool, err error) {
	query := url.Values{"q": {"{resource.service.name=" + strconv.Quote(service) + "}"}, "limit": {strconv.Itoa(n)}, "spss": {"1"}}
	if !in.from.IsZero() {
		query.Set("start", strconv.FormatInt(in.from.Unix(), 10))
		query.Set("end", strconv.FormatInt(in.to.Add(time.Second-1).Unix(), 10)) // rounded up
	}
	var answer struct{ Traces []struct{ TraceID string } }
	if err := t.askJSON(ctx, "/api/search", query, &answer); err != nil {
		return nil, false, err
	}
	ids := make([]pcommon.TraceID, 0, len(answer.Traces))
	for _, found := range answer.Traces {
		id, err := ParseID(found.TraceID)
		if err != nil {
			return nil, false, t.other("/api/search", err.Error())
		}
		ids = append(ids, id)
	}
	if err := t.read(ctx, ids); err != nil {
		return nil, false, err
	}
	for _, id := range ids {
		if tr := t.known[id]; tr != nil {
			traces = append(traces, tr)
		}
	}
	tree.SortByStart(traces)
	return traces, len(ids) >= n, nil
}

// read reads the unknown traces into known, some in parallel. Each worker stops at its first error; read returns one of these.
func (t *tempoSearch) read(ctx context.Context, ids []pcommon.TraceID) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id pcommon.TraceID) bool { return t.known[id] != nil })
	traces, errs := make([]*tree.Trace, len(ids)), make([]error, parallel)
	var wg sync.WaitGroup
	for worker := range parallel {
		wg.Go(func() {
			for i := worker; i < len(ids) && errs[worker] == nil; i += parallel {
				var err error
				traces[i], err = t.trace(ctx, ids[i])
				if !errors.Is(err, ErrNoTrace) { // else deleted since the search
					errs[worker] = err
				}
			}
		})
	}
	wg.Wait()
	for i, tr := range traces {
		if tr != nil {
			t.known[ids[i]] = tr
		}
	}
	return cmp.Or(errs...)
}
