package trainlogreceiver

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
)

// scalarsOf reads the content of the decoders' fixtures, by TensorBoard's loader or W&B's SDK.
func scalarsOf(t *testing.T, path string, packed bool, into any) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	d := json.NewDecoder(f)
	if packed {
		z, err := gzip.NewReader(f)
		require.NoError(t, err)
		d = json.NewDecoder(z)
	}
	require.NoError(t, d.Decode(into))
}

// The losses of a TensorBoard file and their steps equal those of TensorBoard.
func TestTensorBoard(t *testing.T) {
	var want struct{ Scalars [][4]any }
	scalarsOf(t, "../../internal/tfevents/testdata/lightning.json", false, &want)
	b := read(t, nil, fixture(t, "trackers/lightning.tfevents"))
	losses := make(map[string]float64)
	for _, s := range b.All(spans.SpanStep) {
		if loss, err := strconv.ParseFloat(attr(s, spans.AttrLoss), 64); err == nil {
			losses[attr(s, spans.AttrIteration)] = loss
		}
	}
	n := 0
	for _, s := range want.Scalars {
		if s[0] != "train_loss_step" {
			continue
		}
		n++
		value, err := strconv.ParseFloat(s[3].(string), 64)
		require.NoError(t, err)
		assert.InDelta(t, value, losses[strconv.Itoa(int(s[1].(float64)))], 1e-8)
	}
	assert.Len(t, losses, n)
	assert.Empty(t, b.Counts.Rejected)
}

// The losses of a W&B file have the steps of the trainer, not those of W&B.
func TestWandB(t *testing.T) {
	var want struct {
		Records []struct {
			History *struct{ Items [][2]string }
		}
	}
	scalarsOf(t, "../../internal/wandb/testdata/hf-0.31.0.json.gz", true, &want)
	b := read(t, nil, fixture(t, "trackers/hf.wandb"))
	got := make(map[string]string)
	for _, s := range b.All(spans.SpanStep) {
		got[attr(s, spans.AttrIteration)] = attr(s, spans.AttrLoss)
	}
	n := 0
	for _, r := range want.Records {
		if r.History == nil {
			continue
		}
		items := make(map[string]string)
		for _, item := range r.History.Items {
			items[item[0]] = item[1]
		}
		if loss := items["train/loss"]; loss != "" {
			n++
			assert.Equal(t, loss, got[items["train/global_step"]])
		}
	}
	assert.Len(t, got, n)
	assert.Empty(t, b.Counts.Rejected)
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}
