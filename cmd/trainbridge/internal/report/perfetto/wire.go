package perfetto

import (
	"math"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields, by message. The files are in protos/perfetto/trace of github.com/google/perfetto.
const (
	tracePacket = 1 // Trace.packet, trace.proto

	// TracePacket, trace_packet.proto
	packetClockSnapshot   = 6
	packetTimestamp       = 8
	packetSequence        = 10 // trusted_packet_sequence_id
	packetTrackEvent      = 11
	packetInterned        = 12
	packetFlags           = 13 // sequence_flags
	packetCompressed      = 50 // compressed_packets: a zlib stream of a Trace
	packetClock           = 58 // timestamp_clock_id
	packetDefaults        = 59 // trace_packet_defaults
	packetTrackDescriptor = 60

	flagCleared = 1 // SEQ_INCREMENTAL_STATE_CLEARED
	flagNeeds   = 2 // SEQ_NEEDS_INCREMENTAL_STATE

	defaultsClock = 58 // TracePacketDefaults.timestamp_clock_id, trace_packet_defaults.proto

	// ClockSnapshot, clock_snapshot.proto
	snapshotClocks  = 1
	snapshotPrimary = 2 // primary_trace_clock
	clockID         = 1
	clockTimestamp  = 2

	clockRealtime = 1  // BUILTIN_CLOCK_REALTIME: ns since the Unix epoch
	clockOffset   = 64 // the first clock that a sequence may define: ns since origin

	// TrackEvent, track_event/track_event.proto
	eventCategories    = 3 // category_iids
	eventAnnotations   = 4
	eventType          = 9
	eventNameID        = 10
	eventTrack         = 11
	eventCounterInt    = 30
	eventCounterDouble = 44
	eventFlows         = 47

	typeBegin   = 1
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4

	// DebugAnnotation, track_event/debug_annotation.proto
	annotationNameID   = 1
	annotationBool     = 2
	annotationInt      = 4
	annotationDouble   = 5
	annotationString   = 6
	annotationArray    = 12
	annotationStringID = 17

	// InternedData, interned_data/interned_data.proto; each entry has an iid and a name (str of InternedString, profiling/profile_common.proto).
	internedCategories      = 1
	internedNames           = 2
	internedAnnotationNames = 3
	internedStrings         = 29 // debug_annotation_string_values
	entryID                 = 1
	entryText               = 2

	// TrackDescriptor, track_event/track_descriptor.proto
	trackUUID        = 1
	trackName        = 2
	trackProcess     = 3
	trackParent      = 5
	trackCounter     = 8
	trackDescription = 14

	processPID  = 1 // ProcessDescriptor, track_event/process_descriptor.proto
	processName = 6
	counterUnit = 6 // CounterDescriptor.unit_name, track_event/counter_descriptor.proto
)

// Maximal lengths of texts, in bytes. Longer texts are cut.
const (
	maxName = 256
	maxText = 1024
	// A longer value of an attribute seldom comes twice, and is not interned.
	maxInternedText = 64
)

func appendUint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

func appendText(b []byte, field protowire.Number, s string, limit int) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), bounded(s, limit))
}

// open begins a message within a message: the tag of its field, and a byte for its length, enough for the many messages shorter than 128 bytes. at is where the
// content begins; the caller appends the content to out and calls shut.
func open(b []byte, field protowire.Number) (out []byte, at int) {
	b = append(protowire.AppendTag(b, field, protowire.BytesType), 0)
	return b, len(b)
}

// shut ends the message whose content begins at at: it writes the length into the byte before, or makes room for a length of several bytes.
func shut(b []byte, at int) []byte {
	n := len(b) - at
	if n < 0x80 {
		b[at-1] = byte(n)
		return b
	}
	size := protowire.SizeVarint(uint64(n))
	b = append(b, make([]byte, size-1)...)
	copy(b[at+size-1:], b[at:at+n])
	protowire.AppendVarint(b[:at-1], uint64(n)) // in place, over the byte of open and the room behind
	return b
}

// bounded is a text for a string field: valid UTF-8, of bounded length.
func bounded(s string, limit int) string {
	s = clip(s, limit)
	if !utf8.ValidString(s) {
		s = clip(strings.ToValidUTF8(s, "\uFFFD"), limit) // may be longer
	}
	return s
}

// clip cuts a text at a rune's edge.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
