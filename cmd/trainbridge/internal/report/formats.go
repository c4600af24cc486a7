package report

import (
	"path/filepath"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/csv"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/document"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/html"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/perfetto"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/series"
)

// kind is a format of reports. To add a format, add a line to formats.
type kind struct {
	name   string
	ends   []string // the endings of the names of its files
	binary bool     // not for a terminal
	tables bool     // a file for each table, in a directory, unless --table names a table
	dir    bool     // files in a directory
	open   func(format.Request) format.Writer
}

const (
	textName = "text"
	htmlName = "html"
)

var formats = []kind{
	{name: textName, ends: []string{".txt"}, open: newText},
	{name: htmlName, ends: []string{".html", ".htm"}, binary: true, open: html.New},
	{name: "perfetto", ends: []string{".pftrace", ".perfetto-trace"}, binary: true, open: perfetto.Open},
	{name: "csv", ends: []string{".csv"}, tables: true, open: csv.Open},
	{name: "tfevents", dir: true, open: series.Open},
	{name: "parquet", dir: true}, // open: in the full build (formats_full.go)
	{name: "json", ends: []string{".json"}, open: document.Open},
}

// names lists the names of the formats.
func names() string {
	all := make([]string, len(formats))
	for i, f := range formats {
		all[i] = f.name
	}
	return strings.Join(all, ", ")
}

// named is the format of a name; nil: there is none.
func named(name string) *kind {
	for i := range formats {
		if formats[i].name == name {
			return &formats[i]
		}
	}
	return nil
}

// kindOf is the format by a file's name, else text.
func kindOf(file string) *kind {
	for i := range formats {
		for _, end := range formats[i].ends {
			if strings.HasSuffix(strings.ToLower(filepath.Base(file)), end) {
				return &formats[i]
			}
		}
	}
	return &formats[0]
}
