package account

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorded is a job of testdata/goodput/record.py, in µs, with its goodput by other tools. nil: none.
type recorded struct {
	Name                     string
	Start, End               int64
	Begins                   []int64
	Steps                    [][3]int64 // number, start, end
	Checkpoints, Evaluations [][2]int64
	Google, CRE, ETTR        *float64
}

func jobs(t *testing.T) (all []recorded) {
	t.Helper()
	text, err := os.ReadFile("testdata/goodput/jobs.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &all))
	require.Greater(t, len(all), 50)
	return all
}

func (j *recorded) ledger() *Ledger {
	var l Ledger
	l.Seen(j.Start * 1e3)
	l.Seen(j.End * 1e3)
	for _, us := range j.Begins {
		l.Begins(us * 1e3)
	}
	for _, s := range j.Steps {
		l.Add(Step{Number: s[0], Start: s[1] * 1e3, End: s[2] * 1e3})
	}
	for _, p := range j.Checkpoints {
		l.Pause(Checkpoint, p[0]*1e3, p[1]*1e3)
	}
	for _, p := range j.Evaluations {
		l.Pause(Evaluation, p[0]*1e3, p[1]*1e3)
	}
	return &l
}

func TestGoodputAsOthersHaveIt(t *testing.T) {
	for _, j := range jobs(t) {
		a, ok := j.ledger().Account()
		require.True(t, ok, j.Name)
		for _, of := range []struct {
			who       string
			want      *float64
			got, room float64
		}{{"Google", j.Google, a.Google(), 1e-9}, {"NVIDIA CRE", j.CRE, a.CRE(), 1e-9}, {"Meta", j.ETTR, a.ETTR(), 1e-9}} {
			if of.want != nil {
				assert.InDelta(t, *of.want, of.got, of.room, "%s: %s", j.Name, of.who)
			}
		}
		whole(t, &a)
	}
}

// A record of ten equal steps has the goodput of ten single steps.
func TestGoogleOfSeveralStepsInARecord(t *testing.T) {
	var one, ten Ledger
	for i := range int64(50) {
		one.Add(Step{Number: i, Start: second(100 + i), End: second(101 + i)})
		if i%10 == 9 {
			ten.Add(Step{Number: i, Start: second(91 + i), End: second(101 + i), Steps: 10})
		}
	}
	for i := range int64(20) {
		one.Add(Step{Number: 30 + i, Start: second(200 + i), End: second(201 + i)})
		if i%10 == 9 {
			ten.Add(Step{Number: 30 + i, Start: second(191 + i), End: second(201 + i), Steps: 10})
		}
	}
	a, _ := one.Account()
	b, _ := ten.Account()
	assert.InDelta(t, 50.0/120, a.Google(), 1e-9) // 30 up to the resumed step, then 20
	assert.InDelta(t, a.Google(), b.Google(), 1e-9)
}

func TestGoodputWhereTheLogAllowsNone(t *testing.T) {
	nobody := func(a Account) []bool {
		return []bool{math.IsNaN(a.Google()), math.IsNaN(a.CRE()), math.IsNaN(a.ETTR())}
	}
	var no, unnumbered, sparse Ledger
	for i := range int64(50) {
		no.Add(Step{Number: i, Start: second(100 + i), End: second(101 + i), Synthetic: true})
		attempt := int32(i / 25)
		unnumbered.Add(Step{Number: -1, Start: second(100 + i), End: second(101 + i), Attempt: attempt})
		sparse.Add(Step{Number: i * 10, Start: second(100 + i), End: second(101 + i)})
	}
	a, _ := no.Account()
	assert.Equal(t, []bool{true, true, true}, nobody(a), "no clock")
	a, _ = unnumbered.Account()
	assert.Equal(t, []bool{true, true, false}, nobody(a), "no numbers, and a restart")
	a, _ = sparse.Account()
	assert.Equal(t, []bool{true, false, false}, nobody(a), "a row for each tenth step")
	assert.Zero(t, (&Account{}).Goodput())
	assert.Equal(t, []bool{true, true, true}, nobody(Account{}))
}
