package offline

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/internal/tfevents"
	"github.com/trainbridge/trainbridge/internal/wandb"
	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
)

// Reading is the result of reading logs.
type Reading struct {
	Files []*File // by path
	Runs  []Run   // the jobs, in the order of reading
	// Shifts are the logs with stamps of a different zone from the one assumed, with Options.Positions.
	Shifts []Shift
	Bytes  int64 // of all files read
	// Lines and Records are the receivers' counts. The files' own counts have the same sums.
	Lines, Records int64
	Copies         []Copy // files not read: another has the same records

	sample func(text []byte) string   // the beginning of a line, without secrets
	zone   func(*File) *time.Location // the zone assumed for a file's stamps

	mu sync.Mutex       // guards Lines, Records, by, and counted of files
	by map[string]*File // by path
}

// Sample returns the beginning of a line for display, without secrets.
func (r *Reading) Sample(text []byte) string { return r.sample(text) }

// Zone returns the zone assumed for a file's stamps without one.
func (r *Reading) Zone(f *File) *time.Location {
	if r.zone == nil {
		return time.Local
	}
	return r.zone(f)
}

// Run is a job and its files.
type Run struct {
	ID    string // ml.run.id
	Files []string
}

// File is a file with its counts.
type File struct {
	Path     string
	Name     string // for the user
	Receiver string // "": no receiver understands the file
	Also     string // of two kinds of logs in one file (findSecond): the receiver of the second; "": the file is of one kind
	Size     int64  // bytes
	Binary   bool   // not read further
	Err      error  // of a file without a receiver: why not even its first byte can be read
	First    string // the beginning of the first line of a file without a receiver, without secrets

	Lines, Records    int64
	Ignored, Rejected map[string]*Reason

	secondLines   int64   // lines that the receiver Also has read …
	secondRecords int64   // … and its records
	counted       []place // places whose line is known, in order
	clocks        *clocks // of its lines that are no records; nil: not a training log
}

// Readers returns the receivers of the file, for display.
func (f *File) Readers() string {
	if f.Also != "" {
		return f.Receiver + ", " + f.Also
	}
	return f.Receiver
}

// Why a file has no receiver.
const (
	UnreadEmpty   = "empty"
	UnreadBinary  = "binary"
	UnreadClosed  = "unreadable" // File.Err says why
	UnreadUnknown = "unknown"    // text in no known format
)

// Unread returns why the file has no receiver, one of the constants; "": the file has one.
func (f *File) Unread() string {
	switch {
	case f.Receiver != "":
		return ""
	case f.Size == 0:
		return UnreadEmpty
	case f.Binary:
		return UnreadBinary
	case f.Err != nil:
		return UnreadClosed
	}
	return UnreadUnknown
}

// place is an offset in the content of a file, with the number of line endings before.
type place struct{ offset, newlines int64 }

// Reason is why lines were ignored or rejected.
type Reason struct {
	Lines  int64
	Line   int64  // number of the first, from 1, among the lines read: a line may begin behind a carriage return
	Offset int64  // of the first, for Reading.LineAt
	Text   string // its beginning, without secrets
}

// newReading returns a reading of files of which no line is read yet.
func newReading(in *Input) *Reading {
	r := &Reading{by: make(map[string]*File), Copies: in.Copies}
	for _, path := range in.Files {
		f := &File{Path: path, Name: in.Name(path), Ignored: make(map[string]*Reason), Rejected: make(map[string]*Reason)}
		if fi, err := os.Stat(path); err == nil {
			f.Size = fi.Size()
		}
		r.Files = append(r.Files, f)
		r.by[path] = f
	}
	return r
}

// addCounts adds the counts of a receiver that has ended.
func (r *Reading) addCounts(c tail.Counts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Lines += c.Lines
	r.Records += c.Records
}

// watch returns the function to be called for each line of a file. It counts the line, and for training logs updates the clocks of lines that are no records.
func (r *Reading) watch(path string) LineWatch {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.by[path]
	if f == nil { // a file that appeared during the reading
		f = &File{Path: path, Name: path, Ignored: make(map[string]*Reason), Rejected: make(map[string]*Reason)}
		r.by[path] = f
	}
	if f.Receiver == trainlogreceiver.NewFactory().Type().String() || f.Receiver == flagscalereceiver.NewFactory().Type().String() {
		f.clocks = newClocks(r.zone(f))
	}
	return func(text []byte, begin int64, v tail.Verdict, reason string) {
		r.countLine(f, text, begin, v, reason)
		if f.clocks != nil {
			f.clocks.noteLine(text, v)
		}
	}
}

// watchSecond is watch for the second receiver of a file with two kinds of logs. The first receiver counts all lines, and ignores those of the second.
func (r *Reading) watchSecond(path string) LineWatch {
	f := r.File(path)
	return func(_ []byte, _ int64, v tail.Verdict, _ string) {
		f.secondLines++
		if v == tail.Record {
			f.secondRecords++
		}
	}
}

// addSeconds adds the records of second receivers to the counts of their files, after everything is read. A line read by two receivers counts once.
func (r *Reading) addSeconds() {
	for _, f := range r.Files {
		r.Lines -= f.secondLines
		f.Records += f.secondRecords
		if why := f.Ignored["not_tq"]; why != nil {
			if why.Lines -= f.secondRecords; why.Lines <= 0 {
				delete(f.Ignored, "not_tq")
			}
		}
	}
}

