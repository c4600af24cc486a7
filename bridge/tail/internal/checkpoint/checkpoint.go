// Package checkpoint has the state that is stored for a stream of files, and its encoding. See docs/reference/adr/0001-tail-acks-with-holes.md.
package checkpoint

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/internal/wire"
)

// A checkpoint is a version byte, then varints, length-prefixed bytes and 8-byte hashes, and the xxh3 hash of all before; hashes are little-endian.
const version = 1

// IndexKey is where the list of all keys is stored.
const IndexKey = "index"

// ErrDamaged is the error for a checkpoint that cannot be decoded.
var ErrDamaged = errors.New("damaged, or of another version")

// Range is a range of bytes of a file.
type Range struct {
	Begin, End int64
}

// Merge sorts ranges, joins those that touch or overlap, in place, and returns the result.
func Merge(all []Range) []Range {
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.Begin, b.Begin) })
	out := all[:0]
	for _, r := range all {
		if n := len(out); n > 0 && r.Begin <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, r.End)
			continue
		}
		out = append(out, r)
	}
	return out
}

// Tag is the tag of a lent line, by the offset of its beginning.
type Tag struct {
	Begin int64
	Value uint64
}

// Arrival is the reading time of lines whose times are those of their arrival. Lines read again get the same times.
type Arrival struct {
	Range           // of the file
	Observed  int64 // Unix ns
	ModTime   int64 // of the file then, Unix ns
	Live      bool
	SeenUntil int64 // of the file: the offset up to which its lines were seen
}

// File is the checkpoint of one file of a stream.
type File struct {
	Path     string
	ID       fingerprint.ID
	Size     int64             // at the last look
	MTime    int64             // likewise, Unix ns
	Head     int64             // everything before Head has been read
	Print    fingerprint.Print // of the first bytes
	TailSum  uint64            // of the TailN bytes before Head, see fingerprint.Tail
	TailN    int
	Skip     bool      // Head is inside an overlong line
	Current  bool      // the stream's path names the file
	Retired  bool      // read and accepted, and only remembered
	Complete bool      // compressed, and read to its end
	Holes    []Range   // before Head and not accepted, in order
	Tags     []Tag     // of lines in Holes, in order
	Arrivals []Arrival // in order
}

// Vague reports whether no byte was read of a file, and too few were seen to distinguish it from another file with its inode.
func (f *File) Vague() bool { return f.Head == 0 && f.Print.N < fingerprint.TailBytes }

// Stream is the checkpoint of a stream.
type Stream struct {
	Path      string
	LastWrite int64 // of the file read last, Unix ns
	Files     []File
	Handler   []byte // the handler's state
	Document  bool
	ByContent bool   // only include_by_content asks for the path
	Sum       uint64 // hash of a document's last accepted content
}

const (
	flagSkip = 1 << iota
	flagCurrent
	flagRetired
	flagTags // tags follow the holes
	flagComplete
	flagArrivals // arrivals follow the tags
)

// Key returns the storage key of the checkpoint of a path.
func Key(path string) string {
	return "s" + strconv.FormatUint(xxh3.HashString(path), 16)
}

