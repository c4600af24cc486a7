package object

import (
	"bytes"
	"strings"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// measures are words in the names of epoch means.
var measures = []string{"loss", "acc", "error", "f1", "auc", "iou", "ppl", "perplexity", "score", "reward"}

// rowFlags returns what the name of a value says of the row:
//   - epochal: the value is a mean over an epoch, such as "train_loss_epoch". Lightning writes the means in a row of their own (lightning/pytorch,
//     trainer/connectors/logger_connector/result.py: forked_name).
//   - momentary: the value is the loss of a step. Each loss without "_epoch" counts as such, except an evaluation's.
//   - 0: neither.
//
// known are the flags that the name has already.
func rowFlags(name string, known flags) flags {
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, "_epoch"):
		for _, m := range measures {
			if strings.Contains(name, m) {
				return epochal
			}
		}
	case isLoss(name) && known&evaluation == 0:
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
