package step

import (
	"hash/maphash"
	"math"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// copied is the reason for lines that another rank has written too.
const copied = "copy"

// copies finds the records that several ranks wrote into one stream, each with its rank before the line (srun -l, torchrun): a script that prints on all ranks
// has each step as often as there are ranks. Such a step is the job's, and told once. Where ranks say different things of an iteration, each tells its own
// steps, and nothing is a copy from there on.
type copies struct {
	// Lead is the rank whose the records are, the first that wrote one; Found says that another wrote the same.
	Lead   int64 `json:"lead,omitempty"`
	Found  bool  `json:"found,omitempty"`
	Differ bool  `json:"differ,omitempty"` // ranks say different things

	led  bool // Lead is known
	said map[saying]firstSaid
	ring []saying // the keys of said, the oldest at next
	next int
}

// saying is what a record is about.
type saying struct {
	source    string
	kind      record.Kind
	iteration float64
}

// firstSaid is what was said of it first, and by whom.
type firstSaid struct {
	values uint64
	rank   int64
}

// maxSaid is how many iterations the ranks of a job may be apart.
const maxSaid = 1024

var seed = maphash.MakeSeed()

// of says whether a record is a copy, and whose the record is otherwise. rank is that before the line.
func (c *copies) of(rec *record.Record, rank int64) (is bool, owner int64) {
	if c.Differ || rec.HasRank || rec.Unnumbered || rec.Join || !ofJob(rec) {
		return false, rank
	}
	if !c.led && !c.Found {
		c.Lead, c.led = rank, true
	}
	k := saying{rec.Source, rec.Kind, rec.Get(record.Iteration)}
	v := firstSaid{valuesOf(rec), rank}
	first, known := c.said[k]
	switch {
	case !known:
		c.note(k, v)
	case first.rank == rank:
		c.said[k] = v // the job went back
	case first.values != v.values:
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

// ofJob says whether a record may be of all ranks: a record that says how long its step took, and no more, may be each rank's own.
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

// settled is what is kept over a restart: whose the records are.
func (c *copies) settled() copies {
	if !c.Found {
		return copies{Differ: c.Differ}
	}
	return copies{Lead: c.Lead, Found: true, Differ: c.Differ}
}

func (c *copies) note(k saying, v firstSaid) {
	if c.said == nil {
		c.said = make(map[saying]firstSaid)
	}
	if len(c.ring) < maxSaid {
		c.ring = append(c.ring, k)
	} else {
		delete(c.said, c.ring[c.next])
		c.ring[c.next] = k
		c.next = (c.next + 1) % maxSaid
	}
	c.said[k] = v
}

// valuesOf is a hash of all that a record says, but when that was: ranks write at different moments.
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
