package account_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/account"
)

const second = int64(1e9)

// jobOf has steps of 1 s by each of some ranks, and checkpoints of 20 s after each 100th, logged by the last rank alone.
func jobOf(steps, ranks int) *account.Ledger {
	l := new(account.Ledger)
	at := 1_700_000_000 * second
	for n := range steps {
		for r := range ranks {
			of := l.Add(account.Step{Start: at, End: at + second, Number: int64(n), Writer: int32(r)})
			if n%100 == 99 && r == ranks-1 {
				l.Part(of, account.Checkpoint, 20, true)
			}
		}
		if at += second; n%100 == 99 {
			at += 20 * second
		}
	}
	return l
}

// However often neighbours are put together, the account stays: the times in each state to 1 µs, goodput as long as all steps are alike.
func TestMerge(t *testing.T) {
	for _, job := range []struct{ steps, ranks, merges, least int }{{10_000, 1, 6, 200}, {20, 4096, 1, 20}, {1000, 64, 5, 50}} {
		l := jobOf(job.steps, job.ranks)
		want, ok := l.Account()
		require.True(t, ok)
		for range job.merges {
			before := l.Len()
			require.True(t, l.Merge())
			assert.Less(t, l.Len(), before)
		}
		assert.GreaterOrEqual(t, l.Len(), job.least)
		got, ok := l.Account()
		require.True(t, ok)
		assert.Equal(t, int64(job.steps), got.Steps)
		assert.InDelta(t, want.Wall, got.Wall, 1e-6)
		for s := range account.States {
			assert.InDelta(t, want.Seconds[s], got.Seconds[s], 1e-6, "%s of %d steps by %d ranks", s, job.steps, job.ranks)
		}
		assert.InDelta(t, float64(job.steps), got.Seconds[account.InStep], 1e-6)
		assert.InDelta(t, float64(20*(job.steps/100)), got.Seconds[account.Checkpoint], 1e-6)
		assert.InDelta(t, want.Goodput(), got.Goodput(), 1e-9)
	}
	assert.False(t, new(account.Ledger).Merge())
}

// A part added after an account finds its step, even with steps out of order.
func TestPartBehindAnAccount(t *testing.T) {
	var l account.Ledger
	at := 1_700_000_000 * second
	late := l.Add(account.Step{Start: at + 30*second, End: at + 40*second, Number: 3})
	l.Add(account.Step{Start: at, End: at + 10*second, Number: 1})
	l.Add(account.Step{Start: at + 10*second, End: at + 30*second, Number: 2})
	_, ok := l.Account()
	require.True(t, ok)
	l.Part(late, account.Checkpoint, 4, false)
	a, ok := l.Account()
	require.True(t, ok)
	require.Len(t, a.Pauses, 1)
	assert.Equal(t, int64(3), a.Pauses[0].After)
	assert.InDelta(t, 36, a.Seconds[account.InStep], 1e-9)
}
