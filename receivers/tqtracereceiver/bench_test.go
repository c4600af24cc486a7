package tqtracereceiver

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadata"
)

// noLines is a stream that keeps nothing.
type noLines struct{ n tail.Held }

func (l *noLines) Hold() tail.Held { l.n++; return l.n }
func (*noLines) Release(tail.Held) {}
func (*noLines) Place() tail.Place { return 0 }
func (*noLines) Path() string      { return "/logs/run/driver.log" }
func (*noLines) ByArrival()        {}

// typicalLog is the output of one driver: workers of several pids, a few concurrent calls in each, DETAIL on.
func typicalLog(calls int, ray bool) [][]byte {
	r := rand.New(rand.NewPCG(1, 1))
	type timed struct {
		at   int64
		text string
	}
	var lines []timed
	for i := range calls {
		pid := 2642000 + i%8
		start := int64(98_231_402_113) + int64(i)*40_000 + r.Int64N(3000)
		get, comp, put := 20_000+r.Int64N(30_000), 500_000+r.Int64N(500_000), 30_000+r.Int64N(60_000)
		g0 := start + 20
		g1 := g0 + get
		c0 := g1 + 10
		c1 := c0 + comp
		p0 := c1 + 20
		p1 := p0 + put
		us := func(v int64) string { return fmt.Sprintf("%d.%06d", v/1e6, v%1e6) }
		add := func(at int64, level, format string, args ...any) {
			stamp := time.Unix(1770828000, 0).UTC().Add(time.Duration(at-98_231_402_113) * time.Microsecond).Format("2006-01-02 15:04:05,000")
			text := level + ":" + stamp + ":" + fmt.Sprintf(format, args...)
			if ray {
				text = fmt.Sprintf("\x1b[36m(AgentLoopWorker pid=%d)\x1b[0m %s", pid, text)
			}
			lines = append(lines, timed{at, text})
		}
		tr := "[TQ-TRACE] trace_id=N/A | func=generate_sequences"
		add(start, "INFO", "%s | pid=%d | stage=FUNCTION_START | timestamp=%s", tr, pid, us(start))
		add(start+1, "INFO", "Task generate_sequences (pid=%d) is getting len_samples=32, global_idx=[0, 1, 2, 3]", pid)
		add(g0, "INFO", "%s | stage=GET_START | batch_size=32 | timestamp=%s", tr, us(g0))
		add(g0+10, "DEBUG", "[TQ-DETAIL] trace_id=N/A | stage=TQ_CLIENT_GET_START | batch_size=32 | timestamp=%s", us(g0+10))
		add(g1-100, "DEBUG", "[TQ-DETAIL] trace_id=N/A | stage=TQ_CLIENT_GET_END | duration=%ss | data_size_mb=1.58 | timestamp=%s", us(g1-100-g0-10), us(g1-100))
		add(g1, "INFO", "%s | stage=GET_END | duration=%ss | timestamp=%s", tr, us(get), us(g1))
		add(c0, "INFO", "%s | stage=COMPUTE_START | timestamp=%s", tr, us(c0))
		add(c1, "INFO", "%s | stage=COMPUTE_END | duration=%ss | timestamp=%s", tr, us(comp), us(c1))
		add(p0, "INFO", "%s | stage=PUT_START | timestamp=%s", tr, us(p0))
		add(p0+1, "INFO", "Task generate_sequences (pid=%d) putting output data to TransferQueue with batch_size=torch.Size([32]),", pid)
		add(p0+2, "INFO", "tensordict keys=['prompts', 'responses', 'response_mask', 'input_ids', 'attention_mask', 'position_ids']")
		add(
			p0+20, "DEBUG",
			"[TQ-DETAIL] trace_id=N/A | func=generate_sequences | pid=%d | stage=TQ_CLIENT_PUT_START | batch_size=torch.Size([32]) | data_size_mb=12.63 | timestamp=%s",
			pid, us(p0+20),
		)
		add(
			p1-10, "DEBUG",
			"[TQ-DETAIL] trace_id=N/A | func=generate_sequences | pid=%d | stage=TQ_CLIENT_PUT_END | duration=%ss | throughput_mbps=152.49 | timestamp=%s", pid,
			us(p1-10-p0-30), us(p1-10),
		)
		add(p1, "INFO", "%s | stage=PUT_END | duration=%ss | timestamp=%s", tr, us(put), us(p1))
		add(
			p1, "INFO", "%s | stage=FUNCTION_END | total_duration=%ss | get_ratio=0.85%% | compute_ratio=97.81%% | put_ratio=1.34%% | timestamp=%s", tr,
			us(p1-start), us(p1),
		)
	}
	slices.SortStableFunc(lines, func(a, b timed) int { return int(a.at - b.at) })
	out := make([][]byte, len(lines))
	for i, l := range lines {
		out[i] = []byte(l.text)
	}
	return out
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The handler from line to delivered pdata. cpu-ns/line is the measure on a busy machine.
func BenchmarkHandler(b *testing.B) {
	for _, ray := range []bool{false, true} {
		for _, build := range []bool{false, true} {
			b.Run(fmt.Sprintf("ray=%v/pdata=%v", ray, build), func(b *testing.B) {
				lines := typicalLog(20_000, ray)
				r := prepared(b, consumertest.NewNop(), consumertest.NewNop())
				ctx := context.Background()
				b.ReportAllocs()
				n := 0
				from := cpu()
				for b.Loop() {
					h := r.handle(&noLines{})
					l := tail.Line{Observed: observed, ModTime: observed}
					for i, text := range lines {
						l.Text = text
						h.Line(&l)
						if i%1500 == 1499 {
							if !build {
								h.batch.out.Reset()
							} else if d := h.Cut(); d != nil {
								if err := d.Send(ctx); err != nil {
									b.Fatal(err)
								}
							}
						}
					}
					n += len(lines)
				}
				b.ReportMetric(float64(cpu()-from)/float64(n), "cpu-ns/line")
				b.ReportMetric(float64(b.Elapsed())/float64(n), "ns/line")
			})
		}
	}
}

// The same with tail: from the file to delivered pdata.
func BenchmarkReadAll(b *testing.B) {
	for _, ray := range []bool{false, true} {
		b.Run(fmt.Sprintf("ray=%v", ray), func(b *testing.B) {
			path := filereceivertest.Put(b, b.TempDir(), "x.log", string(bytes.Join(typicalLog(40_000, ray), []byte("\n")))+"\n")
			cfg := createDefaultConfig().(*Config)
			cfg.Include = []string{path}
			set := receivertest.NewNopSettings(metadata.Type)
			b.ReportAllocs()
			n := int64(0)
			from := cpu()
			for b.Loop() {
				c, err := filereceiver.ReadAll(context.Background(), set, cfg, makeParts, nil, consumertest.NewNop(), consumertest.NewNop())
				if err != nil {
					b.Fatal(err)
				}
				n += c.Lines
			}
			b.ReportMetric(float64(cpu()-from)/float64(n), "cpu-ns/line")
		})
	}
}
