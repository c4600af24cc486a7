package tail

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"
)

// A checkpoint is a version byte, varints and length-prefixed bytes, and the xxh3 hash of all that, little-endian.
const (
	checkpointVersion = 1
	indexKey          = "index"
)

var errCheckpoint = errors.New("damaged, or of another version")

// savedFile is what a checkpoint says about one file of a stream.
type savedFile struct {
	path     string
	id       fileID
	size     int64
	mtime    int64 // Unix ns
	head     int64
	print    fingerprint
	tailSum  uint64
	tailN    int
	skip     bool
	current  bool
	retired  bool
	complete bool
	holes    []span
	tags     []tag
}

// saved is the checkpoint of a stream.
type saved struct {
	path      string
	lastWrite int64 // Unix ns
	files     []savedFile
	handler   []byte
	document  bool
	byContent bool // the Sorter gave it to this Tailer
	sum       uint64
}

const (
	flagSkip = 1 << iota
	flagCurrent
	flagRetired
	flagTags // tags follow the holes
	flagComplete
)

func checkpointKey(path string) string {
	return "s" + strconv.FormatUint(xxh3.HashString(path), 16)
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// encode appends the checkpoint to b.
func (c *saved) encode(b []byte) []byte {
	start := len(b)
	b = append(b, checkpointVersion)
	b = appendBytes(b, c.path)
	b = binary.AppendVarint(b, c.lastWrite)
	doc := uint64(0)
	if c.document {
		doc = 1
	}
	if c.byContent {
		doc |= 2
	}
	b = binary.AppendUvarint(b, doc)
	b = binary.LittleEndian.AppendUint64(b, c.sum)
	b = appendBytes(b, c.handler)
	b = binary.AppendUvarint(b, uint64(len(c.files)))
	for i := range c.files {
		f := &c.files[i]
		b = appendBytes(b, f.path)
		b = binary.AppendUvarint(b, f.id.dev)
		b = binary.AppendUvarint(b, f.id.ino)
		b = binary.AppendVarint(b, f.size)
		b = binary.AppendVarint(b, f.mtime)
		b = binary.AppendVarint(b, f.head)
		b = binary.AppendUvarint(b, uint64(f.print.n))
		b = binary.LittleEndian.AppendUint64(b, f.print.sum)
		b = binary.AppendUvarint(b, uint64(f.tailN))
		b = binary.LittleEndian.AppendUint64(b, f.tailSum)
		flags := uint64(0)
		for bit, on := range map[uint64]bool{flagSkip: f.skip, flagCurrent: f.current, flagRetired: f.retired, flagTags: len(f.tags) > 0, flagComplete: f.complete} {
			if on {
				flags |= bit
			}
		}
		b = binary.AppendUvarint(b, flags)
		b = binary.AppendUvarint(b, uint64(len(f.holes)))
		at := int64(0)
		for _, h := range f.holes {
			b = binary.AppendUvarint(b, uint64(h.begin-at))
			b = binary.AppendUvarint(b, uint64(h.end-h.begin))
			at = h.end
		}
		if len(f.tags) == 0 {
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(f.tags)))
		at = 0
		for _, t := range f.tags {
			b = binary.AppendUvarint(b, uint64(t.begin-at))
			b = binary.AppendUvarint(b, t.value)
			at = t.begin
		}
	}
	return seal(b, start)
}

func seal(b []byte, start int) []byte {
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b[start:]))
}

// cursor reads an encoding; after the first fault it yields zeros.
type cursor struct {
	b   []byte
	bad bool
}

// unseal checks hash and version.
func unseal(b []byte) cursor {
	n := len(b) - 8
	if n < 1 || b[0] != checkpointVersion || xxh3.Hash(b[:n]) != binary.LittleEndian.Uint64(b[n:]) {
		return cursor{bad: true}
	}
	return cursor{b: b[1:n]}
}

func (c *cursor) uint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) int() int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) fixed() uint64 {
	if len(c.b) < 8 {
		c.bad, c.b = true, nil
		return 0
	}
	v := binary.LittleEndian.Uint64(c.b)
	c.b = c.b[8:]
	return v
}

