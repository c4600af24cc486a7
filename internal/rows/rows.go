// Package rows puts any number of rows in order.
package rows

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/trainbridge/trainbridge/internal/outfile"
)

const (
	sortBytes  = 4 << 20  // of a table's rows in memory
	mergeBytes = 16 << 10 // of each sorted piece, while pieces are merged
)

// Sorted is rows in the order of their keys. Beyond some megabytes rows are sorted piece by piece into a temporary file without a name. Add may be
// called by several goroutines, before the other methods.
type Sorted struct {
	dir  string // of the temporary file
	mu   sync.Mutex
	n    int64
	rows []byte // the rows in memory, each: the lengths of key and text, 4 bytes each; key; text
	at   []int  // where the rows in memory begin
	size int64  // of the file
	file *os.File
	ends []int64 // of the pieces in the file
	err  error
}

const rowHead = 8

// New has no rows. dir is the directory of the temporary file; "": the system's.
func New(dir string) *Sorted { return &Sorted{dir: dir} }

// Len is the number of rows.
func (s *Sorted) Len() int64 { return s.n }

// Add takes a row. Rows with equal keys are in the order of their texts.
func (s *Sorted) Add(key, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if len(s.rows)+len(key)+len(text) > sortBytes && len(s.at) > 0 {
		s.spill()
	}
	s.at = append(s.at, len(s.rows))
	s.rows = binary.BigEndian.AppendUint32(s.rows, uint32(len(key)))
	s.rows = binary.BigEndian.AppendUint32(s.rows, uint32(len(text)))
	s.rows = append(append(s.rows, key...), text...)
}

// keyOf and textOf read a row at the beginning of row, which may be longer.
func keyOf(row []byte) []byte { return row[rowHead : rowHead+binary.BigEndian.Uint32(row)] }

func textOf(row []byte) []byte {
	key := binary.BigEndian.Uint32(row)
	return row[rowHead+key : rowHead+key+binary.BigEndian.Uint32(row[4:])]
}

// compare orders rows by key, then text.
func compare(a, b []byte) int {
	if c := bytes.Compare(keyOf(a), keyOf(b)); c != 0 {
		return c
	}
	return bytes.Compare(textOf(a), textOf(b))
}

// sort puts the rows in memory in order.
func (s *Sorted) sort() {
	slices.SortFunc(s.at, func(a, b int) int { return compare(s.rows[a:], s.rows[b:]) })
}

// spill appends the rows in memory to the file as a sorted piece, and forgets them, also after an error, which Each returns.
func (s *Sorted) spill() {
	defer func() { s.rows, s.at = s.rows[:0], s.at[:0] }()
	if s.err != nil {
		return
	}
	if s.file == nil {
		if s.file, s.err = outfile.Temporary(s.dir); s.err != nil {
			return
		}
	}
	s.sort()
	w := bufio.NewWriterSize(s.file, 256<<10)
	for _, at := range s.at {
		row := s.rows[at:]
		n, err := w.Write(row[:rowHead+len(keyOf(row))+len(textOf(row))])
		s.size += int64(n)
		s.err = errors.Join(s.err, err)
	}
	s.err = errors.Join(s.err, w.Flush())
	s.ends = append(s.ends, s.size)
}

// Each calls f with the text of each row in order, valid until f returns. An error of f ends the rows, and is returned; so is an error of the temporary
// file. Each is called once.
func (s *Sorted) Each(f func(text []byte) error) error {
	if s.file == nil {
		s.sort()
		for _, at := range s.at {
			if err := f(textOf(s.rows[at:])); err != nil {
				return err
			}
		}
		return s.err
	}
	if len(s.at) > 0 {
		s.spill()
	}
	if s.err != nil {
		return s.err
	}
	s.rows, s.at = nil, nil
	return s.merge(f)
}

// merge calls f with the rows of the file in order: the next row is the least of the next rows of all sorted pieces.
func (s *Sorted) merge(f func(text []byte) error) error {
	var all pieces
	begin := int64(0)
	for _, end := range s.ends {
		p := &piece{in: bufio.NewReaderSize(io.NewSectionReader(s.file, begin, end-begin), mergeBytes)}
		begin = end
		if err := p.next(); err != nil {
			return err
		}
		all = append(all, p)
	}
	heap.Init(&all)
	for len(all) > 0 {
		p := all[0]
		if err := f(textOf(p.row)); err != nil {
			return err
		}
		switch err := p.next(); {
		case errors.Is(err, io.EOF):
			heap.Pop(&all)
		case err != nil:
			return err
		default:
			heap.Fix(&all, 0)
		}
	}
	return nil
}

// Close gives the temporary file back.
func (s *Sorted) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// piece is a sorted part of the file, with its next row.
type piece struct {
	in  *bufio.Reader
	row []byte
}

// next reads a row; io.EOF at the end.
func (p *piece) next() error {
	p.row = append(p.row[:0], make([]byte, rowHead)...)
	if _, err := io.ReadFull(p.in, p.row); err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint32(p.row) + binary.BigEndian.Uint32(p.row[4:]))
	p.row = slices.Grow(p.row, n)[:rowHead+n]
	_, err := io.ReadFull(p.in, p.row[rowHead:])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// pieces is a heap of pieces by their next rows.
type pieces []*piece

func (p pieces) Len() int           { return len(p) }
func (p pieces) Less(i, j int) bool { return compare(p[i].row, p[j].row) < 0 }
func (p pieces) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pieces) Push(x any)        { *p = append(*p, x.(*piece)) }
func (p *pieces) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
