package trainlogreceiver

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// Programs' ways to print their steps: each style of testdata/prints.styles, with the meaning of its numbers.
func TestPrints(t *testing.T) {
	text, err := os.ReadFile("testdata/prints.styles")
	require.NoError(t, err)
	for style := range strings.SplitSeq(string(text), "\n== ") {
		name, style, ok := strings.Cut(style, "\n")
		log, truth, has := strings.Cut(style, "\n--\n")
		if !ok || !has {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := read(t, nil, write(t, name+".log", "Loading dataset from ./data\nModel has 12,345,678 parameters\n"+log+"\nTraining finished.\n"))
			steps := r.All(spans.SpanStep)
			want := strings.Split(strings.TrimSpace(truth), "\n")
			require.Len(t, steps, len(want))
			for i, row := range want {
				words := strings.Fields(row)
				assert.Equal(t, words[0], attr(steps[i], spans.AttrIteration))
				if words[1] != "-" {
					within(t, words[1], attr(steps[i], spans.AttrLoss), 0.006)
				}
				if words[2] != "-" && i > 0 { // some times are since the line before
					within(t, words[2], strconv.FormatFloat(filereceivertest.Took(steps[i]), 'g', -1, 64), 0.006)
				}
			}
		})
	}
}

// within compares numbers: styles print about three digits.
func within(t *testing.T, want, got string, by float64) {
	t.Helper()
	w, err := strconv.ParseFloat(want, 64)
	require.NoError(t, err)
	g, err := strconv.ParseFloat(got, 64)
	require.NoError(t, err)
	assert.InDelta(t, w, g, math.Max(by, 0.03*w))
}
