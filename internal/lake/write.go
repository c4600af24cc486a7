package lake

import (
	"bytes"
	"cmp"
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

	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/internal/records"
)

// groupRows is how many rows of a file are compressed together: 60 columns of them take some 30 MB of memory.
const groupRows = 1 << 16

// New makes the tables of a lake. temp is the directory of temporary files; name: the name of a log.
func New(temp string, name func(path string) string) *records.Tables {
	return records.New(temp, name, Tables...)
}

// writer writes the runs of tables into a lake.
type writer struct {
	*records.Tables
	dir     string
	days    map[string]string // by run
	written map[string]bool   // files
}

// Write writes all runs of the tables of New, after their Jobs, and removes what earlier writings of the same runs have left.
func Write(dir string, t *records.Tables) error {
	w := &writer{t, dir, make(map[string]string), make(map[string]bool)}
	return short(w.write())
}

// short is an error about a file without the operation: "PATH: no space left on device".
func short(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", of.Path, of.Err)
	}
	return err
}

// write writes all tables, then removes what earlier writings of the same runs have left (sweep). The rows of runs are read first, for the day of each run, and
// kept in memory, because Each can be called once for a table. The first cell of a row is the run.
func (w *writer) write() error {
	var runs [][][]byte
	at := slices.IndexFunc(records.Columns(RunsTable), func(c records.Column) bool { return c.Name == "time" })
	err := w.Each(RunsTable, func(cells [][]byte) error {
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
	for _, name := range Tables {
		each := func(f func(cells [][]byte) error) error { return w.Each(name, f) }
		if name == RunsTable {
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
		path := PathOf(w.dir, name, w.days[run], RunName(run))
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

// sweep removes the files of earlier writings of these runs that this writing has not replaced: a run that now begins on another day, or a table without rows.
func (w *writer) sweep() error {
	for _, name := range Tables {
		days, err := os.ReadDir(filepath.Join(w.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, day := range days {
			if !strings.HasPrefix(day.Name(), "day=") {
				continue
			}
			for run := range w.days {
				path := PathOf(w.dir, name, day.Name(), RunName(run))
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

// nodeOf is the type of a column in Parquet: texts with a dictionary, unless nearly each is unique.
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
	if strings.HasSuffix(c.Name, "_id") { // hardly any text comes twice
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
		parquet.KeyValueMetadata(VersionKey, strconv.Itoa(SchemaVersion)), parquet.CreatedBy("trainbridge", "0", ""))
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
