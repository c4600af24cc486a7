package gen

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(t *testing.T, change func(*Options)) Options {
	t.Helper()
	o := DefaultOptions()
	o.Out, o.Start = filepath.Join(t.TempDir(), "job"), time.Date(2026, 2, 11, 16, 40, 0, 0, time.UTC)
	if change != nil {
		change(&o)
	}
	return o
}

func one(t *testing.T, o Options) Truth {
	t.Helper()
	truths, err := Generate(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, truths, 1)
	return truths[0]
}

func total(m map[string]float64) (sum float64) {
	for _, v := range m {
		sum += v
	}
	return sum
}

// The times of a window add up to its length, and no kind has more time than its union.
func TestIdentities(t *testing.T) {
	for _, clocks := range append([]string{""}, Clocks()...) {
		t.Run(clocks, func(t *testing.T) {
			t.Parallel()
			o := options(t, func(o *Options) { o.Faults, o.Steps, o.CheckpointEvery, o.EvalEvery = Faults(), 60, 10, 15 })
			if clocks != "" {
				o.Clocks = []string{clocks}
			}
			truths, err := Generate(t.Context(), o)
			require.NoError(t, err)
			for _, truth := range truths {
				steps := 0
				at := truth.Start
				for _, s := range truth.Steps {
					assert.Equal(t, at, s.Start, "step %d begins where the one before ended", s.Step)
					at = s.End
					steps += s.Covered
					assert.InDelta(t, float64(s.End-s.Start)/1e9, total(s.Time), 1e-9)
					for kind := range s.Time {
						assert.GreaterOrEqual(t, s.Sum[kind], s.Union[kind]-1e-9, kind)
						assert.GreaterOrEqual(t, s.Union[kind], s.Time[kind]-1e-9, kind)
					}
					waited := 0.0
					for _, w := range s.Waits {
						waited += w.Seconds
					}
					assert.InDelta(t, s.Sum[spans.PartWait], waited, 1e-9)
				}
				assert.Equal(t, o.Steps, steps)
				assert.Equal(t, truth.End, at)
			}
		})
	}
}

// The cost of a fault shows in its part of the breakdown.
func TestFaults(t *testing.T) {
	parts := map[string]string{
		FaultStraggler: spans.PartWait, FaultGPU: spans.PartWait, FaultLink: spans.PartCollective, FaultData: spans.PartDataLoading,
		FaultCheckpoint: spans.PartCheckpoint, FaultGet: spans.PartGet, FaultPut: spans.PartPut, FaultSerialize: spans.PartRPCSerialize,
	}
	for _, kind := range Faults() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			truth := one(t, options(t, func(o *Options) { o.Faults, o.Steps, o.CheckpointEvery = []string{kind}, 100, 2 }))
			usual, causes := map[string]float64{}, 0
			for _, s := range truth.Steps[:quiet-1] {
				for k, v := range s.Time {
					usual[k] += v / (quiet - 1)
				}
			}
			usual[spans.PartCheckpoint] = 1.5
			for _, s := range truth.Steps {
				if s.Cause == nil {
					assert.InDelta(t, usual[parts[kind]], s.Time[parts[kind]], 1.6)
					continue
				}
				causes++
				assert.Equal(t, kind, s.Cause.Kind)
				assert.Greater(t, s.Cause.Seconds, 0.5)
				assert.InDelta(t, s.Cause.Seconds, s.Time[parts[kind]]-usual[parts[kind]], 0.2)
				if kind == FaultStraggler || kind == FaultGPU {
					assert.Equal(t, s.Cause.Rank, s.Waits[0].Rank)
				}
				assert.Equal(t, kind == FaultGPU, len(s.Throttled) == 1)
			}
			assert.GreaterOrEqual(t, causes, 3)
		})
	}
}

// files are the contents of all files below a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all[strings.TrimPrefix(path, dir)] = gentest.Text(t, path)
		}
		return err
	}))
	return all
}

// The same flags give the same bytes; another seed does not.
func TestDeterministic(t *testing.T) {
	write := func(seed uint64) map[string]string {
		o := options(t, func(o *Options) {
			o.Seed, o.Steps, o.Faults, o.Clocks = seed, 20, Faults(), []string{ClockOverlap, ClockTwoJobs}
		})
		_, err := Generate(t.Context(), o)
		require.NoError(t, err)
		return files(t, o.Out)
	}
	first := write(1)
	assert.Equal(t, first, write(1))
	other := write(2)
	for name, text := range first {
		assert.NotEqual(t, text, other[name], name)
	}
}

