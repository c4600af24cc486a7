package tail

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
)

type echo struct{ out *[]string }

func (e *echo) Line(l *Line) (Verdict, string) {
	*e.out = append(*e.out, string(l.Text))
	return Record, ""
}
func (e *echo) Expire(time.Time) {}
func (e *echo) Cut() Deliver     { return func(context.Context) error { return nil } }
func (e *echo) Save() []byte     { return nil }
func (e *echo) Restore([]byte)   {}

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "a.log")
	require.NoError(t, os.WriteFile(p, []byte("one\ntwo\r\nthree\rfour"), 0o600))
	cfg := DefaultConfig()
	cfg.Include = []string{dir + "/*.log"}
	var out []string
	c, err := ReadAll(t.Context(), cfg, Settings{ID: component.MustNewID("x"), Telemetry: componenttest.NewNopTelemetrySettings()}, func(*Stream) Handler { return &echo{&out} })
	require.NoError(t, err)
	fmt.Println(out, c)
	require.Equal(t, []string{"one", "two", "three", "four"}, out)
}

type nop struct{}

func (nop) Line(l *Line) (Verdict, string) { return Record, "" }
func (nop) Expire(time.Time)               {}
func (nop) Cut() Deliver                   { return func(context.Context) error { return nil } }
func (nop) Save() []byte                   { return nil }
func (nop) Restore([]byte)                 {}

func BenchmarkReadAll(b *testing.B) {
	dir := b.TempDir()
	p := filepath.Join(dir, "a.log")
	line := make([]byte, 165)
	for i := range line {
		line[i] = 'a' + byte(i%26)
	}
	line[164] = '\n'
	f, _ := os.Create(p)
	for range 200_000 {
		f.Write(line)
	}
	f.Close()
	cfg := DefaultConfig()
	cfg.Include = []string{p}
	b.SetBytes(165 * 200_000)
	b.ReportAllocs()
	for b.Loop() {
		c, err := ReadAll(b.Context(), cfg, Settings{ID: component.MustNewID("x"), Telemetry: componenttest.NewNopTelemetrySettings()}, func(*Stream) Handler { return nop{} })
		if err != nil || c.Lines != 200_000 {
			b.Fatal(err, c)
		}
	}
	b.ReportMetric(float64(b.N)*200_000/b.Elapsed().Seconds(), "lines/s")
}
