package object

import (
	"bytes"
	"strings"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// measures are words in the names of epoch means.
var measures = []string{"loss", "acc", "error", "f1", "auc", "iou", "ppl", "perplexity", "score", "reward"}

// rowFlags returns the flags of a row that follow from a name: "train_loss_epoch" is Lightning's mean over an epoch, in a separate row (lightning/pytorch,
// trainer/connectors/logger_connector/result.py: forked_name) with other numbers of the epoch (epochal); a loss of another name, unless of an evaluation, is of
// a step (momentary). 0: neither. of are the flags that the name has already.
func rowFlags(name string, of flags) flags {
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, "_epoch"):
		for _, m := range measures {
			if strings.Contains(name, m) {
				return epochal
			}
		}
	case isLoss(name) && of&evaluation == 0:
		return momentary
	}
	return 0
}

// splits are the names of fields for the row's data set, and unseens their values for held-out data.
var (
	splits  = [][]byte{[]byte("split"), []byte("phase"), []byte("mode"), []byte("stage"), []byte("subset"), []byte("event")}
	unseens = [][]byte{[]byte("val"), []byte("valid"), []byte("validation"), []byte("eval"), []byte("evaluation"), []byte("test"), []byte("dev")}
)

// isUnseen reports whether a text marks the row's data as held-out.
func isUnseen(name, text []byte) bool { return isOneOf(splits, name) && isOneOf(unseens, text) }

// isOneOf reports whether a text is one of the words, without regard to case.
func isOneOf(words [][]byte, text []byte) bool {
	for _, w := range words {
		if bytes.EqualFold(w, text) {
			return true
		}
	}
	return false
}

// IsResult reports whether the record is about an epoch or an evaluation, whatever else the row has: held-out data; means over an epoch without the loss of a
// step; or a result beside the whole number of an epoch, without the number of a step.
func (p *Parser) IsResult() bool {
	switch {
	case p.flags&unseen != 0:
		return true
	case p.flags&(epochal|momentary) == epochal:
		return true
	}
	return p.flags&(wholeEpoch|evaluation) == wholeEpoch|evaluation && !p.rec.Has(record.Iteration)
}
