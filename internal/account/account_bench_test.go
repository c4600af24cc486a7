package account_test

import (
	"math/rand/v2"
	"testing"

	"github.com/trainbridge/trainbridge/internal/account"
)

// BenchmarkAccount makes the account of a run of 100,000 steps with 200 checkpoints.
func BenchmarkAccount(b *testing.B) {
	var l account.Ledger
	random := rand.New(rand.NewPCG(1, 2))
	at := int64(1_700_000_000e9)
	for n := range int64(100_000) {
		took := int64((1 + 0.03*random.NormFloat64()) * 1e9)
		if n%997 == 0 {
			took *= 3
		}
		of := l.Add(account.Step{Start: at, End: at + took, Number: n})
		at += took
		if n%500 == 499 {
			l.Part(of, account.Checkpoint, 20, true)
			at += 20e9
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if a, ok := l.Account(); !ok || a.Steps != 100_000 {
			b.Fatal(a.Steps)
		}
	}
}
