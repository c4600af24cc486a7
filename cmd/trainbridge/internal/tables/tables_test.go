package tables

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

type animal struct {
	name   string
	weight float64
}

var animals = []Column[animal]{
	text("animal", "动物", "animal", func(a animal) string { return a.name }),
	number("weight", "体重", "weight_bytes", human.Bytes, func(a animal) float64 { return a.weight }),
	number("speed", "速度", "", human.Rate, func(animal) float64 { return math.NaN() }),
	number("", "", "half", nil, func(a animal) float64 { return a.weight / 2 }),
	{english: "share", chinese: "占比", write: human.Percent, of: func(animal) float64 { return 0.25 }, judge: func(animal) string { return share(0.25, 1) }},
}

// A column is in the table in both languages and in the document, unless all rows lack its value.
func TestColumns(t *testing.T) {
	rows := []animal{{"cat", 2048}, {"d\x1bg", math.NaN()}}
	got := tableOf(animals, rows, false)
	assert.Equal(t, []string{"animal", "weight", "share"}, got.Head)
	assert.Equal(t, []bool{true, false, false}, got.Left)
	var said [][]string
	for _, row := range got.Rows {
		for _, c := range row {
			said = append(said, []string{c.Text, c.Severity, human.Digits(c.Value)})
		}
	}
	assert.Equal(t, [][]string{
		{"cat", "", "-"}, {"2 KiB", "", "2,048"}, {"25%", spans.SeverityWarning, "0.25"}, {"d?g", "", "-"}, {"-", "", "-"}, {"25%", spans.SeverityWarning, "0.25"},
	}, said)
	assert.Equal(t, []string{"动物", "体重", "占比"}, tableOf(animals, rows, true).Head)
	document, err := json.Marshal(objects(animals, rows, func(_ animal, o *Object) { o.Add("more", []string{}) }))
	require.NoError(t, err)
	assert.JSONEq(t, `[{"animal":"cat","weight_bytes":2048,"half":1024,"more":[]},{"animal":"d?g","more":[]}]`, string(document))
	assert.Equal(t, `"animal", "weight_bytes", "half", "more"`, keys(animals, `"more"`))

	var w strings.Builder
	got.Write(&w, 40, func(severity, text string) string { return strings.ToUpper(severity[:min(1, len(severity))]) + text })
	assert.Equal(t, "Hanimal  Hweight  Hshare\ncat      2 KiB    W25%\nd?g          -    W25%\n", w.String())
	w.Reset()
	got.Write(&w, 14, func(_, text string) string { return text })
	assert.Equal(t, "animal weight\ncat     2 KiB\nd?g         -\nanimal share\ncat      25%\nd?g      25%\n", w.String())
}

func named[R any](t *testing.T, columns []Column[R]) {
	t.Helper()
	for _, c := range columns {
		assert.Equal(t, c.english == "", c.chinese == "", c.english)
		assert.True(t, c.english != "" || c.key != "", "it is somewhere")
	}
}

func TestNames(t *testing.T) {
	named(t, parts)
	named(t, collectives)
	named(t, functions)
	named(t, operations(false))
	named(t, statedColumns)
	named(t, timedColumns)
	named(t, logs)
	named(t, passes)
	named(t, methods)
	named(t, gpus)
	named(t, ranks)
	named(t, links("ranks", "rank "))
	assert.Len(t, figures, int(digest.Figures), "each figure of training logs is in the table")
	for _, of := range []string{spans.WindowStep, spans.WindowBatch, spans.WindowPass, "other"} {
		one, several := Window(of, false)
		assert.Equal(t, "2 "+several, human.Plural(2, one))
	}
}