// countLine counts a line of a file by its outcome, and keeps the first line of each reason as a sample.
func (r *Reading) countLine(f *File, text []byte, begin int64, v tail.Verdict, reason string) {
	f.Lines++
	of := f.Ignored
	switch v {
	case tail.Record:
		f.Records++
		return
	case tail.Rejected:
		of = f.Rejected
	case tail.Ignored:
	}
	why := of[reason]
	if why == nil {
		why = &Reason{Line: f.Lines, Offset: begin, Text: r.Sample(text)}
		of[reason] = why
	}
	why.Lines++
}

// CopiedLines returns how many lines of the file repeat the record of another rank.
func (f *File) CopiedLines() int64 {
	if why := f.Ignored["copy"]; why != nil {
		return why.Lines
	}
	return 0
}

// File returns a file of the reading, nil if unknown.
func (r *Reading) File(path string) *File {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[path]
}

// Name returns the name of a file for display.
func (r *Reading) Name(path string) string {
	if f := r.File(path); f != nil {
		return f.Name
	}
	return path
}

// LineAt returns the number of the line at a place of a file (trainbridge.log.offset), from 1, as editors count: by newlines. 0: the file is unknown, cannot be
// read any more, or is a tracker's.
func (r *Reading) LineAt(path string, offset int64) int64 {
	f := r.File(path)
	if f == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := slices.BinarySearchFunc(f.counted, offset, func(p place, offset int64) int { return cmp.Compare(p.offset, offset) })
	if found {
		return f.counted[at].newlines + 1
	}
	var from place // counting goes on at the last place before that is known, else at the file's beginning
	if at > 0 {
		from = f.counted[at-1]
	}
	n, err := countNewlines(path, from.offset, offset)
	if err != nil || isRows(headOf(path)) {
		return 0
	}
	f.counted = slices.Insert(f.counted, at, place{offset, from.newlines + n})
	return from.newlines + n + 1
}

// countNewlines counts the line endings in the part of a file's (unpacked) content between two offsets. A file that ends before is an error.
func countNewlines(path string, from, to int64) (n int64, err error) {
	src, err := openContent(path)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	if s, ok := src.(io.Seeker); ok {
		_, err = s.Seek(from, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, src, from)
	}
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for left := to - from; left > 0; {
		got, err := src.Read(buf[:min(int64(len(buf)), left)])
		n += int64(bytes.Count(buf[:got], []byte{'\n'}))
		left -= int64(got)
		if err != nil && left > 0 {
			return n, err
		}
	}
	return n, nil
}

// openContent opens a file and decompresses its content if needed. Only uncompressed content can be sought in.
func openContent(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasSuffix(path, ".gz"):
		dec, err := gzip.NewReader(bufio.NewReader(file))
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return &unpacked{dec, file}, nil
	case strings.HasSuffix(path, ".zst"):
		dec, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return &unpacked{dec.IOReadCloser(), file}, nil
	}
	return file, nil
}

// unpacked is the content of a compressed file.
type unpacked struct {
	io.ReadCloser
	file *os.File
}

// Close closes the content and the file.
func (u *unpacked) Close() error { return errors.Join(u.ReadCloser.Close(), u.file.Close()) }

// readError returns the error of reading the first byte of a file: no permission, or invalid gzip. nil: the file is readable, or empty.
func readError(path string) error {
	src, err := openContent(path)
	if err != nil {
		return err
	}
	defer src.Close()
	_, err = src.Read(make([]byte, 1))
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// headOf returns the beginning of a file's content, 4 KiB at most: fewer bytes of a short file, or up to an error of reading; nil if the file cannot be opened.
func headOf(path string) []byte {
	src, err := openContent(path)
	if err != nil {
		return nil
	}
	defer src.Close()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(src, head) // the bytes before an error are enough
	return head[:n]
}

// isRows reports whether a file is TensorBoard's or W&B's, by its beginning: their rows are read like lines, but have no line numbers.
func isRows(head []byte) bool { return tfevents.IsEventFile(head) || wandb.IsFile(head) }

// isBinary reports whether a file is no text, by its beginning. false for compressed files, files of trackers, dumps of the Flight Recorder, and text in UTF-16
// or after NUL bytes, whose readers decide.
func isBinary(path string) bool {
	if strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".zst") || flightrecorder.IsName(path) {
		return false
	}
	head := headOf(path)
	if isRows(head) || bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return false
	}
	head = bytes.TrimLeft(head, "\x00")
	strange, all := 0, 0 // characters
	for len(head) > 0 {
		c, size := utf8.DecodeRune(head)
		invalid := c == utf8.RuneError && size == 1 && len(head) > utf8.UTFMax // at the end of head a character may be cut in two
		control := c < ' ' && !strings.ContainsRune("\t\n\r\x1b\b", c)         // escapes colour terminals, backspaces redraw progress bars
		if invalid || control {
			strange++
		}
		all++
		head = head[size:]
	}
	return strange*10 > all // more than a tenth: text has some, with its encoding broken or from another program
}

// FilesOf returns the files of a run, nil if unknown.
func (r *Reading) FilesOf(run string) []string {
	for i := range r.Runs {
		if r.Runs[i].ID == run {
			return r.Runs[i].Files
		}
	}
	return nil
}
