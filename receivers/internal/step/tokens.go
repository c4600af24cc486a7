package step

import (
	"math"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// tokens follows the token counts of a rank's records, and derives the tokens of each record's own steps.
type tokens struct {
	// Last is the count of the record before: of its steps, or since the run began; 0: none.
	Last    float64 `json:"last,omitzero"`
	At      int64   `json:"at,omitzero"`      // iteration of the record with Last
	Covered int64   `json:"covered,omitzero"` // its number of steps; 0: unknown
	Attempt int64   `json:"attempt,omitzero"`
	Sense   sense   `json:"sense,omitzero"`
	Grew    int     `json:"grew,omitzero"` // times in a row that an ambiguous number was larger than the one before
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

// count sets the tokens of a record's steps, or leaves them unset if unknown.
func (k *tokens) count(rec *record.Record, it *placed, attempt int64) {
	v, means := rec.Get(record.ConsumedTokens), sinceStart
	either := math.NaN()
	if rec.EitherTokens {
		either = rec.Get(record.Tokens)
		rec.Unset(record.Tokens)
	}
	if math.IsNaN(v) {
		k.learn(either, it)
		v, means = either, k.Sense
	}
	fromStart := it.hasIteration && it.covered > 0 && it.covered == it.iteration // then both are the same
	before := *k
	if v > 0 {
		k.Last, k.At, k.Covered, k.Attempt = v, it.iteration, it.covered, attempt
	}
	switch {
	case rec.Has(record.Tokens) || !(v > 0) || math.IsInf(v, 0):
	case means == ofRecord, fromStart && before.Last == 0:
		rec.Set(record.Tokens, v)
	case means == sinceStart && before.Last > 0 && v > before.Last && attempt == before.Attempt:
		rec.Set(record.Tokens, v-before.Last)
	}
	switch {
	case math.IsNaN(either):
	case v == either && means == sinceStart:
		rec.Set(record.ConsumedTokens, v)
	case v != either || !rec.Has(record.Tokens):
		rec.AddExtra(record.Extra{Name: tokensName, Value: either})
	}
}

var tokensName = []byte("tokens")

// learn finds the meaning of a token count. Two records of equally many steps decide early in a run: counts per step are about equal, counts since the start
// are as far apart as the iterations. Later in a run the count is per step as soon as it does not grow.
func (k *tokens) learn(v float64, it *placed) {
	if k.Sense != unsure || k.Last == 0 {
		return
	}
	apart := float64(it.iteration) / float64(k.At)
	switch {
	case v <= k.Last:
		k.Sense = ofRecord
	case k.Covered > 0 && k.Covered == it.covered && apart >= early:
		k.Sense = ofRecord
		if math.Abs(v-k.Last*apart) < v-k.Last {
			k.Sense = sinceStart
		}
	default:
		if k.Grew++; k.Grew == mostGrown {
			k.Sense = sinceStart
		}
	}
}
