package tfevents

import (
	"bytes"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The keys of the fields to read: the number as in the .proto files of the package's comment, and the wire type.
const (
	eventWallTime    = 1<<3 | uint64(protowire.Fixed64Type)
	eventStep        = 2<<3 | uint64(protowire.VarintType)
	eventFileVersion = 3<<3 | uint64(protowire.BytesType)
	eventSummary     = 5<<3 | uint64(protowire.BytesType)
	eventSessionLog  = 7<<3 | uint64(protowire.BytesType)

	sessionStatus = 1<<3 | uint64(protowire.VarintType)

	summaryValue = 1<<3 | uint64(protowire.BytesType)

	valueTag          = 1<<3 | uint64(protowire.BytesType)
	valueSimple       = 2<<3 | uint64(protowire.Fixed32Type)
	valueOldHistogram = 3<<3 | uint64(protowire.BytesType)
	valueImage        = 4<<3 | uint64(protowire.BytesType)
	valueHistogram    = 5<<3 | uint64(protowire.BytesType)
	valueAudio        = 6<<3 | uint64(protowire.BytesType)
	valueNodeName     = 7<<3 | uint64(protowire.BytesType)
	valueTensor       = 8<<3 | uint64(protowire.BytesType)
	valueMetadata     = 9<<3 | uint64(protowire.BytesType)

	metadataPluginData = 1<<3 | uint64(protowire.BytesType)
	metadataDataClass  = 4<<3 | uint64(protowire.VarintType)

	pluginDataName = 1<<3 | uint64(protowire.BytesType)
)

const (
	sessionStart    = 1 // SessionLog.START
	dataClassScalar = 1 // DATA_CLASS_SCALAR
)

var (
	versionPrefix = []byte("brain.Event:") // of all versions
	pluginScalars = []byte("scalars")
)

// fields walks the fields of a message.
type fields struct {
	rest []byte
	key  uint64 // of the field
	bits uint64 // a number
	data []byte // anything else
	bad  bool   // the message ends amid a field, or is none
}

// next reads the next field: its key, and its value into bits or data; a group is passed over. false: none is left, or the message is bad.
func (f *fields) next() bool {
	if len(f.rest) == 0 {
		return false
	}
	key, n := protowire.ConsumeVarint(f.rest)
	number, kind := protowire.DecodeTag(key)
	if n < 0 || number < protowire.MinValidNumber {
		f.bad = true
		return false
	}
	f.key = key
	f.rest = f.rest[n:]
	switch kind {
	case protowire.VarintType:
		f.bits, n = protowire.ConsumeVarint(f.rest)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(f.rest)
		f.bits = uint64(v)
	case protowire.Fixed64Type:
		f.bits, n = protowire.ConsumeFixed64(f.rest)
	case protowire.BytesType:
		f.data, n = protowire.ConsumeBytes(f.rest)
	default:
		n = protowire.ConsumeFieldValue(number, kind, f.rest)
	}
	if n < 0 {
		f.bad = true
		return false
	}
	f.rest = f.rest[n:]
	return true
}

// isVersion says whether an event holds the version of a file.
func isVersion(event []byte) bool {
	found := false
	f := fields{rest: event}
	for f.next() {
		if f.key == eventFileVersion {
			found = bytes.HasPrefix(f.data, versionPrefix)
		}
	}
	return found && !f.bad
}

// event decodes an event; false: malformed. Of several summaries the last counts; no writer writes more than one.
func (d *Decoder) event(b []byte) bool {
	var at Scalar
	var what uint64 // the key of data
	var data []byte // the summary, or the start or end of a session
	f := fields{rest: b}
	for f.next() {
		switch f.key {
		case eventWallTime:
			at.WallTime = math.Float64frombits(f.bits)
		case eventStep:
			at.Step = int64(f.bits)
		case eventSummary, eventSessionLog:
			what, data = f.key, f.data
		}
	}
	switch {
	case f.bad:
		return false
	case what == eventSummary:
		return d.summary(data, at)
	case what == eventSessionLog:
		return d.session(data, at)
	}
	return true
}

// session decodes a SessionLog, and hands a start of a session over; false: malformed. at has the time and the step of the event.
func (d *Decoder) session(b []byte, at Scalar) bool {
	var status uint64
	f := fields{rest: b}
	for f.next() {
		if f.key == sessionStatus {
			status = f.bits
		}
	}
	if status == sessionStart && !f.bad && d.Start != nil {
		d.Start(Start{WallTime: at.WallTime, Step: at.Step})
	}
	return !f.bad
}

// summary decodes the values of a Summary; false: malformed. at has the time and the step of the event.
func (d *Decoder) summary(b []byte, at Scalar) bool {
	f := fields{rest: b}
	for f.next() {
		if f.key == summaryValue && !d.value(f.data, at) {
			return false
		}
	}
	return !f.bad
}

// value decodes a value of a summary, and hands a scalar over: a simple_value, or a tensor with a single number unless the tag's metadata are of another
// plugin. Other values are counted. false: malformed. at has the time and the step of the event.
func (d *Decoder) value(b []byte, at Scalar) bool {
	var name, node, tensor, metadata []byte
	var isSimple, isTensor bool // by the last of several, which are a oneof in the .proto
	f := fields{rest: b}
	for f.next() {
		switch f.key {
		case valueTag:
			name = f.data
		case valueNodeName:
			node = f.data
		case valueMetadata:
			metadata = f.data
		case valueSimple:
			isSimple, isTensor = true, false
			at.Value = float64(math.Float32frombits(uint32(f.bits)))
		case valueTensor:
			isSimple, isTensor = false, true
			tensor = f.data
		case valueOldHistogram, valueImage, valueHistogram, valueAudio:
			isSimple, isTensor = false, false
		}
	}
	if f.bad {
		return false
	}
	if len(name) == 0 {
		name = node // as old writers did
	}
	tag := d.tags.of(name)
	if tag.holds == unknown && len(metadata) > 0 { // the first metadata of a tag hold for the file
		var ok bool
		tag.holds, ok = holdsOf(metadata)
		if !ok {
			return false
		}
	}
	if isTensor && tag.holds != others {
		var ok bool
		at.Value, isSimple, ok = number(tensor)
		if !ok {
			return false
		}
	}
	if !isSimple {
		d.counts.Others++
		return true
	}
	d.counts.Scalars++
	if d.Scalar != nil {
		at.Tag = tag.name
		d.Scalar(at)
	}
	return true
}

// holds is the kind of a tag's tensors, by their metadata.
type holds uint8

const (
	unknown holds = iota // no metadata, or none of use
	scalars
	others
)

// holdsOf reads the kind of a tag's tensors from its metadata: by the class of the data if given, else by the plugin. !ok: malformed.
func holdsOf(metadata []byte) (h holds, ok bool) {
	var class uint64
	var plugin []byte
	f := fields{rest: metadata}
	for f.next() {
		switch f.key {
		case metadataDataClass:
			class = f.bits
		case metadataPluginData:
			in := fields{rest: f.data}
			for in.next() {
				if in.key == pluginDataName {
					plugin = in.data
				}
			}
			if in.bad {
				return unknown, false
			}
		}
	}
	switch {
	case f.bad:
		return unknown, false
	case class == dataClassScalar, class == 0 && bytes.Equal(plugin, pluginScalars):
		return scalars, true
	case class == 0 && len(plugin) == 0:
		return unknown, true
	}
	return others, true
}

const (
	mostTags    = 8 << 20 // B for the tags of a file
	tagOverhead = 128     // B of a tag beside its name, about
)

// tags are the tags of a file. Beyond mostTags a tag is made anew for each value, and its metadata are forgotten.
type tags struct {
	byName map[string]*tag // by the name as written
	size   int             // B
}

// tag is the name of a series of values, and what is known of its tensors.
type tag struct {
	name  string // valid UTF-8
	holds holds
}

// of returns the tag with a name, added if new and within mostTags. Invalid UTF-8 in the name is replaced.
func (t *tags) of(name []byte) *tag {
	if known := t.byName[string(name)]; known != nil {
		return known
	}
	raw := string(name)
	made := &tag{name: strings.ToValidUTF8(raw, "\uFFFD")}
	size := len(raw) + len(made.name) + tagOverhead
	if t.size+size > mostTags {
		return made
	}
	if t.byName == nil {
		t.byName = map[string]*tag{}
	}
	t.size += size
	t.byName[raw] = made
	return made
}
