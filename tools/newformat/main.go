// Command newformat writes the skeleton of a format of train_log: parser, tests, fixture, generator, and the entries in lists and docs. TestFormats passes with
// the skeleton, whose format is invented; each TODO stands where the real format belongs.
//
//	go -C tools run ./newformat ROOT NAME
package main

import (
	"errors"
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const receiver = "receivers/trainlogreceiver/"

// entry is text to add to a file before or after an anchor.
type entry struct {
	file, before, after, text string
}

// entries of a format; NAME stands for the name.
var entries = []entry{
	{file: receiver + "formats.go", before: "\t{name: \"pattern\",", text: "\t{name: \"NAME\", open: plain(NAME.Parse)},\n"},
	{
		file: receiver + "formats.go", before: "\t\"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object\"\n",
		text: "\t\"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/NAME\"\n",
	},
	{file: receiver + "receiver_test.go", after: "var fixtures = []string{\n", text: "\t\"trainers/NAME.log\",\n"},
	{file: receiver + "receiver_test.go", before: "\"megatron\": {}, \"torchtitan\": {}", text: "\"NAME\": {}, "},
	{file: receiver + "README.md", after: "`torchtitan` ", text: "`NAME` "},
	{
		file: "docs/reference/trainers.md", before: "| torchtitan | standard output |",
		text: "| NAME | standard output | `NAME` | TODO: its fields | TODO: [NAME.log](../../" + receiver + "testdata/trainers/NAME.log) |\n",
	},
	{file: "docs/trainers.md", before: "| torchtitan |", text: "| NAME | standard output | TODO: its fields |\n"},
	{
		file: "test/gen/train/command.go", before: "\t\tnewCommand(FormatTorchTitan,",
		text: "\t\tnewCommand(\"NAME\", \"Generate the standard output of a NAME training\", \"  gen NAME --out NAME.log\"),\n",
	},
	{file: "test/gen/train/trainers.go", after: "var trainers = map[string]*trainer{\n", text: generator},
}

const (
	sample = "NAME step=12 loss=2.5 seconds=1.25"

	generator = `	// TODO: the print statements of NAME, by repository, file and commit.
	"NAME": {
		step: []textLine{{cells: []cell{
			{before: "NAME step=", attr: spans.AttrIteration, print: whole, value: iteration},
			{before: " loss=", attr: spans.AttrLoss, print: fixed(4), value: loss},
			{before: " seconds=", attr: spans.AttrStepDuration, print: fixed(3), value: seconds},
		}}},
	},
`

	parser = `// Package NAME reads the lines of NAME (TODO: repository, file and commit of the print statements):
//
//	` + sample + `
package NAME

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is the record's Source.
const Source = "NAME"

var mark = []byte("NAME ")

// Parse fills rec with the record in b; rec must be empty. found false and no reason: b is a line of another format. A reason: the line is malformed.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	fields, ok := bytes.CutPrefix(b, mark)
	if !ok {
		return false, ""
	}
	for field := range bytes.FieldsSeq(fields) {
		key, text, _ := bytes.Cut(field, []byte("="))
		value, ok := decimal.Float(text)
		if !ok {
			continue
		}
		switch string(key) { // TODO: the fields of NAME
		case "step":
			rec.Set(record.Iteration, value)
		case "loss":
			rec.Set(record.Loss, value)
		case "seconds":
			rec.Set(record.Duration, value)
		}
	}
	if !rec.Has(record.Iteration) {
		rec.Reset()
		return false, "no_step"
	}
	rec.Source, rec.Kind = Source, record.Step
	return true, ""
}
`

	tests = `package NAME_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/NAME"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: NAME.Source, Parse: NAME.Parse}

const step = "` + sample + `" // TODO: real lines

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		step:           "step iteration=12 duration=1.25 loss=2.5",
		"NAME loss=1":  "!no_step",
		"another line": "",
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

func FuzzParse(f *testing.F) { parser.Fuzz(f, []string{step, "NAME step=x", ""}) }

func BenchmarkParse(b *testing.B) {
	parser.Bench(b, map[string]string{"step": step, "other": "INFO saving a checkpoint"})
}
`
)

var goodName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("newformat: make new-format NAME=mylog")
	}
	written, err := write(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal("newformat: ", err)
	}
	for _, path := range written {
		fmt.Println(path)
	}
	fmt.Println("Then: go test ./receivers/trainlogreceiver -run TestGolden -update; go test ./cmd/trainbridge -run TestFormats; grep for TODO.")
}

// write adds the files and entries of a format below root. Nothing is written if one of them has no place.
func write(root, name string) (paths []string, err error) {
	if !goodName.MatchString(name) {
		return nil, fmt.Errorf("NAME=%q: a Go package has lower-case letters and digits, such as mylog", name)
	}
	named := func(text string) string { return strings.ReplaceAll(text, "NAME", name) }
	texts := map[string]string{
		receiver + "internal/" + name + "/" + name + ".go":      named(parser),
		receiver + "internal/" + name + "/" + name + "_test.go": named(tests),
		receiver + "testdata/trainers/" + name + ".log":         named(sample + "\n" + strings.Replace(sample, "12", "13", 1) + "\n"),
	}
	for path := range texts {
		if _, err := os.Stat(filepath.Join(root, path)); !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s is there already", path)
		}
	}
	for _, e := range entries {
		text := texts[e.file]
		if text == "" {
			b, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		at := strings.Index(text, e.before+e.after)
		if at < 0 {
			return nil, fmt.Errorf("%s has no line %q", e.file, e.before+e.after)
		}
		at += len(e.after)
		texts[e.file] = text[:at] + named(e.text) + text[at:]
	}
	for path, text := range texts {
		b := []byte(text)
		if strings.HasSuffix(path, ".go") {
			if b, err = format.Source(b); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths, nil
}
