// Command semconv makes Go names, metric descriptors, the table of verdicts, the structs of internal/traces/view, docs/reference/semconv.md and tables of
// docs/reference from spans/registry, in the schema of OpenTelemetry's weaver. Annotations hold values without a place in the schema: the Go name, the unit of
// an attribute, the severity of a verdict.
//
//	go -C tools run ./semconv ..
package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var templates embed.FS

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: semconv <root of the repository>")
	}
	if err := generate(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func generate(root string) error {
	ds, err := read(filepath.Join(root, "spans/registry"))
	if err != nil {
		return err
	}
	t, err := template.New("").Funcs(template.FuncMap{
		"attributeTable": func(g *group) string { return attributeTable(ds, g) },
		"cell":           cell, "code": code, "comment": comment, "instrument": func(s string) string { return instruments[s] }, "key": key, "of": of,
		"join":  func(s []string) string { return strings.Join(s, "` `") },
		"quote": strconv.Quote, "refs": refs, "rooms": rooms, "sections": sections, "spanName": spanName,
		"text": sentences, "units": units, "values": values, "kinds": kinds, "verdicts": verdicts, "verdictTable": verdictTable,
		"views": func() ([]*view, error) { return views(ds) },
	}).ParseFS(templates, "*.tmpl")
	if err != nil {
		return err
	}
	for name, file := range map[string]string{
		"names.go": "spans/generated_names.go", "metrics.go": "spans/generated_metrics.go",
		"verdicts.go": "spans/generated_verdicts.go", "kinds.go": "internal/traces/view/generated_kinds.go",
		"views.go": "internal/traces/view/generated_views.go", "semconv.md": "docs/reference/semconv.md",
	} {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, name+".tmpl", ds); err != nil {
			return err
		}
		text := b.Bytes()
		if strings.HasSuffix(file, ".go") {
			text, err = format.Source(text)
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", file, err, b.Bytes())
			}
		}
		if err := write(filepath.Join(root, file), string(text)); err != nil {
			return err
		}
	}
	return pages(root, ds)
}

// instruments are the names in package spans of weaver's instruments.
var instruments = map[string]string{"counter": "Counter", "gauge": "Gauge", "histogram": "Histogram", "updowncounter": "UpDownCounter"}

func write(file, text string) error {
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // sources, for everyone
}

// comment writes text as lines of a Go comment, at most 120 columns wide.
func comment(text string) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(text) {
		if n == 0 || n+1+len([]rune(word)) > 120 {
			if n > 0 {
				b.WriteByte('\n')
			}
			b.WriteString("// " + word)
			n = 3 + len([]rune(word))
			continue
		}
		b.WriteString(" " + word)
		n += 1 + len([]rune(word))
	}
	return b.String()
}
