package step

import (
	"math"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// tokens follows the token counts of a writer's records, and derives the tokens of each record's own steps. Some logs count since the run began
// (record.Counted), some have a number of either meaning (record.EitherTokens), which tokens learns from the numbers.
type tokens struct {
	// Last is the count of the record before: of its steps, or since the run began; 0: none.
	Last    float64 `json:"last,omitzero"`
	At      int64   `json:"at,omitzero"`      // iteration of the record with Last
	Covered int64   `json:"covered,omitzero"` // its number of steps; 0: unknown
	Attempt int64   `json:"attempt,omitzero"` // its attempt
	Sense   sense   `json:"sense,omitzero"`   // what an ambiguous number means
	Grew    int     `json:"grew,omitzero"`    // times in a row that an ambiguous number was larger than the one before
}

// sense is the meaning of a token count.
type sense uint8

const (
	unsure     sense = iota
	ofRecord         // of the record's steps
	sinceStart       // since the run began

	mostGrown = 8   // counts per step do not grow this often in a row
	early     = 1.5 // ratio of the positions of two records in the run from which counts per step and counts since the start differ clearly
)

// count sets record.Tokens, the tokens of the record's steps, or leaves the field unset if they are unknown. A number of unknown meaning (record.EitherTokens)
// goes to the field of the meaning found, else into an extra.
func (k *tokens) count(rec *record.Record, it *placed, attempt int64) {
	number, means := rec.Get(record.ConsumedTokens), sinceStart // the number to count by, and its meaning
	either := math.NaN()                                        // the ambiguous number
	if rec.EitherTokens {
		either = rec.Get(record.Tokens)
		rec.Unset(record.Tokens)
	}
	if math.IsNaN(number) { // the log has no clear number
		if attempt == k.Attempt { // numbers of two attempts do not compare: both meanings begin anew
			k.learn(either, it)
		}
		number, means = either, k.Sense
	}
	// The record covers all steps of the run: both meanings are the same number.
	fromStart := it.hasIteration && it.covered > 0 && it.covered == it.iteration
	before := *k
	if number > 0 {
		k.Last, k.At, k.Covered, k.Attempt = number, it.iteration, it.covered, attempt
	}
	switch {
	case rec.Has(record.Tokens) || !(number > 0) || math.IsInf(number, 0): // stated as such, or nothing to count by
	case means == ofRecord, fromStart && before.Last == 0:
		rec.Set(record.Tokens, number)
	case means == sinceStart && before.Last > 0 && number > before.Last && attempt == before.Attempt:
		rec.Set(record.Tokens, number-before.Last)
	}
	// No number of the log is lost.
	switch {
	case math.IsNaN(either):
	case number == either && means == sinceStart:
		rec.Set(record.ConsumedTokens, number)
	case number != either || !rec.Has(record.Tokens): // not counted by, or of no known meaning
		rec.AddExtra(record.Extra{Name: tokensName, Value: either})
	}
}

// tokensName is the name of the extra for a number of unknown meaning.
var tokensName = []byte("tokens")

// learn finds the meaning (k.Sense) of a log's token counts by the next number, unless the meaning is known. A count that does not grow is per step. Early in a
// run two records of equally many steps decide: counts per step are about equal, counts since the start are as far apart as the iterations. Else a count that
// grew mostGrown times in a row is since the start.
func (k *tokens) learn(number float64, it *placed) {
	if k.Sense != unsure || k.Last == 0 {
		return
	}
	apart := float64(it.iteration) / float64(k.At)
	switch {
	case number <= k.Last:
		k.Sense = ofRecord
	case k.At > 0 && k.Covered > 0 && k.Covered == it.covered && apart >= early:
		k.Sense = ofRecord
		// Nearer to growth in proportion to the iterations than to no growth. Right between is a count since iteration 0, of 1 and 2.
		if math.Abs(number-k.Last*apart) <= number-k.Last {
			k.Sense = sinceStart
		}
	default:
		if k.Grew++; k.Grew == mostGrown {
			k.Sense = sinceStart
		}
	}
}
