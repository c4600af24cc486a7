package perfetto

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// trace is a trace as read by Perfetto's trace_processor.
type trace struct {
	tracks   map[uint64]*described
	slices   []*decoded
	instants []*decoded
	counters []count
	packets  int
	cleared  int // packets that clear the interned texts
}

type described struct {
	uuid, parent                uint64
	name, process, unit, remark string
	pid                         uint64
	counter                     bool
}

type decoded struct {
	track     *described
	name      string
	category  string
	start     int64
	end       int64
	parent    *decoded // the enclosing slice of the same lane
	flows     []uint64
	annotated map[string]any
}

type count struct {
	track *described
	at    int64
	whole bool
	value float64
}

// event is a packet with a time.
type event struct {
	at    int64
	kind  uint64
	track uint64
	slice decoded
	count count
}

// fields calls back with each field of a message. A number is n, also of a double; a message or a text is b.
func fields(message []byte, each func(field protowire.Number, n uint64, b []byte)) {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		must(n > 0, "a tag")
		message = message[n:]
		var number uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			number, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(message)
		default:
			panic(fmt.Sprint("a field of another type ", field, " ", kind))
		}
		must(n >= 0, "a field")
		message = message[n:]
		each(field, number, text)
	}
}

// decoder reads packets in order.
type decoder struct {
	*trace
	events []event
	texts  map[protowire.Number]map[uint64]string
	origin int64
	clock  uint64 // of packets without a sequence id
}

// decode reads a trace and pairs the events of its lanes as trace_processor does (importers/common/slice_tracker.cc): in order of time, then of the file; an
// end ends the innermost slice.
func decode(tb testing.TB, file []byte) *trace {
	tb.Helper()
	defer func() {
		if what := recover(); what != nil {
			require.Fail(tb, "not a trace", "%v\n%s", what, debug.Stack())
		}
	}()
	d := decoder{trace: &trace{tracks: map[uint64]*described{}}, texts: map[protowire.Number]map[uint64]string{}}
	fields(file, func(_ protowire.Number, _ uint64, b []byte) {
		fields(b, func(field protowire.Number, _ uint64, b []byte) {
			require.EqualValues(tb, packetCompressed, field)
			require.Less(tb, len(b), 512<<10)
			z, err := zlib.NewReader(bytes.NewReader(b))
			require.NoError(tb, err)
			raw, err := io.ReadAll(z)
			require.NoError(tb, err)
			fields(raw, func(field protowire.Number, _ uint64, b []byte) {
				must(field == tracePacket, "a field of a trace")
				d.packet(b)
			})
		})
	})
	d.pair(d.events)
	return d.trace
}

func (d *decoder) packet(message []byte) {
	e, timed, clock := event{}, false, uint64(0)
	var body, interned []byte
	d.packets++
	fields(message, func(field protowire.Number, n uint64, b []byte) {
		switch field {
		case packetTimestamp:
			e.at, timed = int64(n), true
		case packetClock:
			clock = n
		case packetInterned:
			interned = b
		case packetDefaults:
			fields(b, func(_ protowire.Number, n uint64, _ []byte) { d.clock = n })
		case packetFlags:
			must(n&flagNeeds != 0, "flags")
			if n&flagCleared != 0 {
				clear(d.texts)
				d.cleared++
			}
		case packetTrackEvent:
			body = b
		case packetSequence:
			must(n == sequence, "a sequence")
		case packetTrackDescriptor:
			track := describedBy(b)
			must(d.tracks[track.uuid] == nil, "a track is described twice")
			d.tracks[track.uuid] = track
		case packetClockSnapshot:
			d.origin = originOf(b)
		default:
			panic(fmt.Sprint("a field of a packet ", field))
		}
	})
	d.intern(interned)
	if body == nil {
		return
	}
	must(timed, "an event without a time")
	if clock = cmp.Or(clock, d.clock); clock == clockOffset {
		e.at += d.origin
	} else {
		must(clock == clockRealtime, "a clock")
	}
	e.read(body, d.texts)
	d.events = append(d.events, e)
}

func (d *decoder) intern(entries []byte) {
	fields(entries, func(table protowire.Number, _ uint64, b []byte) {
		var id uint64
		var text string
		fields(b, func(field protowire.Number, n uint64, b []byte) {
			if field == entryID {
				id = n
			} else {
				text = string(b)
			}
		})
		if d.texts[table] == nil {
			d.texts[table] = map[uint64]string{}
		}
		_, twice := d.texts[table][id]
		must(!twice, "a number of two texts")
		d.texts[table][id] = text
	})
}

