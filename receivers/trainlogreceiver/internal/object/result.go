package object

import (
	"bytes"
	"strings"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// measures are words of names that an epoch may have a mean of.
var measures = []string{"loss", "acc", "error", "f1", "auc", "iou", "ppl", "perplexity", "score", "reward"}

// about finds out what a name says of the row: "train_loss_epoch" is Lightning's for the mean over an epoch, which stands in a row of its own
// (lightning/pytorch, trainer/connectors/logger_connector/result.py: forked_name), beside other numbers of the epoch; a loss of another name is of a step.
func about(name string, of flags) flags {
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, "_epoch"):
		for _, m := range measures {
			if strings.Contains(name, m) {
				return epochal
			}
		}
	case strings.Contains(name, "loss") && of&evaluation == 0:
		return momentary
	}
	return 0
}

// splits are the names of fields that say which data a row is about, and what they say of data that is not trained on.
var (
	splits  = [][]byte{[]byte("split"), []byte("phase"), []byte("mode"), []byte("stage"), []byte("subset"), []byte("event")}
	unseens = [][]byte{[]byte("val"), []byte("valid"), []byte("validation"), []byte("eval"), []byte("evaluation"), []byte("test"), []byte("dev")}
)

// isUnseen says whether a text says that the row is about data that is not trained on.
func isUnseen(name, text []byte) bool { return among(splits, name) && among(unseens, text) }

func among(words [][]byte, text []byte) bool {
	for _, w := range words {
		if bytes.EqualFold(w, text) {
			return true
		}
	}
	return false
}

// IsResult says whether the record is about an epoch or an evaluation, whatever else stands in the row: data that is not trained on; means over an epoch and no
// number of a step; or the losses of training and validation of an epoch, without a step.
func (p *Parser) IsResult() bool {
	switch {
	case p.flags&unseen != 0:
		return true
	case p.flags&(epochal|momentary) == epochal:
		return true
	}
	return p.flags&(wholeEpoch|evaluation) == wholeEpoch|evaluation && !p.rec.Has(record.Iteration)
}