// receivers are the receivers of a job's logs, by path.
var receivers = map[string]struct {
	factory func() receiver.Factory
	kinds   []string
}{
	"tq/*.log":      {tqtracereceiver.NewFactory, []string{spans.KindFunction, spans.KindStage}},
	"zmq/*.log":     {zmqrpcreceiver.NewFactory, []string{spans.KindPass, spans.KindCall}},
	"nccl/*":        {ncclreceiver.NewFactory, []string{spans.KindCollective, spans.KindRank}},
	"train/*.jsonl": {trainlogreceiver.NewFactory, []string{spans.KindStep, spans.KindPart}},
}

// lines is how many lines the logs of a glob have.
func (t *Truth) lines(glob string) (n int64) {
	for _, f := range t.Files {
		if ok, _ := path.Match(glob, f.Path); ok {
			n += f.Lines
		}
	}
	return n
}

// Each file is read by its receiver, which rejects no line and makes as many spans as the truth says.
func TestReadBack(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"plain":           nil,
		"without ids":     func(o *Options) { o.IDs = IDsNone },
		"inspector":       func(o *Options) { o.NCCL = NCCLInspector },
		"seconds":         func(o *Options) { o.Clocks = []string{ClockSeconds} },
		"skew":            func(o *Options) { o.Clocks = []string{ClockSkew} },
		"nostart":         func(o *Options) { o.Clocks = []string{ClockNoStart} },
		"na and overlap":  func(o *Options) { o.Clocks = []string{ClockNA, ClockOverlap} },
		"five steps each": func(o *Options) { o.Clocks = []string{ClockNSteps} },
		"two jobs":        func(o *Options) { o.Clocks = []string{ClockTwoJobs} },
		"with all faults": func(o *Options) { o.Faults, o.Steps = Faults(), 40 },
		"one host":        func(o *Options) { o.Ranks = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, func(o *Options) { o.Steps = 15 })
			if change != nil {
				change(&o)
			}
			truths, err := Generate(t.Context(), o)
			require.NoError(t, err)
			for i := range truths {
				dir := o.Out
				if len(truths) > 1 {
					dir = filepath.Join(o.Out, "job-"+strconv.Itoa(i))
				}
				for glob, r := range receivers {
					if truths[i].lines(glob) > 0 {
						checkReadBack(t, &truths[i], dir, glob, r.factory(), r.kinds)
					}
				}
			}
		})
	}
}

func checkReadBack(t *testing.T, truth *Truth, dir, glob string, factory receiver.Factory, kinds []string) {
	t.Helper()
	lines := truth.lines(glob)
	log := gentest.Read(t, factory, filepath.Join(dir, glob), func(l *gentest.Log) bool { return l.Settled(lines) })
	assert.Zero(t, log.Lines()["rejected"], glob)
	want, got := map[string]int{}, map[string]int{}
	for _, s := range truth.Steps {
		for _, kind := range kinds {
			want[kind] += s.Spans[kind]
		}
	}
	for _, s := range log.Spans() {
		got[view.KindOf(s).String()]++
	}
	if slices.Contains(kinds, spans.KindCall) {
		want[spans.KindCall]++ // of the session, before the first step
	}
	maps.DeleteFunc(got, func(kind string, _ int) bool { return !slices.Contains(kinds, kind) })
	assert.Equal(t, want, got, glob)
}

// A wrong command line is an error, and nothing is written.
func TestOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"--ranks":                func(o *Options) { o.Ranks = 12 },
		"--steps":                func(o *Options) { o.Steps = 0 },
		"a record is about":      func(o *Options) { o.Steps, o.Clocks = 12, []string{ClockNSteps} },
		"--faults":               func(o *Options) { o.Faults = []string{"cosmic rays"} },
		"--clocks":               func(o *Options) { o.Clocks = []string{"sundial"} },
		"--fault-every":          func(o *Options) { o.FaultEvery = 1 },
		"--ids":                  func(o *Options) { o.IDs = "some" },
		"--nccl":                 func(o *Options) { o.NCCL = "vccl_text" },
		"--collectives-per-step": func(o *Options) { o.Collectives = 0 },
		"--checkpoint-every":     func(o *Options) { o.Faults, o.CheckpointEvery = []string{FaultCheckpoint}, 0 },
		"--eval-every":           func(o *Options) { o.EvalEvery = -1 },
		"--live":                 func(o *Options) { o.Live = true },
		"a directory":            func(o *Options) { o.Out = "-" },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, change)
			_, err := Generate(t.Context(), o)
			require.ErrorIs(t, err, logfile.ErrOptions)
			require.ErrorContains(t, err, name)
			assert.NoDirExists(t, o.Out)
		})
	}
}

// took is an interval to µs, the precision of all logs with right clocks.
func took(s ptrace.Span) interval {
	return interval{(int64(s.StartTimestamp()) + us/2) / us * us, (int64(s.EndTimestamp()) + us/2) / us * us}
}

