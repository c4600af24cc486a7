package lake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/records"
	"github.com/trainbridge/trainbridge/internal/outfile"
)

// groupRows is how many rows of a file are compressed together: 60 columns of them take some 30 MB of memory.
const groupRows = 1 << 16

// errRuns is the error for more runs than a digest tells apart.
var errRuns = errors.New("there are more than 256 runs in these logs: report them in several commands, some directories at a time")

// writer is a lake as a format of reports.
type writer struct {
	*records.Tables
	format.Request
	days    map[string]string // by run
	written map[string]bool   // files
}

// Open makes the writer of the lake req.Dir.
func Open(req format.Request) format.Writer {
	return &writer{records.New(req.Temporary, req.In.Name, tables...), req, make(map[string]string), make(map[string]bool)}
}

// Finish implements format.Writer.
func (w *writer) Finish(_ context.Context, read *offline.Reading) error {
	if err := w.finish(read); err != nil {
		return fmt.Errorf("report: -o %s: %w", w.Dir, short(err))
	}
	return nil
}

// short is an error about a file without the operation: "PATH: no space left on device".
func short(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", of.Path, of.Err)
	}
	return err
}

// finish writes all tables, then removes what earlier reports of the same runs have left (sweep). The rows of runs are read first, for the day of each run, and
// kept in memory, because Each can be called once for a table. The first cell of a row is the run.
func (w *writer) finish(read *offline.Reading) error {
	if !w.Jobs(read, w.Conclude) {
		return errRuns
	}
	var runs [][][]byte
	at := slices.IndexFunc(records.Columns(runsTable), func(c records.Column) bool { return c.Name == "time" })
	err := w.Each(runsTable, func(cells [][]byte) error {
		row := make([][]byte, len(cells))
		for i, cell := range cells {
			row[i] = bytes.Clone(cell)
		}
		runs = append(runs, row)
		start, err := time.Parse(time.RFC3339Nano, string(row[at]))
		if run := string(row[0]); w.days[run] == "" {
			w.days[run] = dayName(start)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range tables {
		each := func(f func(cells [][]byte) error) error { return w.Each(name, f) }
		if name == runsTable {
			each = func(f func(cells [][]byte) error) error {
				for _, row := range runs {
					if err := f(row); err != nil {
						return err
					}
				}
				return nil
			}
		}
		if err := w.table(name, each); err != nil {
			return err
		}
	}
	return w.sweep()
}

// table writes a table: a file for each run with rows. The rows of a run come together: the next run's first row completes a file.
func (w *writer) table(name string, each func(func(cells [][]byte) error) error) error {
	schema := schemaOf(name)
	var file *file // of the run at hand; nil: none yet
	defer func() { file.close() }()
	run := ""
	err := each(func(cells [][]byte) error {
		if file != nil && string(cells[0]) == run {
			return file.add(cells)
		}
		if err := file.commit(); err != nil {
			return err
		}
		run = string(cells[0])
		path := pathOf(w.Dir, name, w.days[run], runName(run))
		w.written[path] = true
		var err error
		if file, err = create(path, schema); err != nil {
			return err
		}
		return file.add(cells)
	})
	if err != nil {
		return err
	}
	return file.commit()
}

// sweep removes the files of earlier reports of these runs that this report has not replaced: a run that now begins on another day, or a table without rows.
func (w *writer) sweep() error {
	for _, name := range tables {
		days, err := os.ReadDir(filepath.Join(w.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, day := range days {
			if !strings.HasPrefix(day.Name(), "day=") {
				continue
			}
			for run := range w.days {
				path := pathOf(w.Dir, name, day.Name(), runName(run))
				if w.written[path] {
					continue
				}
				if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	}
	return nil
}

// schema is a table in Parquet.
type schema struct {
	*parquet.Schema
	columns []records.Column
}

func schemaOf(table string) schema {
	s := schema{columns: records.Columns(table)}
	root := group{parquet.Group{}, nil}
	for _, c := range s.columns {
		root.add(c.Name, parquet.Optional(nodeOf(c)))
	}
	root.add("schema_version", parquet.Int(32))
	s.Schema = parquet.NewSchema(table, root)
	return s
}

// nodeOf is the type of a column in Parquet: texts with a dictionary, unless each is unique.
func nodeOf(c records.Column) parquet.Node {
	switch c.Kind {
	case records.Number:
		return parquet.Leaf(parquet.DoubleType)
	case records.Whole:
		return parquet.Int(64)
	case records.Time:
		return parquet.Timestamp(parquet.Microsecond)
	case records.Text:
	}
	if strings.HasSuffix(c.Name, "_id") { // no text comes twice
		return parquet.String()
	}
	return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
}

// group has its columns in their order: a parquet.Group sorts them by name.
type group struct {
	parquet.Group
	fields []parquet.Field
}

func (g group) Fields() []parquet.Field { return g.fields }

func (g *group) add(name string, node parquet.Node) {
	g.Group[name] = node
	g.fields = append(g.fields, parquet.Group{name: node}.Fields()[0])
}

// file is a file in the making.
type file struct {
	*outfile.File
	w      *parquet.GenericWriter[any]
	schema schema
	row    parquet.Row
}

// create begins a file, in directories that are made if missing. The file appears at its path with commit.
func create(path string, s schema) (*file, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil { //nolint:gosec // less the umask, as any new directory
		return nil, err
	}
	out, err := outfile.Create(path)
	if err != nil {
		return nil, err
	}
	w := parquet.NewGenericWriter[any](out, s.Schema, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(groupRows),
		parquet.KeyValueMetadata(versionKey, strconv.Itoa(SchemaVersion)), parquet.CreatedBy("trainbridge", "0", ""))
	return &file{File: out, w: w, schema: s}, nil
}

// add adds a row. An empty cell is NULL.
func (f *file) add(cells [][]byte) error {
	f.row = f.row[:0]
	for i, cell := range cells {
		value, defined := valueOf(cell, f.schema.columns[i].Kind), 1
		if value.IsNull() {
			defined = 0
		}
		f.row = append(f.row, value.Level(0, defined, i))
	}
	f.row = append(f.row, parquet.Int32Value(SchemaVersion).Level(0, 0, len(cells)))
	_, err := f.w.WriteRows([]parquet.Row{f.row})
	return err
}

// valueOf is a cell in Parquet; NULL if the cell does not hold the kind.
func valueOf(cell []byte, kind records.Kind) parquet.Value {
	if len(cell) == 0 {
		return parquet.NullValue()
	}
	switch kind {
	case records.Number:
		if x, err := strconv.ParseFloat(string(cell), 64); err == nil {
			return parquet.DoubleValue(x)
		}
		return parquet.NullValue()
	case records.Whole:
		if n, err := strconv.ParseInt(string(cell), 10, 64); err == nil {
			return parquet.Int64Value(n)
		}
		return parquet.NullValue()
	case records.Time:
		if t, err := time.Parse(time.RFC3339Nano, string(cell)); err == nil {
			return parquet.Int64Value(t.UnixMicro())
		}
		return parquet.NullValue()
	case records.Text:
	}
	return parquet.ByteArrayValue(cell)
}

// commit puts the file in its place. A nil file is none.
func (f *file) commit() error {
	if f == nil {
		return nil
	}
	return cmp.Or(f.w.Close(), f.Commit())
}

// close gives up a file without commit. A nil file is none.
func (f *file) close() {
	if f != nil {
		_ = f.Close()
	}
}
