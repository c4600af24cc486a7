package filereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Five receivers of one run send one train.run span; a collector that starts anew sends one again.
func TestRunsAreOpenedOnce(t *testing.T) {
	var shared runs
	a, b := &Receiver{runs: &shared}, &Receiver{runs: &shared}
	assert.True(t, a.FirstOf("x"))
	assert.False(t, a.FirstOf("x"))
	assert.False(t, b.FirstOf("x"))
	assert.True(t, b.FirstOf("y"))
	a.release()
	assert.True(t, b.FirstOf("x"))
	assert.False(t, b.FirstOf("y"))
}