// The receivers read exactly the truth: functions of all workers, collectives with their late ranks, steps.
func TestExact(t *testing.T) {
	for _, format := range []string{NCCLVCCL, NCCLInspector} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			o := options(t, func(o *Options) { o.NCCL, o.Faults, o.Steps = format, Faults(), 30 })
			truth := one(t, o)
			want := map[string][]interval{}
			add := func(name string, i interval) { want[name] = append(want[name], i) }
			passes := newPasses(&o)
			_, err := simulate(&o, truth.Start, passes, func(s doneStep, _ state) error {
				for _, calls := range s.functions {
					for _, c := range calls {
						add(spans.SpanTQGet, interval{c.start, c.got})
						add(spans.SpanTQCompute, interval{c.got, c.computed})
						add(spans.SpanTQPut, interval{c.computed, c.end})
					}
				}
				for i := range s.collectives {
					c := &s.collectives[i]
					add("late", interval{c.first(), c.begun})
					add("collective", interval{c.first(), c.end})
				}
				add(spans.SpanStep, s.interval)
				return nil
			})
			require.NoError(t, err)
			got := map[string][]interval{}
			for glob, r := range receivers {
				lines := truth.lines(glob)
				if lines == 0 {
					continue
				}
				log := gentest.Read(t, r.factory(), filepath.Join(o.Out, glob), func(l *gentest.Log) bool { return l.Settled(lines) })
				for _, s := range log.Spans() {
					at, name := took(s), s.Name()
					switch view.KindOf(s) {
					case view.KindStage, view.KindStep:
					case view.KindCollective:
						name = "collective"
						late, ok := s.Attributes().Get(spans.AttrNCCLLateMax)
						assert.True(t, ok)
						got["late"] = append(got["late"], interval{at.start, at.start + int64(late.Double()*1e6+0.5)*us})
					default:
						continue
					}
					got[name] = append(got[name], at)
				}
			}
			for name, list := range want {
				order := func(a, b interval) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) }
				slices.SortFunc(list, order)
				slices.SortFunc(got[name], order)
				assert.Equal(t, list, got[name], name)
			}
		})
	}
}

// A live log is written while its job goes on: no line comes before its time. A stopped run leaves the truth about its finished steps.
func TestLive(t *testing.T) {
	whole := options(t, func(o *Options) { o.Steps, o.Faults, o.Clocks = 15, Faults(), []string{ClockOverlap} })
	truth := one(t, whole)
	o := whole
	o.Out, o.Live = filepath.Join(t.TempDir(), "live"), true
	clock := gentest.Clock{At: o.Start}
	o.Start = time.Time{}
	all, err := generate(t.Context(), &o, clock.Clock())
	require.NoError(t, err)
	assert.Equal(t, truth, all[0])
	assert.Equal(t, files(t, whole.Out), files(t, o.Out))
	assert.WithinDuration(t, time.Unix(0, truth.End), clock.At, time.Millisecond)

	ctx, stop := context.WithCancel(t.Context())
	o.Out, o.Start = filepath.Join(t.TempDir(), "stopped"), time.Time{}
	clock = gentest.Clock{At: whole.Start, Stop: stop, Until: time.Unix(0, truth.Steps[4].End+1e9)}
	all, err = generate(ctx, &o, clock.Clock())
	require.NoError(t, err)
	assert.Equal(t, truth.Steps[:5], all[0].Steps)
	assert.Equal(t, truth.Steps[4].End, all[0].End)
	before, after := gentest.Text(t, filepath.Join(whole.Out, "tq", "driver.log")), gentest.Text(t, filepath.Join(o.Out, "tq", "driver.log"))
	assert.Greater(t, len(before), len(after))
	assert.True(t, strings.HasPrefix(before, after))
}

// A trace has exactly the spans with the id of its step.
func TestTraceIDs(t *testing.T) {
	o := options(t, func(o *Options) { o.Steps = 15 })
	truth := one(t, o)
	for glob, r := range receivers {
		lines := truth.lines(glob)
		if lines == 0 {
			continue
		}
		log := gentest.Read(t, r.factory(), filepath.Join(o.Out, glob), func(l *gentest.Log) bool { return l.Settled(lines) })
		got := map[pcommon.TraceID]map[string]int{}
		for _, s := range log.Spans() {
			if kind := view.KindOf(s).String(); slices.Contains(r.kinds, kind) {
				if got[s.TraceID()] == nil {
					got[s.TraceID()] = map[string]int{}
				}
				got[s.TraceID()][kind]++
			}
		}
		for _, s := range truth.Steps {
			want := maps.Clone(s.Spans)
			maps.DeleteFunc(want, func(kind string, _ int) bool { return !slices.Contains(r.kinds, kind) })
			assert.Equal(t, want, got[spans.TraceID("run", []byte(s.TraceID))], "%s, step %d", glob, s.Step)
		}
	}
}
