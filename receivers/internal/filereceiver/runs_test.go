package filereceiver

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/spans"
)

// disk is a storage that outlives the collectors of a test.
type disk struct {
	storage.Extension
	kept         map[string][]byte
	open, writes int
	err          error // of Write
}

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	d.open++
	return onDisk{storage.NewNopClient(), d}, nil
}

type onDisk struct {
	storage.Client
	*disk
}

func (d onDisk) Get(_ context.Context, key string) ([]byte, error) { return d.kept[key], nil }

func (d onDisk) Write(_ context.Context, ops ...*storage.Operation) error {
	d.writes++
	for _, op := range ops {
		d.kept[op.Key] = op.Value
	}
	return d.err
}

func (onDisk) Sync(context.Context) error { return nil }

func (d onDisk) Close(context.Context) error {
	d.open--
	return nil
}

// of makes a receiver of a collector, with its log.
func of(shared *runs, name string) (*Receiver, *observer.ObservedLogs) {
	core, said := observer.New(zap.InfoLevel)
	set := receivertest.NewNopSettings(component.MustNewType(name))
	set.Logger = zap.New(core)
	return &Receiver{Set: receiver.Settings{ID: component.MustNewID(name), TelemetrySettings: set.TelemetrySettings}, runs: shared}, said
}

func opening(run string, start int64) spans.RunSpan {
	return spans.RunSpan{Run: run, By: "run_id", Service: "job", File: "/logs/" + run, Start: start, Time: spans.TimeLogged}
}

// opens has a receiver meet a run and send a message, and returns the span of the run that goes with the message.
func opens(t *testing.T, r *Receiver, span spans.RunSpan) []spans.RunSpan {
	t.Helper()
	r.OpenRun(span)
	message := spans.Message{Traces: ptrace.NewTraces()}
	message.Traces.ResourceSpans().AppendEmpty().Resource().Attributes().PutStr(spans.AttrRunID, span.Run)
	owed, release, err := r.runs.takeOwed(t.Context(), r, []spans.Message{message})
	require.NoError(t, err)
	r.runs.paid(owed)
	release()
	return owed
}

// Five receivers of one run send one train.run span; a restarted collector sends one again.
func TestRunsAreOpenedOnce(t *testing.T) {
	var shared runs
	a, _ := of(&shared, "a")
	b, _ := of(&shared, "b")
	want := opening("x", 1)
	assert.Equal(t, []spans.RunSpan{want}, opens(t, a, want))
	assert.Empty(t, opens(t, a, opening("x", 2)))
	assert.Empty(t, opens(t, b, opening("x", 3)))
	assert.Len(t, opens(t, b, opening("y", 4)), 1)
	require.NoError(t, a.release(t.Context()))
	assert.Empty(t, opens(t, b, opening("x", 5)))
	require.NoError(t, b.release(t.Context()))
	assert.Len(t, opens(t, b, opening("x", 6)), 1)
}

// A span sent again after a restart equals the span sent before, whichever receiver sends.
func TestRunsSayTheSameAfterARestart(t *testing.T) {
	state := &disk{kept: make(map[string][]byte)}
	var first runs
	a, _ := of(&first, "a")
	b, _ := of(&first, "b")
	require.NoError(t, first.loadKnown(t.Context(), state, a))
	require.NoError(t, first.loadKnown(t.Context(), state, b))
	assert.Equal(t, 1, state.open, "receivers share a storage")
	want := opening("x", 1)
	a.OpenRun(want)
	require.NoError(t, a.release(t.Context()))
	assert.Equal(t, 1, state.open, "b has it still")
	require.NoError(t, b.release(t.Context()))
	assert.Zero(t, state.open)

	var second runs
	b, _ = of(&second, "b")
	require.NoError(t, second.loadKnown(t.Context(), state, b))
	assert.Equal(t, []spans.RunSpan{want}, opens(t, b, opening("x", 2)))
	assert.Equal(t, 1, state.writes, "it is owed where it fails, so that positions wait for it")
	for i := range maxKnown {
		b.OpenRun(opening(strconv.Itoa(i), 1))
	}
	require.NoError(t, b.release(t.Context()))

	var third runs
	require.NoError(t, third.loadKnown(t.Context(), state, b))
	assert.Len(t, third.known, maxKnown, "the oldest is forgotten")
	b.runs = &third
	later := opening("x", 3)
	assert.Equal(t, []spans.RunSpan{later}, opens(t, b, later))
	require.NoError(t, b.release(t.Context()))

	state.kept[knownKey] = []byte(`[{"run":`)
	state.err = errors.New("full")
	var fourth runs
	c, said := of(&fourth, "c")
	require.NoError(t, fourth.loadKnown(t.Context(), state, c))
	assert.Equal(t, []spans.RunSpan{later}, opens(t, c, later), "what was damaged is no use")
	c.OpenRun(want)
	assert.Equal(t, 1, said.FilterMessageSnippet("could not be stored: full").Len())
	require.NoError(t, c.release(t.Context()))
}

// Two directories as two runs, and two jobs of one name as one run, are logged.
func TestRunsAreNamed(t *testing.T) {
	var shared runs
	a, said := of(&shared, "a")
	b, also := of(&shared, "b")
	dir := func(run string) spans.RunSpan { return spans.RunSpan{Run: run, File: "/logs/" + run + "/a.log"} }
	a.OpenRun(dir("run-1"))
	assert.Empty(t, said.All())
	b.OpenRun(dir("run-2"))
	b.OpenRun(dir("run-3"))
	require.Equal(t, 1, also.Len())
	assert.Equal(t, "b: logs of two directories are two runs, as nothing names their job: run-2 (of /logs/run-2/a.log) and run-1 (of /logs/run-1/a.log). "+
		"Where they are one job's, set TRAINBRIDGE_RUN_ID", also.All()[0].Message)

	job := spans.RunSpan{Run: "slurm-7", By: "SLURM_JOB_ID"}
	a.OpenRun(job)
	require.Equal(t, 1, said.Len())
	assert.Equal(t, "a: the run is slurm-7, by SLURM_JOB_ID; TRAINBRIDGE_RUN_ID gives it another id", said.All()[0].Message)
	b.OpenRun(spans.RunSpan{Run: "job-17", By: "TRAINBRIDGE_RUN_ID"})
	assert.Equal(t, "b: the run is job-17, by TRAINBRIDGE_RUN_ID", also.All()[also.Len()-1].Message)
	a.OpenRun(opening("x", 1))
	assert.Equal(t, 1, said.Len(), "who has set it knows it")
}
