package clock_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func location(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

// oracle reads a stamp with the standard library.
func oracle(s string, loc *time.Location) (int64, bool) {
	s = strings.Replace(s, ",", ".", 1)
	for _, layout := range []string{
		"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700",
		"2006-01-02 15:04:05Z0700", "2006/01/02 15:04:05",
	} {
		if t, err := time.ParseInLocation(layout, s, loc); err == nil {
			return t.UnixNano(), true
		}
	}
	return 0, false
}

func TestStampsAgainstStandardLibrary(t *testing.T) {
	for _, zone := range []string{"UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"} {
		loc := location(t, zone)
		s := clock.NewStamps(loc)
		r := rand.New(rand.NewPCG(1, 2))
		for range 20_000 {
			at := time.Unix(r.Int64N(4e9), r.Int64N(1e9)).In(loc)
			for _, layout := range []string{
				"2006-01-02 15:04:05,000", "2006-01-02 15:04:05.000000", "2006-01-02 15:04:05", "2006-01-02T15:04:05.000000000Z07:00", "2006-01-02 15:04:05.000Z0700",
				"2006-01-02T15:04:05", "2006/01/02 15:04:05",
			} {
				text := at.Format(layout)
				want, ok := oracle(text, loc)
				require.True(t, ok, text)
				got, err := s.Parse([]byte(text))
				require.NoError(t, err, text)
				require.Equal(t, want, got, text)
			}
		}
	}
}

// A log that goes on while clocks change is read without a gap, also where lines are late.
func TestStampsAroundClockChanges(t *testing.T) {
	for zone, days := range map[string][]string{
		"Europe/Berlin": {"2026-03-29", "2026-10-25"}, "America/New_York": {"2026-03-08", "2026-11-01"}, "Australia/Lord_Howe": {"2026-04-05", "2026-10-04"},
	} {
		loc := location(t, zone)
		for _, day := range days {
			s := clock.NewStamps(loc)
			start, err := time.ParseInLocation(time.DateOnly, day, loc)
			require.NoError(t, err)
			for at := start; at.Before(start.Add(26 * time.Hour)); at = at.Add(20 * time.Second) {
				for _, at := range []time.Time{at, at.Add(-2 * time.Minute)} {
					got, err := s.Parse([]byte(at.Format("2006-01-02 15:04:05,000")))
					require.NoError(t, err)
					require.Equal(t, at.UTC(), time.Unix(0, got).UTC())
				}
			}
		}
	}
}

// The first stamp of a log, and one after a day, are read as the standard library reads them.
func TestStampsAloneInAnHourRepeated(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York"} {
		loc := location(t, zone)
		for _, before := range []string{"", "2026-10-23 12:00:00", "2026-11-03 12:00:00"} {
			s := clock.NewStamps(loc)
			if before != "" {
				_, err := s.Parse([]byte(before))
				require.NoError(t, err)
			}
			for _, text := range []string{"2026-10-25 02:30:07", "2026-11-01 01:30:07"} {
				want, _ := oracle(text, loc)
				got, err := s.Parse([]byte(text))
				require.NoError(t, err)
				require.Equal(t, want, got, text)
			}
		}
	}
}

func TestStampsRefuse(t *testing.T) {
	s := clock.NewStamps(time.UTC)
	for _, text := range []string{
		"", "2026-02-11", "2026-02-31 16:40:00", "2026-13-01 16:40:00", "2026-00-01 16:40:00", "2026-02-11 24:00:00", "2026-02-11 16:60:00", "2026-02-11 16:40:60",
		"2026-02-11 16:40:00,",
		"2026-02-11 16:40:00x", "2026-02-11_16:40:00", "2026/02-11 16:40:00", "2026-02-11 16:40:00+25:00", "2026-02-11 16:40:00+1", "1969-12-31 23:59:59", "1970-01-01 00:00:00+08:00",
		"2262-01-01 00:00:00", "2O26-02-11 16:40:00", "2026-02-11 16:40:0a",
	} {
		_, err := s.Parse([]byte(text))
		require.ErrorIs(t, err, clock.ErrStamp, text)
	}
}

func TestDay(t *testing.T) {
	s := clock.NewStamps(location(t, "Asia/Shanghai"))
	at := func(text, before string) string {
		b, err := time.Parse(time.DateTime, before)
		require.NoError(t, err)
		ns, err := s.Day([]byte(text), b)
		if err != nil {
			return ""
		}
		return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.999")
	}
	assert.Equal(t, "2026-08-03 01:14:22.5", at("Aug  3 09:14:22.5", "2026-11-26 00:00:00"))
	assert.Equal(t, "2025-12-31 15:59:59", at("Dec 31 23:59:59", "2026-01-01 00:00:00"))
	assert.Equal(t, "2026-01-01 00:00:01", at("Jan  1 08:00:01", "2026-01-01 00:00:00"), "a clock that is fast")
	assert.Equal(t, "2024-02-29 00:00:00", at("Feb 29 08:00:00", "2026-01-01 00:00:00"))
	for _, text := range []string{"", "Aug  3", "Foo  3 09:14:22", "Feb 31 09:14:22", "Aug  3 09:74:22"} {
		assert.Empty(t, at(text, "2026-11-26 00:00:00"), text)
	}
}

