package runlakeexporter

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	spansDir    = "_spans"  // within the lake; readers of Hive's partitions pass over names with an underscore
	spansEnd    = ".spans"  // of the names of files of spans
	droppedName = "dropped" // marks a run with spans that had no room: the run is never written
	writtenName = "written" // has how many bytes of spans the rows of a run were made of
	mostMessage = 64 << 20  // By, of a message, packed or not
)

// frameHead is before each message of a file: the length of the packed message and the checksum, 4 bytes each.
const frameHead = 8

// errDamaged is the error for a message not as written. A killed process leaves half a message at the end of its file.
var errDamaged = errors.New("damaged")

// spool is the spans of a run on disk, of all gateways.
type spool struct {
	dir  string
	file string // of this process
}

// spoolOf is the spool of the run with the directory's name.
func spoolOf(lake, runName, writer string) spool {
	dir := filepath.Join(lake, spansDir, runName)
	return spool{dir, filepath.Join(dir, writer+spansEnd)}
}

// dropped says whether the run has the mark droppedName.
func (s spool) dropped() bool {
	_, err := os.Stat(filepath.Join(s.dir, droppedName))
	return err == nil
}

// add appends a message, and returns how many bytes it takes. After an error the file is as before.
func (s spool) add(packer *zstd.Encoder, td ptrace.Traces) (n int64, err error) {
	text, err := new(ptrace.ProtoMarshaler).MarshalTraces(td)
	if err != nil {
		return 0, err
	}
	frame := packer.EncodeAll(text, make([]byte, frameHead))
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-frameHead))
	binary.BigEndian.PutUint32(frame[4:], crc32.ChecksumIEEE(frame[frameHead:]))
	if err := os.MkdirAll(s.dir, 0o777); err != nil { //nolint:gosec // subject to the umask, like the lake's own files
		return 0, err
	}
	file, err := os.OpenFile(s.file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666) //nolint:gosec // likewise
	if err != nil {
		return 0, err
	}
	before, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		if _, err = file.Write(frame); err != nil {
			err = errors.Join(err, file.Truncate(before))
		}
	}
	return int64(len(frame)), errors.Join(err, file.Close())
}

// files are the files of spans, of all gateways, and their size together.
func (s spool) files() (paths []string, size int64) {
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), spansEnd) {
			paths, size = append(paths, filepath.Join(s.dir, e.Name())), size+fi.Size()
		}
	}
	return paths, size
}

// written is how many bytes of spans the rows in the lake were made of; 0: a gateway has begun to write the rows; -1: no gateway has.
func (s spool) written() (size int64) {
	text, err := os.ReadFile(filepath.Join(s.dir, writtenName))
	if _, scanned := fmt.Sscan(string(text), &size); err != nil || scanned != nil {
		return -1
	}
	return size
}

// write notes that rows were made of so many bytes of spans.
func (s spool) write(size int64) error {
	return os.WriteFile(filepath.Join(s.dir, writtenName), fmt.Appendln(nil, size), 0o666) //nolint:gosec // less the umask, as the lake
}

// drop marks the run as not whole, and gives back the room of this process's spans.
func (s spool) drop() error {
	err := os.Remove(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(s.dir, 0o777) //nolint:gosec // less the umask, as the lake
	}
	return errors.Join(err, os.WriteFile(filepath.Join(s.dir, droppedName), nil, 0o666)) //nolint:gosec // likewise
}

// each calls f with the messages of a file, up to a damaged message (errDamaged): a process writes no more after half a message, so nothing is lost behind.
func each(path string, unpacker *zstd.Decoder, f func(ptrace.Traces)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 256<<10)
	var head [frameHead]byte
	var packed, text []byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return errDamaged
		}
		n := binary.BigEndian.Uint32(head[:])
		if n > mostMessage {
			return errDamaged
		}
		packed = append(packed[:0], make([]byte, n)...)
		if _, err := io.ReadFull(in, packed); err != nil || crc32.ChecksumIEEE(packed) != binary.BigEndian.Uint32(head[4:]) {
			return errDamaged
		}
		if text, err = unpacker.DecodeAll(packed, text[:0]); err != nil {
			return errDamaged
		}
		td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(text)
		if err != nil {
			return errDamaged
		}
		f(td)
	}
}
