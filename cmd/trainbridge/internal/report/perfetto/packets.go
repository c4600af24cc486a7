package perfetto

import (
	"bytes"
	"io"
	"math"
	"strings"

	"github.com/klauspost/compress/zlib"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// maxBlock is how many bytes of packets are deflated together. A block must be shorter than 512 KB (trace_packet.proto, compressed_packets).
	maxBlock = 256 << 10
	// maxInterned and maxInternedBytes bound the interned texts. At the bound all are forgotten, and written anew with the next use.
	maxInterned      = 1 << 16
	maxInternedBytes = 4 << 20
	// lead is how long before the first timestamp the clock of the packets begins, ns. An earlier time is written in full.
	lead = 600e9
	// sequence is the only sequence of packets. Texts are interned per sequence.
	sequence = 1
)

// packets writes packets into deflated blocks.
type packets struct {
	out     io.Writer
	err     error  // of out, for good
	raw     []byte // the packets of the next block
	block   bytes.Buffer
	deflate *zlib.Writer

	origin  int64 // 0 of the clock of the packets, ns since the Unix epoch
	begun   bool  // origin is set, and its packet written
	at      int   // where the content of the packet at hand begins, in raw
	cleared bool  // the next packet clears the interned texts

	texts    [4]map[string]uint64 // the interned texts of each table, by number
	size     int                  // bytes of texts
	count    int                  // of texts
	interned []byte               // new entries of the packet
}

// The tables of interned texts: a text is written once, and then named by a number.
const (
	categories = iota
	names
	annotationNames
	strs
)

var tables = [4]protowire.Number{categories: internedCategories, names: internedNames, annotationNames: internedAnnotationNames, strs: internedStrings}

// begins begins the trace.
func (p *packets) begins(out io.Writer) {
	p.out = out
	p.deflate, _ = zlib.NewWriterLevel(&p.block, zlib.BestSpeed) // the level is valid
	p.forget()
}

// forget begins all tables of texts anew.
func (p *packets) forget() {
	for i := range p.texts {
		p.texts[i] = make(map[string]uint64)
	}
	p.count, p.size, p.cleared = 0, 0, true
}

// begin begins a packet without a time: the caller appends fields to raw, then calls end.
func (p *packets) begin() {
	if p.count >= maxInterned || p.size >= maxInternedBytes {
		p.forget()
	}
	p.raw, p.at = open(p.raw, tracePacket)
}

// beginAt begins a packet of a time, ns since the Unix epoch. The first packet with a time sets the origin; times before the origin are written on the clock of
// the Unix epoch.
func (p *packets) beginAt(ns int64) {
	if !p.begun {
		p.snapshot(ns)
	}
	p.begin()
	if since := ns - p.origin; since >= 0 {
		p.raw = appendUint(p.raw, packetTimestamp, uint64(since))
		return
	}
	p.raw = appendUint(p.raw, packetTimestamp, uint64(ns))
	p.raw = appendUint(p.raw, packetClock, clockRealtime)
}

// end ends the packet: it adds the texts that are new in the packet, and flags. A full block is flushed.
func (p *packets) end() {
	if len(p.interned) > 0 {
		p.raw = protowire.AppendBytes(protowire.AppendTag(p.raw, packetInterned, protowire.BytesType), p.interned)
		p.interned = p.interned[:0]
	}
	flags := uint64(flagNeeds)
	if p.cleared { // Perfetto forgets its texts, and with them the default clock
		p.cleared = false
		flags |= flagCleared
		var at int
		p.raw, at = open(p.raw, packetDefaults)
		p.raw = shut(appendUint(p.raw, defaultsClock, clockOffset), at)
	}
	p.raw = appendUint(p.raw, packetSequence, sequence)
	p.raw = shut(appendUint(p.raw, packetFlags, flags), p.at)
	if len(p.raw) >= maxBlock {
		p.flush()
	}
}

// snapshot writes the packet that says what the clock of the packets is: ns since an origin, lead before the first time. Times since the origin take two bytes
// less than times since the epoch, for an hour.
func (p *packets) snapshot(first int64) {
	p.begun, p.origin = true, max(first-lead, 0)
	p.begin()
	raw, snapshot := open(p.raw, packetClockSnapshot)
	// Both clocks at the same instant, the origin.
	for _, clock := range [...]struct{ id, at uint64 }{{clockOffset, 0}, {clockRealtime, uint64(p.origin)}} {
		var at int
		raw, at = open(raw, snapshotClocks)
		raw = appendUint(raw, clockID, clock.id)
		raw = shut(appendUint(raw, clockTimestamp, clock.at), at)
	}
	p.raw = shut(appendUint(raw, snapshotPrimary, clockRealtime), snapshot)
	p.end()
}