func FuzzStamps(f *testing.F) {
	for _, s := range []string{"2026-02-11 16:40:00,120", "2026-02-11T16:40:00Z", "2026-02-11T16:40:00.5+08:00", "2026-02-29 00:00:00"} {
		f.Add(s)
	}
	loc, err := time.LoadLocation("America/New_York")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		st := clock.NewStamps(loc)
		got, err := st.Parse([]byte(s))
		if err != nil {
			return
		}
		if again, err := st.Parse([]byte(s)); err != nil || again != got {
			t.Fatalf("%q: %d, then %d %v", s, got, again, err)
		}
		if i := strings.IndexAny(s, ".,"); i >= 0 && len(s)-i > 10 { // the standard library rounds nothing away, but limits the digits
			return
		}
		if want, ok := oracle(s, loc); !ok || want != got {
			t.Fatalf("%q: %d, want %d %v", s, got, want, ok)
		}
	})
}

func TestAnchor(t *testing.T) {
	var all clock.Anchors
	a := all.Get("h", 1)
	_, ok := a.Offset()
	require.False(t, ok)
	a.Guess(5e9, 100e9)
	require.True(t, a.Guessed())
	a.Observe(10e9, 1010e9+3)
	a.Observe(11e9, 1011e9+1)
	a.Observe(12e9, 1012e9+2)
	off, ok := a.Offset()
	require.True(t, ok)
	require.False(t, a.Guessed())
	assert.Equal(t, int64(1000e9+1), off, "the smallest wins over the guess and the later ones")
	a.Guess(13e9, 0)
	off, _ = a.Offset()
	assert.Equal(t, int64(1000e9+1), off, "a guess never replaces a clock")

	a.Observe(200e9, 1200e9+5)
	a.Observe(195e9, 1195e9+5) // late line
	off, _ = a.Offset()
	assert.Equal(t, int64(1000e9+1), off)
	a.Observe(300e9, 1305e9) // the wall clock was set 5 s ahead
	off, _ = a.Offset()
	assert.Equal(t, int64(1000e9+1), off, "for a while nothing tells a late line from a clock that was set")
	a.Observe(900e9, 1905e9)
	a.Observe(1600e9, 2605e9)
	off, _ = a.Offset()
	assert.Equal(t, int64(1005e9), off, "then the old offset is forgotten")

	assert.False(t, a.Breaks(3e9, 1003e9), "a very late line is no new clock")
	assert.True(t, a.Breaks(3e9, 1300e9), "the counter began anew")
	assert.True(t, a.Breaks(250e9, 9000e9), "the offset jumped")
	assert.False(t, a.Breaks(250e9, 1250e9))
	a.Observe(3e9, 1300e9)
	off, _ = a.Offset()
	assert.Equal(t, int64(1297e9), off)
}

func TestAnchorsSaveRestore(t *testing.T) {
	var a clock.Anchors
	assert.Nil(t, a.Save())
	for i := range int64(300) {
		a.Get("10.0.0.1", i).Observe(i*1e9, 1e18+i)
	}
	a.Get("", 0).Guess(1, 2)
	saved := a.Save()
	assert.Less(t, len(saved), 16<<10)
	var b clock.Anchors
	b.Restore(saved)
	assert.Equal(t, 256, b.Len())
	for i := int64(44); i < 300; i++ {
		off, ok := b.Get("10.0.0.1", i).Offset()
		require.True(t, ok)
		require.Equal(t, int64(1e18)+i-i*1e9, off)
	}
	for n := range saved {
		var c clock.Anchors
		c.Restore(saved[:n]) // damaged: no panic
	}
}

func TestAnchorsAreBounded(t *testing.T) {
	var a clock.Anchors
	for i := range int64(20_000) {
		a.Get("", 7).Observe(1, 2)
		a.Get("", 1000+i).Observe(1, 2)
	}
	assert.LessOrEqual(t, a.Len(), 4096)
	_, ok := a.Get("", 7).Offset()
	assert.True(t, ok, "the one in use stays")
}

func BenchmarkStamp(b *testing.B) {
	s := clock.NewStamps(time.UTC)
	in := []byte("2026-02-11 16:40:00,120")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Parse(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAnchor(b *testing.B) {
	var all clock.Anchors
	b.ReportAllocs()
	for b.Loop() {
		all.Get("10.0.0.1", 7).Observe(5, 7)
	}
}
