package step

import (
	"hash/maphash"
	"math"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// copied is the reason of lines that another rank has written too.
const copied = "copy"

// copies finds the records that several ranks wrote into one stream, each with its rank before the line (srun -l, torchrun): a script that prints on all ranks
// prints each step once per rank. The step is the job's, and counts once. Where ranks differ in an iteration, each has its own steps, and nothing is a copy
// from there on.
type copies struct {
	// The exported fields are kept across restarts (settled).

	// Lead is the rank of the first record that could have copies (check). Once a copy was found, all records of the job count to Lead.
	Lead   int64 `json:"lead,omitempty"`
	Found  bool  `json:"found,omitempty"`  // a copy was found: another rank has written a record of the same subject with the same values
	Differ bool  `json:"differ,omitempty"` // two ranks have written different values for one subject: never reset, and no later record is a copy

	hasLead bool                    // Lead was set by this process; a Lead from before the restart has Found instead
	said    map[subject]firstRecord // the last maxSaid subjects
	ring    []subject               // the keys of said, the oldest at next
	next    int
}

// subject is what a record is about: records of one subject by several ranks may be copies.
type subject struct {
	source    string
	kind      record.Kind
	iteration float64
}

// firstRecord is the first record of a subject: a hash of its values (valuesOf), and its rank.
type firstRecord struct {
	values uint64
	rank   int64
}

// maxSaid is the number of subjects remembered: a rank that is further behind, in iterations, is not recognized.
const maxSaid = 1024

var seed = maphash.MakeSeed()

// check reports whether a record is a copy of another rank's record. rank is the rank before the record's line, and owner the rank to which the record counts:
// rank until a copy was found, then Lead, whichever rank writes a subject first. For a copy, which does not count, owner is rank. A record is no copy, and its
// owner is rank, once the ranks differ, and if the record states a rank, is not the job's (ofJob), or is only a part of a step: the next line will state its
// iteration (Unnumbered), or the record is added to a waiting record (Join).
func (c *copies) check(rec *record.Record, rank int64) (isCopy bool, owner int64) {
	isPart := rec.Unnumbered || rec.Join
	if c.Differ || rec.HasRank || isPart || !ofJob(rec) {
		return false, rank
	}
	leadIsKnown := c.hasLead || c.Found
	if !leadIsKnown {
		c.Lead, c.hasLead = rank, true
	}
	about := subject{rec.Source, rec.Kind, rec.Get(record.Iteration)}
	this := firstRecord{valuesOf(rec), rank}
	first, known := c.said[about]
	switch {
	case !known:
		c.note(about, this)
	case first.rank == rank:
		c.said[about] = this // the rank repeats an iteration: the job has restarted from an earlier checkpoint
	case first.values != this.values: // each rank has its own steps
		c.Differ = true
		return false, rank
	default:
		c.Found = true
		return true, rank
	}
	if c.Found {
		return false, c.Lead
	}
	return false, rank
}

// ofJob reports whether a record may be the job's, the same on all ranks: a step or a validation result with an iteration and a value. A record with nothing
// but the duration may be each rank's own, even if the durations are equal.
func ofJob(rec *record.Record) bool {
	if !rec.Has(record.Iteration) || rec.Kind != record.Step && rec.Kind != record.Evaluation {
		return false
	}
	for f := range rec.All() {
		switch f {
		case record.Iteration, record.Iterations, record.Epoch, record.Duration:
		default:
			return true
		}
	}
	return len(rec.Extra) > 0
}

// settled returns the part of the state that is stored for a restart: Differ, and once a copy was found also Lead and Found. Until a copy is found, Lead is not
// stored: the first record after the restart sets it.
func (c *copies) settled() copies {
	if !c.Found {
		return copies{Differ: c.Differ}
	}
	return copies{Lead: c.Lead, Found: true, Differ: c.Differ}
}

// note remembers the first record of a subject. Beyond maxSaid subjects, the oldest one is forgotten.
func (c *copies) note(about subject, first firstRecord) {
	if c.said == nil {
		c.said = make(map[subject]firstRecord)
	}
	if len(c.ring) < maxSaid {
		c.ring = append(c.ring, about)
	} else {
		delete(c.said, c.ring[c.next])
		c.ring[c.next] = about
		c.next = (c.next + 1) % maxSaid
	}
	c.said[about] = first
}

// valuesOf returns a hash of the fields, stages and extras of a record, without its time: copies of a record by several ranks have equal hashes, though written
// at different moments.
func valuesOf(rec *record.Record) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	number := func(v float64) {
		b := math.Float64bits(v)
		for i := range 8 {
			_ = h.WriteByte(byte(b >> (8 * i)))
		}
	}
	for f, v := range rec.All() {
		number(float64(f))
		number(v)
	}
	for i := range rec.Stages {
		_, _ = h.Write(rec.Stages[i].Name)
		number(rec.Stages[i].Seconds)
	}
	for i := range rec.Extra {
		_, _ = h.Write(rec.Extra[i].Name)
		_, _ = h.Write(rec.Extra[i].Text)
		number(rec.Extra[i].Value)
	}
	return h.Sum64()
}
