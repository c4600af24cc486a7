package lake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/compare"
	"github.com/trainbridge/trainbridge/internal/lake"
	"github.com/trainbridge/trainbridge/internal/outfile"
)

// mostFile bounds a file of the table runs, By: a row takes some 20 kB.
const mostFile = 64 << 20

var (
	errVersion = errors.New("written by a later trainbridge")
	errRow     = errors.New("not a table of runs")
	errLarge   = errors.New("too large for a run")
)

// History reads the run of an id, the newest if id is "", and all runs that began in a time before the run's begin; last 0: all. left are the files that
// cannot be read, with the reason. Without such a run in the lake, run.Run is "", and no error is returned.
func History(dir, id string, last time.Duration) (run compare.Past, before []compare.Past, left []error, err error) {
	days, err := daysOf(dir)
	if err != nil {
		return run, nil, nil, err
	}
	by := make(map[string][]compare.Past) // by day
	read := func(day string) {
		for _, path := range runsOf(dir, day) {
			rows, err := readRuns(path)
			if err != nil {
				left = append(left, fmt.Errorf("%s: %w", path, err))
			}
			by[day] = append(by[day], rows...)
		}
	}
	at := len(days) - 1 // from the newest day back to the day of the run, and one day further at the end of the loop
	for ; at >= 0 && run.Run == ""; at-- {
		if _, err := os.Stat(lake.PathOf(dir, lake.RunsTable, days[at], lake.RunName(id))); id != "" && err != nil { // the run of the id did not begin on the day
			continue
		}
		read(days[at])
		for _, p := range by[days[at]] {
			if id == "" && (run.Run == "" || p.Start.After(run.Start)) || id != "" && p.Run == id {
				run = p
			}
		}
	}
	if run.Run == "" {
		return run, nil, left, nil
	}
	for _, day := range days[:at+2] { // up to the day of the run
		end, err := time.Parse("day="+time.DateOnly, day) // midnight, a day before the day's end
		// A day that ended before the wanted time is not read.
		if err != nil || last > 0 && end.AddDate(0, 0, 1).Before(run.Start.Add(-last)) {
			continue
		}
		if by[day] == nil {
			read(day)
		}
		for _, p := range by[day] {
			if p.Run != run.Run && p.Start.Before(run.Start) && (last == 0 || p.Start.After(run.Start.Add(-last))) {
				before = append(before, p)
			}
		}
	}
	return run, before, left, nil
}

// daysOf are the partitions of the table runs, in order.
func daysOf(dir string) (days []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, lake.RunsTable))
	if err != nil {
		return nil, fmt.Errorf("%s is no lake: %w", dir, outfile.Reason(err))
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "day=") {
			days = append(days, e.Name())
		}
	}
	slices.Sort(days)
	return days, nil
}

// runsOf are the files of a day.
func runsOf(dir, day string) (paths []string) {
	entries, _ := os.ReadDir(filepath.Join(dir, lake.RunsTable, day))
	for _, e := range entries {
		path := filepath.Join(dir, lake.RunsTable, day, e.Name(), lake.FileName)
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// readRuns reads the rows of a file of the table runs. A file of an earlier version lacks columns, one of a later version is an error.
func readRuns(path string) (rows []compare.Past, err error) {
	defer func() { // parquet-go may panic on a damaged file
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errRow, p)
		}
	}()
	fi, err := os.Stat(path)
	if err != nil {
		return nil, outfile.Reason(err)
	}
	if fi.Size() > mostFile {
		return nil, errLarge
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, outfile.Reason(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, err
	}
	version, _ := file.Lookup(lake.VersionKey)
	switch n, err := strconv.Atoi(version); {
	case err != nil:
		return nil, errRow
	case n > lake.SchemaVersion:
		return nil, fmt.Errorf("schema_version %d: %w", n, errVersion)
	}
	columns := file.Schema().Columns()
	for _, group := range file.RowGroups() {
		more, err := readGroup(group, columns)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// readGroup reads the rows of a row group; columns are the paths of the schema's columns.
func readGroup(group parquet.RowGroup, columns [][]string) (rows []compare.Past, err error) {
	in := group.Rows()
	defer func() { err = errors.Join(err, in.Close()) }()
	buf := make([]parquet.Row, 16) // rows at a time
	for {
		n, err := in.ReadRows(buf)
		for _, row := range buf[:n] {
			rows = append(rows, pastOf(row, columns))
		}
		switch {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.ErrNoProgress
		}
	}
}

// pastOf makes a run of a row: texts, and numbers as float64. NULL cells are left out.
func pastOf(row parquet.Row, columns [][]string) compare.Past {
	p := compare.Past{Texts: make(map[string]string), Numbers: make(map[string]float64)}
	for _, v := range row {
		if v.Column() >= len(columns) || v.IsNull() {
			continue
		}
		name := columns[v.Column()][0]
		switch v.Kind() {
		case parquet.ByteArray:
			p.Texts[name] = string(v.ByteArray())
		case parquet.Double:
			p.Numbers[name] = v.Double()
		case parquet.Int64:
			p.Numbers[name] = float64(v.Int64())
			if name == "time" {
				p.Start = time.UnixMicro(v.Int64()).UTC()
			}
		default:
		}
	}
	p.Run = p.Texts["run"]
	return p
}
