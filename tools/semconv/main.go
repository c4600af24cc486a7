// Command semconv makes Go names, metric descriptors, the table of verdicts, docs/semconv.md and the tables of READMEs from spans/registry, which is in the
// schema of OpenTelemetry's weaver. Annotations tell what the schema has no place for: the Go name, the unit of an attribute, the severity of a verdict.
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
	t, err := template.New("").Funcs(template.FuncMap{"comment": comment, "quote": strconv.Quote, "sections": sections}).ParseFS(templates, "*.tmpl")
	if err != nil {
		return err
	}
	for _, name := range []string{"names"} {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, name+".go.tmpl", ds); err != nil {
			return err
		}
		text, err := format.Source(b.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, b.Bytes())
		}
		if err := os.WriteFile(filepath.Join(root, "spans", "generated_"+name+".go"), text, 0o600); err != nil {
			return err
		}
	}
	return nil
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