func (tr *trace) pair(events []event) {
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	lanes := map[uint64][]*decoded{}
	for i := range events {
		e := &events[i]
		track := tr.tracks[e.track]
		must(track != nil, "a track that is not described")
		must(track.counter == (e.kind == typeCounter), "a counter")
		e.slice.track, e.slice.start, e.slice.end = track, e.at, e.at
		open := lanes[e.track]
		switch e.kind {
		case typeBegin:
			if len(open) > 0 {
				e.slice.parent = open[len(open)-1]
			}
			tr.slices = append(tr.slices, &e.slice)
			lanes[e.track] = append(open, &e.slice)
		case typeEnd:
			must(len(open) > 0, "an end without a beginning")
			open[len(open)-1].end = e.at
			lanes[e.track] = open[:len(open)-1]
		case typeInstant:
			tr.instants = append(tr.instants, &e.slice)
		case typeCounter:
			e.count.track, e.count.at = track, e.at
			tr.counters = append(tr.counters, e.count)
		}
	}
	for _, open := range lanes {
		must(len(open) == 0, "slices without an end")
	}
}

func (e *event) read(body []byte, texts map[protowire.Number]map[uint64]string) {
	e.slice.annotated = map[string]any{}
	text := func(table protowire.Number, id uint64) string {
		s, ok := texts[table][id]
		must(ok, "a text that is not known")
		return s
	}
	fields(body, func(field protowire.Number, n uint64, b []byte) {
		switch field {
		case eventType:
			e.kind = n
		case eventTrack:
			e.track = n
		case eventNameID:
			e.slice.name = text(internedNames, n)
		case eventCategories:
			e.slice.category = text(internedCategories, n)
		case eventFlows:
			e.slice.flows = append(e.slice.flows, n)
		case eventCounterInt:
			e.count.value, e.count.whole = float64(int64(n)), true
		case eventCounterDouble:
			e.count.value = math.Float64frombits(n)
		case eventAnnotations:
			name, v := annotated(b, text)
			e.slice.annotated[name] = v
		default:
			panic(fmt.Sprint("a field of an event ", field))
		}
	})
}

func annotated(message []byte, text func(table protowire.Number, id uint64) string) (name string, v any) {
	var list []any
	fields(message, func(field protowire.Number, n uint64, b []byte) {
		switch field {
		case annotationNameID:
			name = text(internedAnnotationNames, n)
		case annotationBool:
			v = n == 1
		case annotationInt:
			v = int64(n)
		case annotationDouble:
			v = math.Float64frombits(n)
		case annotationString:
			v = string(b)
		case annotationStringID:
			v = text(internedStrings, n)
		case annotationArray:
			_, element := annotated(b, text)
			list = append(list, element)
		default:
			panic(fmt.Sprint("a field of an annotation ", field))
		}
	})
	if list != nil {
		return name, list
	}
	return name, v
}

func describedBy(message []byte) *described {
	d := new(described)
	fields(message, func(field protowire.Number, n uint64, b []byte) {
		switch field {
		case trackUUID:
			d.uuid = n
		case trackParent:
			d.parent = n
		case trackName:
			d.name = string(b)
		case trackDescription:
			d.remark = string(b)
		case trackProcess:
			fields(b, func(field protowire.Number, n uint64, b []byte) {
				if field == processPID {
					d.pid = n
				} else {
					d.process = string(b)
				}
			})
		case trackCounter:
			d.counter = true
			fields(b, func(_ protowire.Number, _ uint64, b []byte) { d.unit = string(b) })
		}
	})
	return d
}

func originOf(message []byte) (origin int64) {
	fields(message, func(field protowire.Number, n uint64, b []byte) {
		if field == snapshotPrimary {
			must(n == clockRealtime, "a primary clock")
			return
		}
		id, at := uint64(0), uint64(0)
		fields(b, func(field protowire.Number, n uint64, _ []byte) {
			if field == clockID {
				id = n
			} else {
				at = n
			}
		})
		switch id {
		case clockRealtime:
			origin = int64(at)
		case clockOffset:
			must(at == 0, "an origin")
		}
	})
	return origin
}

// must fails the test by decode: require's arguments and Helper would take most of the time of some millions of calls.
func must(ok bool, what string) {
	if !ok {
		panic(what)
	}
}

// path is the names from the process down to a track.
func (tr *trace) path(d *described) string {
	if d.parent == 0 {
		return d.process
	}
	return tr.path(tr.tracks[d.parent]) + fmt.Sprint(" / ", d.name)
}
