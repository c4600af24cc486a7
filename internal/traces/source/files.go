package source

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// maxMessage bounds a line or message of a file.
const maxMessage = 512 << 20

// ErrNoOTLP is the error about a file that the collector's file exporter did not write.
var ErrNoOTLP = errors.New("not a file of the collector's file exporter")

// Files reads files of the collector's file exporter, rotated ones too: a line of OTLP JSON per batch, or (format: proto) the length of a batch in four bytes
// and its protobuf. Lines of metrics and logs are skipped, and so is an unfinished last batch.
func Files(paths ...string) (*Memory, error) {
	td := ptrace.NewTraces()
	for _, path := range paths {
		if err := readFile(path, td); err != nil {
			return nil, err
		}
	}
	return NewMemory(strings.Join(paths, ", "), td), nil
}

// readFile appends the spans of a file.
func readFile(path string, into ptrace.Traces) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := read(bufio.NewReaderSize(f, 1<<20), into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// read appends the spans of a file's content: lines of JSON begin with a brace, any other content is lengths and protobuf.
func read(r *bufio.Reader, into ptrace.Traces) error {
	first, err := r.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	case first[0] == '{':
		return readLines(r, into)
	}
	return readMessages(r, into)
}

// readLines appends the spans of lines of OTLP JSON. A last line without its end may be unfinished, and is no error.
func readLines(r *bufio.Reader, into ptrace.Traces) error {
	var u ptrace.JSONUnmarshaler
	for n := 1; ; n++ {
		line, err := readLine(r)
		whole := err == nil
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			td, err := u.UnmarshalTraces(line)
			switch {
			case err == nil:
				td.ResourceSpans().MoveAndAppendTo(into.ResourceSpans())
			case whole:
				return fmt.Errorf("line %d: %w: %w", n, ErrNoOTLP, err)
			}
		}
		if !whole {
			return nil
		}
	}
}

// readLine returns a line; with io.EOF, an unfinished one.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			return nil, fmt.Errorf("%w: longer than %d MiB", ErrNoOTLP, maxMessage>>20)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// readMessages appends the spans of batches in protobuf, each behind its length in four bytes, big-endian. An unfinished last batch is no error; an unfinished
// first one with a whole length is: the file is of another kind.
func readMessages(r *bufio.Reader, into ptrace.Traces) error {
	var u ptrace.ProtoUnmarshaler
	var size [4]byte
	for n := 1; ; n++ {
		if _, err := io.ReadFull(r, size[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		} else if err != nil {
			return err
		}
		length := binary.BigEndian.Uint32(size[:])
		if length > maxMessage {
			return fmt.Errorf("batch %d: %w: neither JSON lines nor lengths and protobuf, or it is compressed", n, ErrNoOTLP)
		}
		var message bytes.Buffer // grows with the actual bytes, whatever the length says
		switch got, err := io.CopyN(&message, r, int64(length)); {
		case errors.Is(err, io.EOF) && n > 1 && got < int64(length):
			return nil
		case err != nil:
			return fmt.Errorf("batch %d: %w: %w", n, ErrNoOTLP, err)
		}
		td, err := u.UnmarshalTraces(message.Bytes())
		if err != nil {
			return fmt.Errorf("batch %d: %w: %w (is it compressed?)", n, ErrNoOTLP, err)
		}
		td.ResourceSpans().MoveAndAppendTo(into.ResourceSpans())
	}
}
