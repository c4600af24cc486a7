package tail

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
)

func TestHeldLinesAreReadAgain(t *testing.T) {
	r := newRig(t)
	r.append("a.log", "one\nSTART a\ntwo\nSTART b\nthree\n")
	r.step(0)
	r.want("one", "two", "three")
	r.checkpoint()
	r.restart()
	r.rename(`a.log`, `a.log.1`)
	r.append("a.log", "END b\nfour\nEND a\n")
	r.step(0)
	r.want("START b | END b", "four", "START a | END a")
	r.checkpoint()
	r.restart()
	r.step(0)
	r.want()
}

func TestHeldLinesExpire(t *testing.T) {
	r := newRig(t)
	r.append("a.log", "START a\n")
	r.step(0)
	r.step(r.cfg.PendingTimeout / 2)
	r.append("a.log", "START b\n")
	r.step(10 * time.Second)
	r.want()
	r.step(r.cfg.PendingTimeout / 2)
	r.step(10 * time.Second)
	r.want("START a")
}

func TestDamagedCheckpoint(t *testing.T) {
	for key := range 2 {
		r := newRig(t)
		r.append("a.log", numbered(1, 3))
		r.step(0)
		r.checkpoint()
		r.want(numberedLines(1, 3)...)
		r.crash()
		for k, v := range r.store.values {
			if (k == checkpoint.IndexKey) == (key == 0) {
				v[len(v)/2] ^= 1
			}
		}
		r.boot()
		r.step(0)
		if key == 0 {
			r.want() // the path leads to its checkpoint without the index
		} else {
			r.want(numberedLines(1, 3)...)
		}
		assert.EqualValues(t, 1, r.tl.Counts().CheckpointErrors)
	}
}

func TestStorageFailsForAWhile(t *testing.T) {
	r := newRig(t)
	r.append("a.log", numbered(1, 3))
	r.step(0)
	r.store.fail = errors.New("disk full")
	r.checkpoint()
	assert.EqualValues(t, 1, r.tl.Counts().CheckpointErrors)
	r.store.fail = nil
	r.checkpoint()
	r.want(numberedLines(1, 3)...)
	r.restart()
	r.step(0)
	r.want()
}

func TestForgottenStreamLeavesTheStore(t *testing.T) {
	r := newRig(t)
	r.append("a.log", numbered(1, 3))
	r.step(0)
	r.checkpoint()
	require.Len(t, r.store.values, 2)
	r.remove("a.log")
	r.steps(60, 5*time.Second)
	r.checkpoint()
	assert.Len(t, r.store.values, 1)
	assert.Empty(t, r.tl.sweeper.files)
	assert.Zero(t, r.tl.open.Load())
}

// forgetful is a toy that counts the calls of Forget.
type forgetful struct {
	*toy
	n *int
}

func (f forgetful) Forget() { *f.n++ }

// Forget is called once: when the file of the stream is gone, and all of it was accepted.
func TestForgetter(t *testing.T) {
	r := newRig(t)
	n := 0
	r.handler = func(s *Stream) Handler { return forgetful{&toy{rig: r, s: s, open: map[string]opened{}}, &n} }
	r.restart()
	r.append("a.log", "START x\n")
	r.append("b.log", "one\n")
	r.append("c.log", "")
	r.step(0)
	r.checkpoint()
	r.restart()
	r.step(0)
	r.remove("a.log")
	r.remove("c.log")
	r.steps(60, 5*time.Second)
	require.Equal(t, 1, n, "a.log has a line that waits")
	r.steps(60, 10*time.Second)
	require.Equal(t, 2, n)
	r.checkpoint()
	r.crash()
	r.remove("b.log")
	r.boot()
	r.step(0)
	r.rest()
	require.Equal(t, 2, n, "none was made for it")
	require.Empty(t, r.tl.sweeper.streams)
}

func TestFileGoneWhileDown(t *testing.T) {
	r := newRig(t)
	logs := r.observed()
	r.append("a.log", "START a\n")
	r.step(0)
	r.checkpoint()
	r.crash()
	r.remove("a.log")
	r.append("a.log", "one\n")
	r.boot()
	r.step(0)
	r.want("one")
	assert.EqualValues(t, 1, r.tl.Counts().LostFiles)
	r.rest()
	said := logs.FilterMessageSnippet("is gone before all of it was read").All()
	require.Len(t, said, 1, "said once")
	assert.Equal(t, r.path("a.log"), said[0].ContextMap()["path"])
}

// A failed storage may have lost everything, so all positions are stored again, even without progress since.
func TestStorageThatLostAll(t *testing.T) {
	for _, joint := range []bool{false, true} {
		t.Run(fmt.Sprint("joint=", joint), func(t *testing.T) {
			core, logs := observer.New(zapcore.InfoLevel)
			r := newRig(t)
			r.joint = joint
			r.restart()
			r.tl.log = zap.New(core)
			r.write("a.log", "1\n")
			r.write("b.log", "2\n")
			r.step(0)
			r.checkpoint()
			r.want("1", "2")

			clear(r.store.values)
			r.store.fail = errors.New("the directory is gone")
			r.append("a.log", "3\n")
			r.step(poll)
			r.want("3")
			store := func() error { return r.tl.storeAll(t.Context(), false) }
			require.ErrorContains(t, store(), "'storage': cannot store positions: the directory is gone")
			r.now = r.now.Add(storeRetry - 1)
			require.NoError(t, store(), "it is not asked again so soon")
			assert.EqualValues(t, 1, r.tl.Counts().CheckpointErrors)
			r.now = r.now.Add(1)
			require.Error(t, store())
			r.store.fail = nil
			r.now = r.now.Add(storeRetry)
			require.NoError(t, store())
			assert.Equal(t, 1, logs.FilterMessage("Positions are stored again").Len())
			assert.Equal(t, 1, logs.FilterLevelExact(zapcore.WarnLevel).Len())

			r.restart()
			r.rest()
			r.want()
		})
	}
}
