//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// spanID is a backend's key of a span: a later span with the key replaces the earlier or duplicates it.
type spanID struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// content is the whole content of a span. Most spans come once: their fields are compared only if the sums differ.
type content struct {
	resource pcommon.Map
	scope    pcommon.InstrumentationScope
	span     ptrace.Span
	sum      uint64
}

// contentOf sums up a span.
func contentOf(resource pcommon.Map, scope pcommon.InstrumentationScope, s ptrace.Span) *content {
	c := &content{resource: resource, scope: scope, span: s}
	add := func(key, v string) { c.sum += xxh3.HashString(key) * (2*xxh3.HashString(v) + 1) }
	for key, v := range s.Attributes().All() {
		add(key, v.AsString())
	}
	for key, v := range resource.All() {
		if _, own := s.Attributes().Get(key); !own {
			add(key, v.AsString())
		}
	}
	rest := fmt.Append(nil, s.Name(), s.Kind(), s.ParentSpanID(), s.TraceState().AsRaw(), s.Flags(), uint64(s.StartTimestamp()), uint64(s.EndTimestamp()),
		s.Status().Code(), s.Status().Message(), scope.Name(), scope.Version(), s.DroppedAttributesCount(), s.DroppedEventsCount(), s.DroppedLinksCount())
	for _, e := range s.Events().All() {
		rest = fmt.Append(rest, e.Name(), uint64(e.Timestamp()), e.Attributes().AsRaw())
	}
	for _, l := range s.Links().All() {
		rest = fmt.Append(rest, l.TraceID(), l.SpanID(), l.TraceState().AsRaw(), l.Attributes().AsRaw())
	}
	c.sum += xxh3.Hash(rest)
	return c
}

// fields are a span's values, by name. Attributes of the span and of its resource count alike: a resource has the attributes common to all its spans of a batch
// (ADR 10), and batches are cut elsewhere after a crash.
func (o *content) fields() map[string]string {
	s, resource, scope := o.span, o.resource, o.scope
	c := map[string]string{
		"name": s.Name(), "kind": s.Kind().String(), "parent": s.ParentSpanID().String(), "state": s.TraceState().AsRaw(), "flags": strconv.FormatUint(uint64(s.Flags()), 10),
		"start": strconv.FormatUint(uint64(s.StartTimestamp()), 10), "end": strconv.FormatUint(uint64(s.EndTimestamp()), 10),
		"status": s.Status().Code().String() + " " + s.Status().Message(), "scope": scope.Name() + " " + scope.Version(),
		"dropped": fmt.Sprint(s.DroppedAttributesCount(), s.DroppedEventsCount(), s.DroppedLinksCount()),
	}
	for key, v := range resource.All() {
		c["attribute "+key] = v.AsString()
	}
	for key, v := range s.Attributes().All() {
		c["attribute "+key] = v.AsString()
	}
	for i, e := range s.Events().All() {
		c[fmt.Sprint("event ", i)] = fmt.Sprintf("%s at %d: %v", e.Name(), e.Timestamp(), e.Attributes().AsRaw())
	}
	for i, l := range s.Links().All() {
		c[fmt.Sprint("link ", i)] = fmt.Sprintf("%v %v %s: %v", l.TraceID(), l.SpanID(), l.TraceState().AsRaw(), l.Attributes().AsRaw())
	}
	return c
}

// differ names the fields that differ, or that only one side has.
func (o *content) differ(to *content) (list []string) {
	was, now := o.fields(), to.fields()
	all := maps.Clone(was)
	maps.Copy(all, now)
	for key := range all {
		v, had := was[key]
		if w, has := now[key]; v != w || had != has {
			list = append(list, key)
		}
	}
	slices.Sort(list)
	return list
}

// difference prints the old and new values of these fields; an absent field is empty.
func (o *content) difference(to *content) string {
	was, now, list := o.fields(), to.fields(), o.differ(to)
	for i, key := range list {
		list[i] = fmt.Sprintf("%s was %q, came as %q", key, was[key], now[key])
	}
	return strings.Join(list, "; ")
}

// changed is a span that came again with different content.
type changed struct {
	id  spanID
	was *content
	now *content
}

func (c *changed) String() string {
	return fmt.Sprintf("%s, span %v of trace %v: %s", c.was.span.Name(), c.id.span, c.id.trace, c.was.difference(c.now))
}

