package offline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

func TestShift(t *testing.T) {
	const h, m, s = 3600.0, 60.0, 1.0
	ns := func(sec float64) int64 { return int64(sec * 1e9) }
	for name, c := range map[string]struct{ a0, a1, b0, b1, step, want float64 }{
		"one zone":                {0, h, 1, h - 2, 5, 0},
		"8 h, an hour long":       {8 * h, 9 * h, 1, h - 2, 5, 8 * h},
		"8 h, half a minute long": {8 * h, 8*h + 30, 1, 28, 2, 8 * h},
		"-5:30":                   {-5.5 * h, -4.5 * h, 1, h - 2, 5, -5.5 * h},
		"5:45":                    {5.75 * h, 6.75 * h, 1, h - 2, 5, 5.75 * h},
		"8 h, three days long":    {8 * h, 80 * h, 1, 72*h - 2, 5, 8 * h},
		"8 h, three days long, collectives at init": {8 * h, 80 * h, -4 * m, 72*h - 2, 5, 8 * h},
		"8 h, collectives at init":                  {8 * h, 9 * h, -4 * m, h - 2, 5, 8 * h},
		"8 h, collectives of the first ten minutes": {8 * h, 11 * h, 1, 10 * m, 5, 8 * h},
		"8 h, the collectives go on":                {8 * h, 8*h + 10*m, 1, 3 * h, 5, 8 * h},
		"one record of 100 steps":                   {8 * h, 9 * h, 1, h - 2, 500, 8 * h},
		"another attempt, 2 h 2 min later":          {2*h + 2*m, 2*h + 31*m, 0, 30 * m, 5, 0},
		"another attempt, right after":              {h + 7*m, 2*h + 7*m, 0, h, 5, 0},
		"a part in the middle":                      {0, 10 * h, 3 * h, 4 * h, 5, 0},
		"a log that began two hours later":          {2 * h, 10 * h, 0, 10 * h, 5, 0},
		"a log that ended two hours early":          {0, 8 * h, 0, 10 * h, 5, 0},
		"days apart":                                {72 * h, 73 * h, 0, h, 5, 0},
	} {
		a, b := extent{first: ns(c.a0), last: ns(c.a1), longest: ns(c.step)}, extent{first: ns(c.b0), last: ns(c.b1), longest: ns(0.1 * s)}
		assert.Equal(t, ns(c.want), zoneLead(&a, &b), name)
	}
}

func TestParseZone(t *testing.T) {
	for _, bad := range []string{"", "UTC", "=UTC", "a.log=", "a.log=Mars/Olympus", "a.log=+8", "a[.log=UTC"} {
		_, err := ParseZone(bad)
		require.Error(t, err, bad)
	}
	dir := t.TempDir()
	file := put(t, dir, "job/a.log", "x")
	for log, want := range map[string]bool{
		"a.log": true, "*.log": true, "b.log": false, file: true, dir + "/**/*.log": true, dir + "/*.log": false, dir + "/job/../job/a.log": true,
	} {
		z, err := ParseZone(log + "=+05:45")
		require.NoError(t, err)
		assert.Equal(t, want, z.Of(file), log)
	}
}

