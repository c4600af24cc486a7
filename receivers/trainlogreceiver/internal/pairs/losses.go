package pairs

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// setNamedLosses sets the losses with names unknown to objects, by the words of the name: "avg_train_loss", "loss_val", "Val. Loss". Of several losses of
// training, or of an evaluation, the first counts.
func setNamedLosses(rec *record.Record, pairs []pair) {
	other := -1 // index of the first loss of one or two words, without a data set in the name
	for i := range pairs {
		q := &pairs[i]
		if !q.about.Loss || !q.isNumber {
			continue
		}
		training, evaluation, words := dataSetOf(q.name)
		switch {
		case evaluation && !rec.Has(record.ValidationLoss):
			rec.Set(record.ValidationLoss, q.number)
		case training && !rec.Has(record.Loss):
			rec.Set(record.Loss, q.number)
		case !training && !evaluation && words <= 2 && other < 0:
			other = i
		}
	}
	// Beside the loss of an evaluation, "loss" is of training, even if the configuration makes the name a gauge.
	if !rec.Has(record.Loss) && rec.Has(record.ValidationLoss) && other >= 0 && bytes.EqualFold(pairs[other].name, []byte("loss")) {
		rec.Set(record.Loss, pairs[other].number)
	}
}

// dataSetOf reports whether the words of a name (runs of letters) name the data of training or of an evaluation ("loss_val"), and returns the number of words.
func dataSetOf(name []byte) (training, evaluation bool, words int) {
	for from := 0; from < len(name); {
		to := from
		for to < len(name) && ascii.IsLetter(name[to]) {
			to++
		}
		if to > from {
			words++
			var out [12]byte
			switch string(lowered(out[:0], name[from:min(to, from+len(out))])) {
			case "train", "training", "trn", "tr":
				training = true
			case "val", "valid", "validation", "eval", "test", "dev":
				evaluation = true
			}
		}
		from = to + 1
	}
	return training, evaluation, words
}
