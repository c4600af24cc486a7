package trainlogreceiver

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// The table of docs/reference/trainers.md: each trainer in it has a fixture, read by its format, configured or detected.
func TestTrainers(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "trainers.md"))
	require.NoError(t, err)
	fixturesOf := regexp.MustCompile(`\]\((?:\.\./)+receivers/trainlogreceiver/testdata/([^)]+)\)`)
	rows, unread := 0, 0
	named := map[string]bool{}
	for line := range strings.SplitSeq(string(doc), "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 5 || strings.HasPrefix(line, "| Trainer") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		format := strings.Trim(cells[2], "`")
		files := fixturesOf.FindAllStringSubmatch(line, -1)
		if format == "not read" {
			unread++
			assert.Empty(t, files, line)
			assert.Greater(t, len(cells[3]), 40, "the reason: %s", line)
			continue
		}
		if format == "flagscale" {
			continue // another receiver's
		}
		require.NotEmpty(t, files, line)
		for _, f := range files {
			named[f[1]] = true
			b := read(t, func(c *Config) { c.Format = format }, fixture(t, f[1]))
			assert.Positive(t, b.Counts.Records, line)
			if strings.HasPrefix(f[1], "trainers/") { // hf.log has a truncated line
				assert.Empty(t, b.Counts.Rejected, line)
			}
			assert.Equal(t, b.Counts.Records, read(t, nil, fixture(t, f[1])).Counts.Records, "found out: %s", line)
		}
	}
	assert.GreaterOrEqual(t, rows-unread, 21)
	for _, name := range fixtures {
		if strings.HasPrefix(name, "trainers/") {
			assert.True(t, named[name], "%s is in no row", name)
		}
	}
}

// The course of the recorded runs, by their other files and the scripts in tools/record-trainers, not by trainbridge's parsers.
func TestRecordings(t *testing.T) {
	losses := func(name string) (iterations []string, loss []float64) {
		for _, s := range filereceivertest.ByEnd(read(t, nil, fixture(t, name)).All(spans.SpanStep)) {
			v, err := strconv.ParseFloat(attr(s, spans.AttrLoss), 64)
			require.NoError(t, err)
			iterations, loss = append(iterations, attr(s, spans.AttrIteration)), append(loss, v)
		}
		return iterations, loss
	}
	// The bar shows the loss of each batch, counted from 1, with three digits; the table the loss of every second batch, counted from 0.
	batches, drawn := losses("trainers/lightning.log")
	rows, exact := losses("trainers/lightning_metrics.csv")
	require.Len(t, batches, 24)
	require.Len(t, rows, 12)
	for i, at := range rows {
		n, err := strconv.Atoi(at)
		require.NoError(t, err)
		assert.Equal(t, strconv.Itoa(n+1), batches[n])
		assert.InEpsilon(t, exact[i], drawn[n], 0.005, "batch %d", n)
	}
	// The same model on the same batches in the same order, by another trainer: the first epoch has the same losses.
	_, composed := losses("trainers/composer_file.txt")
	require.Len(t, composed, 8)
	for i, loss := range composed {
		assert.InEpsilon(t, drawn[i], loss, 0.005)
	}
	at, shown := losses("trainers/composer_bar.log")
	require.Len(t, shown, 16)
	assert.Equal(t, "1", at[0])
	assert.Equal(t, "16", at[15])
	for i, loss := range shown {
		assert.InEpsilon(t, drawn[i], loss, 0.005)
	}
	assert.Equal(t, composed, shown[:8])
	// LitGPT's lines and its table.
	_, printed := losses("trainers/litgpt.log")
	_, exact = losses("trainers/litgpt_metrics.csv")
	require.Len(t, printed, 6)
	require.Len(t, exact, 6)
	for i := range exact {
		assert.InDelta(t, exact[i], printed[i], 0.0005)
	}
	// openrlhf_bar.py: 2/step.
	at, drawn = losses("trainers/openrlhf.log")
	require.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7", "8"}, at)
	for i, loss := range drawn {
		assert.InDelta(t, 2/float64(i+1), loss, 0.0005)
	}
	// torchtune_loggers.py: 2.5 × 0.95ⁿ.
	_, tuned := losses("trainers/torchtune.txt")
	require.Len(t, tuned, 10)
	for i, loss := range tuned[:8] {
		assert.InDelta(t, 2.5*math.Pow(0.95, float64(i+1)), loss, 1e-12)
	}
	// nanogpt.sh interrupts the job after iteration 16 and resumes at 10.
	at, _ = losses("trainers/nanogpt.log")
	assert.Equal(t, []string{"0", "2", "4", "6", "8", "10", "12", "14", "16", "10", "12", "14", "16", "18", "20", "22"}, at)
}

// CSVLogger rewrites its file for a metric without a column. Rows already read come again, in other places of other lines: they are the same spans, not new
// ones. CSVLogger buffers rows, so the time of reading is not the duration of a step.
func TestTableIsWrittenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.csv")
	s := started(t, live(path))
	appendTo(t, path, "epoch,lr,step,train_loss\r\n0,0.1,1,\r\n0,,1,2.5\r\n0,0.1,3,\r\n0,,3,2.25\r\n")
	first := s.next(t, 2)
	assert.Equal(t, []string{"2.5", "2.25"}, attrs(first, spans.AttrLoss))
	assert.Equal(t, []string{"0.1", "0.1"}, attrs(first, spans.AttrLearningRate), "rows of one step are one record")
	whole := "epoch,lr,step,train_loss,val_loss\r\n0,0.1,1,,\r\n0,,1,2.5,\r\n0,0.1,3,,\r\n0,,3,2.25,\r\n0,,3,,2.75\r\n0,0.1,5,,\r\n0,,5,2,\r\n"
	require.NoError(t, os.WriteFile(path, []byte(whole), 0o600))
	then := s.next(t, 1)
	assert.Equal(t, []string{"5"}, attrs(then, spans.AttrIteration))
	assert.True(t, math.IsNaN(filereceivertest.Took(then[0])), "not the time between two writings")
	assert.Equal(t, []string{"2"}, attrs(then, spans.AttrStepsCovered))

	ids := map[pcommon.SpanID]bool{}
	again := read(t, nil, write(t, "metrics.csv", whole))
	for _, span := range again.All(spans.SpanStep) {
		ids[span.SpanID()] = true
	}
	require.Len(t, ids, 3)
	for _, span := range append(first, then...) {
		assert.True(t, ids[span.SpanID()], "the ids are those of the rows")
	}
	require.Len(t, again.All(spans.SpanEvaluation), 1)
}

// The same table read twice by one receiver, as after a rewrite, counts once; and a new row of an earlier step is not lost.
func TestRowsOfOneStep(t *testing.T) {
	b := read(t, nil, write(t, "metrics.csv", "step,lr,loss", "1,0.1,", "1,,2.5", "2,,2.25", "step,lr,loss,mem", "1,0.1,,", "1,,2.5,", "1,,,8", "2,,2.25,"))
	steps := b.All(spans.SpanStep)
	assert.Equal(t, []string{"1", "2", "1"}, attrs(steps, spans.AttrIteration))
	assert.Equal(t, []string{"2.5", "2.25", ""}, attrs(steps, spans.AttrLoss))
	assert.Equal(t, []string{"", "", "8"}, attrs(steps, spans.AttrTrainFieldPrefix+"mem"))
	assert.Equal(t, map[string]int64{"header": 2, "duplicate": 3}, b.Counts.Ignored)
}