// Encode appends the checkpoint to b.
func (c *Stream) Encode(b []byte) []byte {
	start := len(b)
	b = append(b, version)
	b = wire.AppendBytes(b, c.Path)
	b = binary.AppendVarint(b, c.LastWrite)
	kind := uint64(0) // bit 0: Document; bit 1: ByContent
	if c.Document {
		kind = 1
	}
	if c.ByContent {
		kind |= 2
	}
	b = binary.AppendUvarint(b, kind)
	b = binary.LittleEndian.AppendUint64(b, c.Sum)
	b = wire.AppendBytes(b, c.Handler)
	b = binary.AppendUvarint(b, uint64(len(c.Files)))
	for i := range c.Files {
		f := &c.Files[i]
		b = wire.AppendBytes(b, f.Path)
		b = binary.AppendUvarint(b, f.ID.Dev)
		b = binary.AppendUvarint(b, f.ID.Ino)
		b = binary.AppendVarint(b, f.Size)
		b = binary.AppendVarint(b, f.MTime)
		b = binary.AppendVarint(b, f.Head)
		b = binary.AppendUvarint(b, uint64(f.Print.N))
		b = binary.LittleEndian.AppendUint64(b, f.Print.Sum)
		b = binary.AppendUvarint(b, uint64(f.TailN))
		b = binary.LittleEndian.AppendUint64(b, f.TailSum)
		flags := uint64(0)
		for bit, on := range map[uint64]bool{
			flagSkip: f.Skip, flagCurrent: f.Current, flagRetired: f.Retired, flagTags: len(f.Tags) > 0, flagComplete: f.Complete,
			flagArrivals: len(f.Arrivals) > 0,
		} {
			if on {
				flags |= bit
			}
		}
		b = binary.AppendUvarint(b, flags)
		b = binary.AppendUvarint(b, uint64(len(f.Holes)))
		at := int64(0) // the end of the hole before: distances are shorter than offsets
		for _, h := range f.Holes {
			b = binary.AppendUvarint(b, uint64(h.Begin-at))
			b = binary.AppendUvarint(b, uint64(h.End-h.Begin))
			at = h.End
		}
		b = appendTags(b, f.Tags)
		b = appendArrivals(b, f.Arrivals)
	}
	return seal(b, start)
}

// appendTags appends the number of tags and, of each, its distance from the tag before and the value; nothing for no tags (flagTags).
func appendTags(b []byte, tags []Tag) []byte {
	if len(tags) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(tags)))
	at := int64(0)
	for _, t := range tags {
		b = binary.AppendUvarint(b, uint64(t.Begin-at))
		b = binary.AppendUvarint(b, t.Value)
		at = t.Begin
	}
	return b
}

// appendArrivals appends the number of arrivals and, of each, the distance from the end of the arrival before, the length and the values; nothing for no
// arrivals (flagArrivals). Live is the lowest bit of the last number.
func appendArrivals(b []byte, arrivals []Arrival) []byte {
	if len(arrivals) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(arrivals)))
	at := int64(0)
	for i := range arrivals {
		a := &arrivals[i]
		live := uint64(0)
		if a.Live {
			live = 1
		}
		b = binary.AppendUvarint(b, uint64(a.Begin-at))
		b = binary.AppendUvarint(b, uint64(a.End-a.Begin))
		b = binary.AppendVarint(b, a.Observed)
		b = binary.AppendVarint(b, a.ModTime)
		b = binary.AppendUvarint(b, uint64(a.SeenUntil-a.End)<<1|live)
		at = a.End
	}
	return b
}

// seal appends the hash of b from start on.
func seal(b []byte, start int) []byte {
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b[start:]))
}

// unseal checks hash and version of b, and returns a cursor over the content. The cursor is Bad if one is wrong.
func unseal(b []byte) wire.Cursor {
	n := len(b) - 8
	if n < 1 || b[0] != version || xxh3.Hash(b[:n]) != binary.LittleEndian.Uint64(b[n:]) {
		return wire.Cursor{Bad: true}
	}
	return wire.Cursor{Rest: b[1:n]}
}

// readArrivals reads the output of appendArrivals. After damage, c has failed, and nil is returned.
func readArrivals(c *wire.Cursor) (list []Arrival) {
	at := int64(0)
	for range c.Count(5) { // an arrival has five bytes at least
		gap, size := c.Uvarint(), c.Uvarint()
		a := Arrival{Observed: c.Varint(), ModTime: c.Varint()}
		seen := c.Uvarint()
		a.Begin = at + int64(min(gap, 1<<61)) // damage must not overflow, and is found below
		a.End = a.Begin + int64(min(size, 1<<61))
		a.SeenUntil, a.Live = a.End+int64(min(seen>>1, 1<<61)), seen&1 != 0
		if a.Begin < at || a.End <= a.Begin || a.SeenUntil < a.End {
			c.Fail()
			return nil
		}
		at = a.End
		list = append(list, a)
	}
	return list
}