// Megatron's stamps are of a zone different from the machine's. The reading reports the zone, once, and finds the same with the right flag as for local stamps.
func TestStampsOfAnotherZone(t *testing.T) {
	for _, zone := range []string{"+08:00", "-05:00", "+05:30", "+05:45", "Asia/Shanghai", "America/New_York"} {
		t.Run(zone, func(t *testing.T) {
			z, err := ParseZone("megatron.log=" + zone)
			require.NoError(t, err)
			opt := Options{Run: "job", Zones: []Zone{z}, Positions: true}
			j := apartJob{rng: rand.New(rand.NewPCG(1, 29)), hosts: 2, ranks: 4, fault: 1.5, steps: 40, zone: opt.zoneOf(&File{Path: "/megatron.log"})}
			if _, local := at.Local().Zone(); at.In(j.zone).Format("-07:00") == at.Local().Format("-07:00") {
				t.Skipf("it is the zone of this machine, %d s ahead of UTC", local)
			}
			dir := t.TempDir()
			j.write(t, dir)
			shifts := func(opt Options) []Shift {
				in, err := Open([]string{dir}, strings.NewReader(""))
				require.NoError(t, err)
				defer in.Close()
				got, err := Read(t.Context(), in, opt, Sink{Traces: consumertest.NewNop(), NoParts: true})
				require.NoError(t, err)
				return got.Shifts
			}
			found := shifts(Options{Run: "job", Positions: true})
			require.Len(t, found, 1)
			_, offset := at.In(j.zone).Zone()
			_, local := at.Local().Zone()
			assert.Equal(t, time.Duration(offset-local)*time.Second, found[0].Ahead)
			assert.Equal(t, at.In(j.zone).Format("-07:00"), found[0].Zone)
			assert.Equal(t, "megatron.log", filepath.Base(found[0].Files[0].Path))
			assert.Empty(t, shifts(opt))
			found = shifts(Options{Run: "job", Positions: true, Zones: []Zone{{Log: "megatron.log", Name: "+01:00"}}})
			require.Len(t, found, 1)
			assert.Equal(t, at.In(j.zone).Format("-07:00"), found[0].Zone, "from a zone that is wrong")

			causes, reasons := slowSteps(t, dir, opt)
			require.Len(t, causes, len(j.late))
			for step, rank := range j.late {
				require.NotEmpty(t, causes[step])
				assert.Equal(t, int64(rank), causes[step][0].Rank.N, reasons[step])
			}
		})
	}
}

// The log of an attempt without logs of collectives is no log of another zone: the attempt before has such logs.
func TestAttemptsAreNoZones(t *testing.T) {
	dir := t.TempDir()
	j := apartJob{rng: rand.New(rand.NewPCG(1, 29)), hosts: 2, ranks: 2, steps: 22, zone: time.Local}
	j.write(t, dir)
	first, err := os.ReadFile(filepath.Join(dir, "megatron.log"))
	require.NoError(t, err)
	second := strings.ReplaceAll(string(first), at.Local().Format("02 15:"), at.Add(2*time.Hour).Local().Format("02 15:"))
	require.NotEqual(t, string(first), second)
	put(t, dir, "megatron-2.log", second)
	in, err := Open([]string{dir}, strings.NewReader(""))
	require.NoError(t, err)
	defer in.Close()
	got, err := Read(t.Context(), in, Options{Run: "job", Positions: true}, Sink{Traces: consumertest.NewNop()})
	require.NoError(t, err)
	assert.Empty(t, got.Shifts)
}

// No zone is reported for logs without a clock, with a zone, or with overlapping times.
func TestNoShift(t *testing.T) {
	begin := at.Add(8 * time.Hour)
	megatron := func(stamp string) string {
		var b strings.Builder
		for i := range 30 {
			fmt.Fprintf(&b, " [%s] iteration %8d/ 100 | elapsed time per iteration (ms): 1000.0 | lm loss: 9.8E+00 |\n",
				begin.Add(time.Duration(i)*time.Second).Format(stamp), i+1)
		}
		return b.String()
	}
	j := apartJob{rng: rand.New(rand.NewPCG(1, 29)), hosts: 2, ranks: 2, steps: 22, zone: time.UTC}
	nccl := t.TempDir()
	j.write(t, nccl)
	require.NoError(t, os.Remove(filepath.Join(nccl, "megatron.log")))
	for name, text := range map[string]string{
		"a zone": megatron("2006-01-02 15:04:05.000000Z07:00"), "no clock": strings.ReplaceAll(megatron("x"), " [x]", ""),
		"JSON in UTC": jsonl(12, begin), "nothing": "",
	} {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(nccl)))
		put(t, dir, "train.log", text)
		in, err := Open([]string{dir}, strings.NewReader(""))
		require.NoError(t, err)
		got, err := Read(t.Context(), in, Options{Run: "job", Positions: true}, Sink{Traces: consumertest.NewNop()})
		in.Close()
		require.NoError(t, err)
		assert.Empty(t, got.Shifts, name)
	}
}