func (c *cursor) bytes() []byte {
	n := c.uint()
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

// count reads a number of things that take at least size bytes each.
func (c *cursor) count(size int) int {
	n := c.uint()
	if n > uint64(len(c.b)/size) {
		c.bad, c.b = true, nil
		return 0
	}
	return int(n)
}

// decode reads a checkpoint and refuses one that cannot be true.
func decode(b []byte) (*saved, error) {
	c := unseal(b)
	s := &saved{path: string(c.bytes()), lastWrite: c.int()}
	kind := c.uint()
	s.document, s.byContent, s.sum = kind&1 != 0, kind&2 != 0, c.fixed()
	if h := c.bytes(); len(h) > 0 {
		s.handler = append([]byte(nil), h...)
	}
	n := c.count(26)
	for range n {
		f := savedFile{path: string(c.bytes()), id: fileID{c.uint(), c.uint()}, size: c.int(), mtime: c.int(), head: c.int()}
		pn := c.uint()
		f.print = fingerprint{sum: c.fixed(), n: int(min(pn, printBytes+1))}
		tn := c.uint()
		f.tailN, f.tailSum = int(min(tn, tailBytes+1)), c.fixed()
		flags := c.uint()
		f.skip, f.current, f.retired, f.complete = flags&flagSkip != 0, flags&flagCurrent != 0, flags&flagRetired != 0, flags&flagComplete != 0
		at := int64(0)
		for range c.count(2) {
			gap, size := c.uint(), c.uint()
			if gap > 1<<62 || size > 1<<62 || at+int64(gap) < at || at+int64(gap)+int64(size) < at {
				return nil, errCheckpoint
			}
			h := span{begin: at + int64(gap)}
			h.end = h.begin + int64(size)
			at = h.end
			if h.begin == h.end {
				return nil, errCheckpoint
			}
			f.holes = append(f.holes, h)
		}
		if flags&flagTags != 0 {
			begin := int64(0)
			for range c.count(2) {
				gap := c.uint()
				if gap > 1<<62 || begin+int64(gap) < begin {
					return nil, errCheckpoint
				}
				begin += int64(gap)
				f.tags = append(f.tags, tag{begin, c.uint()})
			}
		}
		if c.bad || f.head < 0 || f.print.n > printBytes || f.tailN > tailBytes || int64(f.tailN) > f.head || f.head > 0 && int64(f.print.n) > f.head || at > f.head {
			return nil, errCheckpoint
		}
		s.files = append(s.files, f)
	}
	if c.bad || len(c.b) > 0 || s.path == "" {
		return nil, errCheckpoint
	}
	return s, nil
}

func encodeIndex(keys []string) []byte {
	b := binary.AppendUvarint([]byte{checkpointVersion}, uint64(len(keys)))
	for _, k := range keys {
		b = appendBytes(b, k)
	}
	return seal(b, 0)
}

func decodeIndex(b []byte) ([]string, error) {
	c := unseal(b)
	var keys []string
	for range c.count(1) {
		keys = append(keys, string(c.bytes()))
	}
	if c.bad || len(c.b) > 0 {
		return nil, errCheckpoint
	}
	return keys, nil
}

// snapshot appends the stream's checkpoint to b. The caller holds s.mu, so no batch is half built.
func (s *Stream) snapshot(b []byte) (_ []byte, holes int) {
	c := saved{path: s.path, lastWrite: unixNano(s.lastWrite), document: s.document, byContent: s.byContent, sum: s.doc.sum, handler: s.save()}
	if s.current != nil {
		c.lastWrite = unixNano(s.current.wrote)
	}
	first := s.firstMark()
	if first != nil {
		c.handler = first.state
	}
	out, tags := map[*file][]span{}, map[*file][]tag{}
	for i := range s.held.slots {
		if h := &s.held.slots[i]; h.file != nil {
			out[h.file] = append(out[h.file], h.span)
			if h.tag != 0 {
				tags[h.file] = append(tags[h.file], tag{h.begin, h.tag})
			}
		}
	}
	for fb := range s.flying {
		for _, p := range fb.pieces {
			out[p.file] = append(out[p.file], p.span)
		}
	}
	for _, f := range s.files {
		if f.life == lifeDead || f != s.current && f.head == 0 && f.print.n == 0 && !f.compressed {
			continue // an empty file cannot be told from another that gets its inode
		}
		if first != nil && first.at[f] < f.head { // a file that came later: all of it
			out[f] = append(out[f], span{first.at[f], f.head})
		}
		spans := mergeSpans(append(out[f], f.replay...))
		tagged := slices.Concat(tags[f], f.tags)
		holes += len(spans) + len(tagged)/10
		slices.SortFunc(tagged, func(a, b tag) int { return cmp.Compare(a.begin, b.begin) })
		c.files = append(c.files, savedFile{
			path: f.path, id: f.id, size: f.size, mtime: unixNano(f.mtime), head: f.head, print: f.print, tailSum: f.tailHash(), tailN: f.tailN,
			skip: f.skip, current: f == s.current, retired: f.isRetired(), complete: f.isComplete(), holes: spans, tags: tagged,
		})
	}
	return c.encode(b), holes
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