// sorts are the changed spans, one of each name and of each set of differing fields, with their number.
func sorts(all []changed) (list []string) {
	number, first := make(map[string]int), make(map[string]*changed)
	for i := range all {
		c := &all[i]
		sort := c.was.span.Name() + fmt.Sprint(c.was.differ(c.now))
		if number[sort]++; first[sort] == nil {
			first[sort] = c
		}
	}
	for sort, c := range first {
		list = append(list, fmt.Sprintf("%d times %v", number[sort], c))
	}
	slices.Sort(list)
	return list
}

// Foundation of the campaign: the sink notices a span that comes again under its id with any difference.
func TestTortureSinkContent(t *testing.T) {
	spanOf := func(change func(resource pcommon.Map, s ptrace.Span)) item {
		resource, s := pcommon.NewMap(), ptrace.NewSpan()
		resource.PutStr("service.name", "train")
		s.SetName("train.run")
		s.SetSpanID(pcommon.SpanID{1})
		s.SetStartTimestamp(1)
		s.SetEndTimestamp(2)
		s.Attributes().PutDouble("loss", 2.5)
		s.Events().AppendEmpty().SetName("cause")
		s.Links().AppendEmpty().SetSpanID(pcommon.SpanID{9})
		change(resource, s)
		return item{id: identity{span: s.SpanID()}, content: contentOf(resource, pcommon.NewInstrumentationScope(), s)}
	}
	for name, tc := range map[string]struct {
		change func(resource pcommon.Map, s ptrace.Span)
		want   string
	}{
		"nothing": {func(pcommon.Map, ptrace.Span) {}, ""},
		"resource": {func(resource pcommon.Map, s ptrace.Span) {
			resource.PutDouble("loss", 2.5)
			s.Attributes().Remove("loss")
		}, ""},
		"name":     {func(_ pcommon.Map, s ptrace.Span) { s.SetName("x") }, `name was "train.run", came as "x"`},
		"start":    {func(_ pcommon.Map, s ptrace.Span) { s.SetStartTimestamp(0) }, `start was "1", came as "0"`},
		"end":      {func(_ pcommon.Map, s ptrace.Span) { s.SetEndTimestamp(3) }, `end was "2", came as "3"`},
		"kind":     {func(_ pcommon.Map, s ptrace.Span) { s.SetKind(ptrace.SpanKindClient) }, `kind was "Unspecified", came as "Client"`},
		"parent":   {func(_ pcommon.Map, s ptrace.Span) { s.SetParentSpanID(pcommon.SpanID{2}) }, `parent was "", came as "0200000000000000"`},
		"status":   {func(_ pcommon.Map, s ptrace.Span) { s.Status().SetCode(ptrace.StatusCodeError) }, `status was "Unset ", came as "Error "`},
		"service":  {func(resource pcommon.Map, _ ptrace.Span) { resource.PutStr("service.name", "x") }, `attribute service.name was "train", came as "x"`},
		"one more": {func(_ pcommon.Map, s ptrace.Span) { s.Attributes().PutInt("step", 3) }, `attribute step was "", came as "3"`},
		"one less": {func(_ pcommon.Map, s ptrace.Span) { s.Attributes().Remove("loss") }, `attribute loss was "2.5", came as ""`},
		"event": {
			func(_ pcommon.Map, s ptrace.Span) { s.Events().At(0).Attributes().PutInt("n", 1) }, `event 0 was "cause at 0: map[]", came as "cause at 0: map[n:1]"`,
		},
		"link": {
			func(_ pcommon.Map, s ptrace.Span) { s.Links().RemoveIf(func(ptrace.SpanLink) bool { return true }) },
			`link 0 was " 0900000000000000 : map[]", came as ""`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSequence(t, "", 1, newTally())
			require.NoError(t, s.answer(accept, spanOf(func(pcommon.Map, ptrace.Span) {})))
			require.NoError(t, s.answer(accept, spanOf(tc.change)))
			if tc.want == "" {
				assert.Empty(t, s.sink.changes)
				return
			}
			require.Len(t, s.sink.changes, 1)
			assert.True(t, strings.HasSuffix(s.sink.changes[0].String(), ": "+tc.want), &s.sink.changes[0])
		})
	}
}