// flush writes the block: a packet whose only field is the deflated packets. After an error of out the block is dropped.
func (p *packets) flush() {
	if len(p.raw) == 0 || p.err != nil {
		p.raw = p.raw[:0]
		return
	}
	p.block.Reset()
	p.deflate.Reset(&p.block)
	_, _ = p.deflate.Write(p.raw) // a bytes.Buffer takes all
	_ = p.deflate.Close()
	// The head of the packet, in the memory of raw, which is deflated by now.
	packet := protowire.AppendTag(p.raw[:0], tracePacket, protowire.BytesType)
	n := p.block.Len()
	packet = protowire.AppendVarint(packet, uint64(protowire.SizeTag(packetCompressed)+protowire.SizeBytes(n)))
	packet = protowire.AppendVarint(protowire.AppendTag(packet, packetCompressed, protowire.BytesType), uint64(n))
	if _, err := p.out.Write(packet); err != nil {
		p.err = err
	} else if _, err := p.out.Write(p.block.Bytes()); err != nil {
		p.err = err
	}
	p.raw = p.raw[:0]
}

// intern is the number of a text, cut to limit, in a table. A new text gets the next number, and goes into the packet at hand.
func (p *packets) intern(table int, text string, limit int) uint64 {
	if len(text) > limit {
		text = bounded(text, limit)
	}
	texts := p.texts[table]
	if id, ok := texts[text]; ok {
		return id
	}
	id := uint64(len(texts) + 1)
	texts[strings.Clone(text)] = id
	p.count++
	p.size += len(text)
	var at int
	p.interned, at = open(p.interned, tables[table])
	p.interned = appendUint(p.interned, entryID, id)
	p.interned = shut(appendText(p.interned, entryText, text, limit), at)
	return id
}

// event begins the event of a packet on a track. The caller adds fields to raw and calls shut with the returned place, then end.
func (p *packets) event(kind, track uint64) (at int) {
	p.raw, at = open(p.raw, packetTrackEvent)
	p.raw = appendUint(p.raw, eventType, kind)
	p.raw = appendUint(p.raw, eventTrack, track)
	return at
}

// name, category and flow add fields to the event of the packet.
func (p *packets) name(text string) {
	p.raw = appendUint(p.raw, eventNameID, p.intern(names, text, maxName))
}

func (p *packets) category(text string) {
	p.raw = appendUint(p.raw, eventCategories, p.intern(categories, text, maxName))
}

func (p *packets) flow(id uint64) {
	p.raw = protowire.AppendFixed64(protowire.AppendTag(p.raw, eventFlows, protowire.Fixed64Type), id)
}

// annotation begins an annotation of the event. The caller adds a value and calls shut.
func (p *packets) annotation(name string) (at int) {
	p.raw, at = open(p.raw, eventAnnotations)
	p.raw = appendUint(p.raw, annotationNameID, p.intern(annotationNames, name, maxName))
	return at
}

// text adds the value of an annotation; short texts are interned.
func (p *packets) text(s string) {
	if len(s) <= maxInternedText {
		p.raw = appendUint(p.raw, annotationStringID, p.intern(strs, s, maxInternedText))
	} else {
		p.raw = appendText(p.raw, annotationString, s, maxText)
	}
}

// textAnnotation, doubleAnnotation and boolAnnotation add an annotation with its value.
func (p *packets) textAnnotation(name, s string) {
	at := p.annotation(name)
	p.text(s)
	p.raw = shut(p.raw, at)
}

func (p *packets) doubleAnnotation(name string, v float64) {
	at := p.annotation(name)
	p.raw = shut(appendDouble(p.raw, annotationDouble, v), at)
}

func (p *packets) boolAnnotation(name string, v bool) {
	at := p.annotation(name)
	p.raw = shut(appendUint(p.raw, annotationBool, protowire.EncodeBool(v)), at)
}

// nanos is a time within the range of Perfetto: int64.
func nanos[T ~uint64](t T) int64 { return int64(min(uint64(t), math.MaxInt64)) }