// Decode reads the output of Encode. It returns ErrDamaged if the hash is wrong, or a value is impossible, such as a hole after the head.
func Decode(b []byte) (*Stream, error) {
	c := unseal(b)
	s := &Stream{Path: string(c.Bytes()), LastWrite: c.Varint()}
	kind := c.Uvarint()
	s.Document, s.ByContent, s.Sum = kind&1 != 0, kind&2 != 0, c.Uint64()
	if h := c.Bytes(); len(h) > 0 {
		s.Handler = append([]byte(nil), h...)
	}
	n := c.Count(26) // a file has 26 bytes at least
	for range n {
		f := File{Path: string(c.Bytes()), ID: fingerprint.ID{Dev: c.Uvarint(), Ino: c.Uvarint()}, Size: c.Varint(), MTime: c.Varint(), Head: c.Varint()}
		printN := c.Uvarint()
		f.Print = fingerprint.Print{Sum: c.Uint64(), N: int(min(printN, fingerprint.Bytes+1))} // one too many is refused below
		tailN := c.Uvarint()
		f.TailN, f.TailSum = int(min(tailN, fingerprint.TailBytes+1)), c.Uint64()
		flags := c.Uvarint()
		f.Skip, f.Current, f.Retired, f.Complete = flags&flagSkip != 0, flags&flagCurrent != 0, flags&flagRetired != 0, flags&flagComplete != 0
		// Holes: the distance from the end of the one before, and the length.
		at := int64(0)
		for range c.Count(2) {
			gap, size := c.Uvarint(), c.Uvarint()
			if gap > 1<<62 || size > 1<<62 || at+int64(gap) < at || at+int64(gap)+int64(size) < at {
				return nil, ErrDamaged
			}
			h := Range{Begin: at + int64(gap)}
			h.End = h.Begin + int64(size)
			at = h.End
			if h.Begin == h.End {
				return nil, ErrDamaged
			}
			f.Holes = append(f.Holes, h)
		}
		// Tags: the distance from the beginning of the line before, and the value.
		if flags&flagTags != 0 {
			begin := int64(0)
			for range c.Count(2) {
				gap := c.Uvarint()
				if gap > 1<<62 || begin+int64(gap) < begin {
					return nil, ErrDamaged
				}
				begin += int64(gap)
				f.Tags = append(f.Tags, Tag{begin, c.Uvarint()})
			}
		}
		if flags&flagArrivals != 0 {
			f.Arrivals = readArrivals(&c)
		}
		badPrint := f.Print.N > fingerprint.Bytes || f.Head > 0 && int64(f.Print.N) > f.Head // the print of an unread file goes beyond its head
		badTail := f.TailN > fingerprint.TailBytes || int64(f.TailN) > f.Head
		holeBehindHead := at > f.Head
		if c.Bad || f.Head < 0 || badPrint || badTail || holeBehindHead {
			return nil, ErrDamaged
		}
		s.Files = append(s.Files, f)
	}
	if c.Bad || len(c.Rest) > 0 || s.Path == "" {
		return nil, ErrDamaged
	}
	return s, nil
}

// EncodeIndex returns the index that lists the keys of all checkpoints.
func EncodeIndex(keys []string) []byte {
	b := binary.AppendUvarint([]byte{version}, uint64(len(keys)))
	for _, k := range keys {
		b = wire.AppendBytes(b, k)
	}
	return seal(b, 0)
}

// DecodeIndex returns the keys of an index, or ErrDamaged.
func DecodeIndex(b []byte) ([]string, error) {
	c := unseal(b)
	var keys []string
	for range c.Count(1) {
		keys = append(keys, string(c.Bytes()))
	}
	if c.Bad || len(c.Rest) > 0 {
		return nil, ErrDamaged
	}
	return keys, nil
}
