package step

import (
	"math"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// tokens follows what the records of a rank say of tokens, so that each says those of its own steps.
type tokens struct {
	// Last is what the record before said: of its steps, or since the run began; 0: nothing.
	Last    float64 `json:"last,omitzero"`
	At      int64   `json:"at,omitzero"`      // iteration of that record
	Covered int64   `json:"covered,omitzero"` // steps of it; 0: not known
	Attempt int64   `json:"attempt,omitzero"`
	Sense   sense   `json:"sense,omitzero"`
	Grew    int     `json:"grew,omitzero"` // how often a number that may mean either was larger than the one before
}

// sense is what a number of tokens means.
type sense uint8

const (
	unsure     sense = iota
	ofRecord         // of its steps
	sinceStart       // since the run began

	mostGrown = 8   // numbers of tokens of steps do not grow so often in a row
	early     = 1.5 // how many times as far a record is in the run as the one before, where tokens of steps cannot be taken for those since the start
)

// count sets the tokens of a record's steps, or leaves them unset where they are not known.
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

// learn finds out what a number of tokens means. Two records of as many steps tell early in a run: of their steps the numbers are about the same, since the
// start they are as far apart as the iterations. Later in a run the number is of steps as soon as it does not grow.
func (k *tokens) learn(v float64, it *placed) {
	if k.Sense != unsure || k.Last == 0 {
		return
	}
	apart := float64(it.iteration) / float64(k.At)
	switch {
	case v <= k.Last:
		k.Sense = ofRecord
	case k.Covered > 0 && k.Covered == it.covered && apart >= early:
		if k.Sense = ofRecord; math.Abs(v-k.Last*apart) < v-k.Last {
			k.Sense = sinceStart
		}
	default:
		if k.Grew++; k.Grew == mostGrown {
			k.Sense = sinceStart
		}
	}
}
