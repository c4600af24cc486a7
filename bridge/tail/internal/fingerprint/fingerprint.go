// Package fingerprint identifies files: by their ids in the file system, by their first bytes, and by the bytes before the read position.
package fingerprint

import (
	"bytes"
	"io/fs"
	"syscall"
)

const (
	// Bytes is the number of first bytes that distinguish files with the same inode.
	Bytes = 1 << 10
	// TailBytes is the number of bytes before the head that must be unchanged for reading to continue.
	TailBytes = 64
)

// ID is a file's identity in the file system.
type ID struct {
	Dev, Ino uint64
}

// IDOf returns the id of a file; the zero ID where the system has none.
func IDOf(fi fs.FileInfo) ID {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return ID{uint64(st.Dev), st.Ino} //nolint:unconvert // other systems have other types
	}
	return ID{}
}

// Links returns how many names a file has.
func Links(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // other systems have other types
	}
	return 1
}

// Offset is the hash of nothing.
const Offset = 14695981039346656037

const prime = 1099511628211

// Hash returns the 64-bit FNV-1a hash sum continued over b.
func Hash(sum uint64, b []byte) uint64 {
	for _, c := range b {
		sum = (sum ^ uint64(c)) * prime
	}
	return sum
}

// Print is the hash of the first N ≤ 1 KiB of the bytes read, extended while reading.
type Print struct {
	Sum uint64
	N   int
}

// Extend adds bytes of the file, which begin at off, to the hash; bytes already hashed, or beyond a gap, are skipped.
func (p *Print) Extend(off int64, b []byte) {
	if p.N == Bytes || off > int64(p.N) || off+int64(len(b)) <= int64(p.N) {
		return
	}
	b = b[int64(p.N)-off:]
	b = b[:min(len(b), Bytes-p.N)]
	if p.N == 0 {
		p.Sum = Offset
	}
	p.Sum = Hash(p.Sum, b)
	p.N += len(b)
}

// Begins reports whether b, read at the beginning of a file, begins as the print's file did. For an empty print the answer is always true.
func (p *Print) Begins(b []byte) bool {
	return p.N == 0 || len(b) >= p.N && Hash(Offset, b[:p.N]) == p.Sum
}

// Tail is the last bytes before the head.
type Tail struct {
	last [TailBytes]byte
	n    int
	// Of a stored tail only the hash is known, until bytes with the same hash were found in the file.
	sum    uint64
	stored bool
}

// Stored returns the tail of n bytes of which only the hash is known.
func Stored(sum uint64, n int) Tail { return Tail{sum: sum, n: n, stored: true} }

// Len returns the number of bytes, at most TailBytes.
func (t *Tail) Len() int { return t.n }

// Hash returns the hash of the remembered bytes.
func (t *Tail) Hash() uint64 {
	if t.stored {
		return t.sum
	}
	return Hash(Offset, t.last[:t.n])
}

// Remember keeps the last bytes of b, which continue the bytes so far.
func (t *Tail) Remember(b []byte) {
	if len(b) >= TailBytes {
		t.n = copy(t.last[:], b[len(b)-TailBytes:])
		return
	}
	keep := min(t.n, TailBytes-len(b))
	copy(t.last[:], t.last[t.n-keep:t.n])
	t.n = keep + copy(t.last[keep:], b)
}

// Matches reports whether b, Len bytes read just before the head, equals the remembered bytes.
func (t *Tail) Matches(b []byte) bool {
	if !t.stored {
		return bytes.Equal(b, t.last[:t.n])
	}
	if Hash(Offset, b) != t.sum {
		return false
	}
	copy(t.last[:], b)
	t.stored = false
	return true
}
