package tfevents

import (
	"bytes"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The keys of the fields that are read: the number as in the .proto files that the package's comment names, and the wire type.
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
	bits uint64 // its value, where it is a number
	data []byte // its value, where it is none
	bad  bool   // the message ends amid a field, or is none
}

// next goes to the next field; false: there is none.
func (f *fields) next() bool {
	if len(f.rest) == 0 {
		return false
	}
	number, kind, n := protowire.ConsumeTag(f.rest)
	if n < 0 {
		f.bad = true
		return false
	}
	f.key = protowire.EncodeTag(number, kind)
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

// event decodes an event; false: it is malformed. Time and step may stand behind the values, so there are two walks.
func (d *Decoder) event(b []byte) bool {
	var at Scalar
	f := fields{rest: b}
	for f.next() {
		switch f.key {
		case eventWallTime:
			at.WallTime = math.Float64frombits(f.bits)
		case eventStep:
			at.Step = int64(f.bits)
		}
	}
	if f.bad {
		return false
	}
	f = fields{rest: b}
	for f.next() {
		ok := true
		switch f.key {
		case eventSummary:
			ok = d.summary(f.data, at)
		case eventSessionLog:
			ok = d.session(f.data, at)
		}
		if !ok {
			return false
		}
	}
	return true
}

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

func (d *Decoder) summary(b []byte, at Scalar) bool {
	f := fields{rest: b}
	for f.next() {
		if f.key == summaryValue && !d.value(f.data, at) {
			return false
		}
	}
	return !f.bad
}

// value decodes a value of a summary and gives it to Scalar, if it is one; false: it is malformed.
func (d *Decoder) value(b []byte, at Scalar) bool {
	var name, node, tensor, metadata []byte
	var isSimple, isTensor bool
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
	if tag.holds == unknown && len(metadata) > 0 {
		var ok bool
		if tag.holds, ok = holdsOf(metadata); !ok {
			return false
		}
	}
	if isTensor && tag.holds != others {
		var ok bool
		if at.Value, isSimple, ok = number(tensor); !ok {
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

// holds is what the tensors of a tag are, as metadata have it.
type holds uint8

const (
	unknown holds = iota // no metadata were seen, or they say nothing
	scalars
	others
)

// holdsOf reads metadata; !ok: they are malformed. The class of the data comes before the plugin.
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
	mostTags    = 8 << 20 // B that the tags of a file may take
	tagOverhead = 128     // B that a tag takes beside its name, about
)

// tags are those of a file. Those for which there is no room are made anew for each value, and their metadata are forgotten.
type tags struct {
	byName map[string]*tag
	size   int // B
}

type tag struct {
	name  string
	holds holds
}

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
