// Command bench runs the collector and its peer side by side: the same file, the same core, the same sink, one after
// the other in turn. It prints a table with ratios and asserts nothing.
//
// The collector is pinned to core 0 with GOMAXPROCS=1; this program, which is the sink, should be pinned to another
// (bench/run.sh does).
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // for the second table

	"github.com/trainbridge/trainbridge/internal/fakenvml"
)

func main() {
	bin := flag.String("bin", "bin/trainbridge", "collector")
	out := flag.String("out", "bench/out", "working directory")
	lines := flag.Int64("lines", 1_000_000, "lines of the log")
	rounds := flag.Int("rounds", 3, "times each contender runs; the table has the medians")
	idle := flag.Int("idle-files", 10_000, "files of the idle test; 0: leave it out")
	only := flag.String("only", "", "one duel: tq, jsonl, megatron, perf_monitor, zmq or nccl, or gpus; without the idle test")
	flag.Parse()
	if err := run(*bin, *out, *only, *lines, *rounds, *idle); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type result struct {
	cpu   time.Duration // user + system from the file's appearance to the last item's arrival
	wall  time.Duration
	peak  int64 // bytes, VmHWM
	items int64 // spans or log records that arrived
}

func run(bin, out, only string, lines int64, rounds, idle int) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, d := range duels {
		if only != "" && only != d.name {
			continue
		}
		if err := d.run(bin, out, lines, rounds); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	if only == "" || only == "gpus" {
		if err := gpus(bin, out); err != nil {
			return fmt.Errorf("gpus: %w", err)
		}
	}
	if idle > 0 && only == "" {
		return idleFiles(bin, out, idle, "tq_trace", "file_log_tq")
	}
	return nil
}

// duels are the contenders, ours first, on a log that `trainbridge gen` writes.
var duels = []duel{
	{
		name: "tq", ours: "tq_trace", peer: "file_log_tq", peerParser: "regex_parser",
		// One process writes the log, so that it is what a worker's file is.
		gen: func(lines int64) []string {
			const linesPerBatch = 4 * 3 * 15 // coroutines × functions × lines of a function
			return []string{"tq", "--prefix", "python", "--workers", "1", "--concurrency", "4", "--batches", strconv.FormatInt(max(1, lines/linesPerBatch), 10)}
		},
	},
	{
		name: "jsonl", ours: "train_log", peer: "file_log_json", peerParser: "json_parser",
		gen: func(lines int64) []string {
			return []string{"jsonl", "--fields", "full", "--steps", strconv.FormatInt(lines, 10)}
		},
	},
	{
		name: "megatron", ours: "flagscale", peer: "file_log_megatron", peerParser: "regex_parser",
		gen: func(lines int64) []string {
			return []string{"megatron", "--log-interval", "1", "--eval-interval", "0", "--timers=false", "--prefix", "none", "--steps", strconv.FormatInt(lines/2, 10)}
		},
	},
	{
		name: "perf_monitor", ours: "flagscale", peer: "file_log_perf_monitor", peerParser: "regex_parser",
		gen: func(lines int64) []string {
			return []string{"flagscale", "--interval", "1", "--steps", strconv.FormatInt(lines, 10)}
		},
	},
	{
		name: "zmq", ours: "zmq_rpc", peer: "file_log_zmq", peerParser: "regex_parser",
		gen: func(lines int64) []string {
			return []string{"zmq", "--no-footer", "--lines", strconv.FormatInt(lines, 10)}
		},
	},
	{
		name: "nccl", ours: "nccl", peer: "file_log_nccl", peerParser: "json_parser",
		// One process with the 8 GPUs of a node writes one file: NCCL Inspector v4.0.
		gen: func(lines int64) []string {
			const ranks, collectives = 8, 4 // per step
			return []string{
				"nccl", "--ranks", strconv.Itoa(ranks), "--nodes", "1", "--ranks-per-file", strconv.Itoa(ranks), "--collectives-per-step", strconv.Itoa(collectives),
				"--steps", strconv.FormatInt(max(1, lines/(ranks*collectives)), 10),
			}
		},
	},
}

// duel is one kind of log. ours and peer name files in bench/config, also several, of which later files change earlier ones.
type duel struct {
	name, ours, peer, peerParser string
	gen                          func(lines int64) []string
}

func (d *duel) run(bin, out string, lines int64, rounds int) error {
	log := filepath.Join(out, d.name+".log")
	total, size, err := generate(bin, log, d.gen(lines))
	if err != nil {
		return err
	}
	fmt.Printf("## %s: %d lines, %.1f MB, %.0f B per line\n\n", d.name, total, float64(size)/1e6, float64(size)/float64(total))
	contenders := []struct {
		name, config string
		want         int64 // items that are to arrive; 0: the run ends when nothing comes any more
		env          []string
	}{
		{d.ours + " → train_perf → OTLP and train_metrics, acks", d.ours + " as_shipped", 0, nil},
		{d.ours + " → train_perf → OTLP, acks", d.ours, 0, nil},
		// The peer's job alone: parse and send.
		{d.ours + " → OTLP, acks", d.ours, 0, []string{"BENCH_PROCESSORS=[]"}},
		// The peer runs as in a stock collector, with Go's own GOGC; trainbridge sets 200.
		{"file_log + " + d.peerParser + " → OTLP", d.peer, total, []string{"GOGC=100"}},
	}
	for _, compression := range []string{"none", "gzip"} {
		fmt.Printf("compression %s\n\n", compression)
		results := make([][]result, len(contenders))
		for range rounds {
			for i, c := range contenders {
				r, err := measure(bin, out, log, c.config, c.want, append(slices.Clone(c.env), "BENCH_COMPRESSION="+compression)...)
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				results[i] = append(results[i], r)
			}
		}
		fmt.Println("| contender | CPU s | k lines/s per CPU s | spread | wall s | peak MiB | arrived |")
		fmt.Println("|---|---|---|---|---|---|---|")
		speed := make([]float64, len(contenders))
		for i, c := range contenders {
			slices.SortFunc(results[i], func(a, b result) int { return cmp.Compare(a.cpu, b.cpu) })
			mid, low, high := results[i][rounds/2], results[i][0], results[i][rounds-1]
			speed[i] = float64(total) / mid.cpu.Seconds()
			peak := slices.MaxFunc(results[i], func(a, b result) int { return cmp.Compare(a.peak, b.peak) }).peak
			fmt.Printf("| %s | %.2f | %.0f | ±%.0f %% | %.2f | %.0f | %d |\n", c.name, mid.cpu.Seconds(), speed[i]/1e3,
				50*(high.cpu-low.cpu).Seconds()/mid.cpu.Seconds(), mid.wall.Seconds(), float64(peak)/(1<<20), mid.items)
		}
		fmt.Printf(
			"| **ratio** | | **%.1f×**, without train_metrics **%.1f×**, without train_perf **%.1f×** | | | | |\n\n", speed[0]/speed[3], speed[1]/speed[3],
			speed[2]/speed[3],
		)
	}
	return nil
}

// generate writes a log and returns its lines and bytes. A format that writes several files into a directory writes here only the file that is read.
func generate(bin, log string, args []string) (total, size int64, err error) {
	dir := log + ".d"
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(log), os.MkdirAll(dir, 0o755)); err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	to := filepath.Join(dir, "x.log")
	written, several := map[string]string{"flagscale": "perf_metrics_*.log", "nccl": "*-pid*.log"}[args[0]]
	if several {
		to = filepath.Join(dir, "x")
	}
	cmd := exec.Command(bin, slices.Concat([]string{"gen"}, args, []string{"--out", to, "--seed", "1", "--truth", "none"})...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return 0, 0, err
	}
	if several {
		found, err := filepath.Glob(filepath.Join(to, written))
		if err != nil || len(found) != 1 {
			return 0, 0, fmt.Errorf("%d %s in %s: %w", len(found), written, to, err)
		}
		to = found[0]
	}
	if err := os.Rename(to, log); err != nil {
		return 0, 0, err
	}
	raw, err := os.ReadFile(log)
	return int64(bytes.Count(raw, []byte("\n"))), int64(len(raw)), err
}

// sink counts what arrives over OTLP.
type sink struct {
	addr  string
	items atomic.Int64
	srv   *grpc.Server
}

type traceServer struct {
	ptraceotlp.UnimplementedGRPCServer
	n *atomic.Int64
}

func (s *traceServer) Export(_ context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.n.Add(int64(r.Traces().SpanCount()))
	return ptraceotlp.NewExportResponse(), nil
}

type logServer struct {
	plogotlp.UnimplementedGRPCServer
	n *atomic.Int64
}

func (s *logServer) Export(_ context.Context, r plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	s.n.Add(int64(r.Logs().LogRecordCount()))
	return plogotlp.NewExportResponse(), nil
}

func newSink() (*sink, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{addr: ln.Addr().String(), srv: grpc.NewServer()}
	ptraceotlp.RegisterGRPCServer(s.srv, &traceServer{n: &s.items})
	plogotlp.RegisterGRPCServer(s.srv, &logServer{n: &s.items})
	go func() { _ = s.srv.Serve(ln) }()
	return s, nil
}

// quiet is how long nothing must arrive until a run counts as done, where the number of items is not known.
const quiet = 2 * time.Second

func measure(bin, out, log, config string, want int64, env ...string) (result, error) {
	s, err := newSink()
	if err != nil {
		return result{}, err
	}
	defer s.srv.Stop()
	dir, err := os.MkdirTemp(out, "run")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	col, err := start(bin, config, filepath.Join(dir, "*.log"), dir, s.addr, env...)
	if err != nil {
		return result{}, err
	}
	defer col.stop()

	before, err := col.cpu()
	if err != nil {
		return result{}, err
	}
	begin := time.Now()
	// A hard link makes the whole file appear at once, without the cost of a copy.
	if err := os.Link(log, filepath.Join(dir, "verl.log")); err != nil {
		return result{}, err
	}
	wall, after := time.Duration(0), before
	for n, since := int64(0), begin; want == 0 || n < want; time.Sleep(2 * time.Millisecond) {
		now := time.Now()
		if now.Sub(begin) > 5*time.Minute {
			return result{}, fmt.Errorf("after 5 minutes %d of %d items have arrived; see %s", s.items.Load(), want, col.log)
		}
		if got := s.items.Load(); got > n {
			n, since = got, now
			wall = now.Sub(begin)
			if after, err = col.cpu(); err != nil {
				return result{}, err
			}
		} else if want == 0 && n > 0 && now.Sub(since) > quiet {
			break
		}
	}
	peak, err := col.peak()
	return result{cpu: after - before, wall: wall, peak: peak, items: s.items.Load()}, err
}

func idleFiles(bin, out string, n int, ours, peer string) error {
	dir, err := os.MkdirTemp(out, "idle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i := range n {
		line := fmt.Sprintf("INFO:2026-02-11 16:40:00,120:[TQ-LOG] op=TQ_PUT | func=fit:%d | stage=END | duration=0.031187s\n", i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("worker-%05d.err", i)), []byte(line), 0o644); err != nil {
			return err
		}
	}
	return waiting(bin, fmt.Sprintf("%d idle files", n), dir, 30*time.Second, []waiter{{"tq_trace", ours, nil}, {"file_log", peer, []string{"GOGC=100"}}})
}

// gpus has nvml sample 8 GPUs of internal/fakenvml once a second, beside the same collector without nvml. The time that a real driver takes is not measured.
func gpus(bin, out string) error {
	dir, err := os.MkdirTemp(out, "gpus")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := fakenvml.BuildDir(dir); err != nil {
		return err
	}
	state, err := fakenvml.New(filepath.Join(dir, "state"), "devices 8\n")
	if err != nil {
		return err
	}
	defer state.Close()
	env := []string{"LD_LIBRARY_PATH=" + dir, fakenvml.Env + "=" + state.Path()}
	return waiting(bin, "8 GPUs at 1 Hz", dir, 60*time.Second, []waiter{{"with nvml", "nvml", env}, {"without", "nvml_none", env}})
}

// waiter is a collector whose files, if any, do not change.
type waiter struct {
	name, config string
	env          []string
}

// waiting measures what collectors take while nothing happens.
func waiting(bin, what, dir string, span time.Duration, waiters []waiter) error {
	const settle = 30 * time.Second
	fmt.Printf("| %s, after %v | %% of a core | peak MiB |\n|---|---|---|\n", what, settle)
	for _, w := range waiters {
		s, err := newSink()
		if err != nil {
			return err
		}
		col, err := start(bin, w.config, filepath.Join(dir, "*.err"), dir, s.addr, w.env...)
		if err != nil {
			return err
		}
		time.Sleep(settle)
		a, errA := col.cpu()
		time.Sleep(span)
		b, errB := col.cpu()
		peak, errP := col.peak()
		col.stop()
		s.srv.Stop()
		if err := errors.Join(errA, errB, errP); err != nil {
			return err
		}
		if n := s.items.Load(); n > 0 {
			w.name += fmt.Sprintf(" (%d items arrived)", n)
		}
		fmt.Printf("| %s | %.2f | %.0f |\n", w.name, 100*(b-a).Seconds()/span.Seconds(), float64(peak)/(1<<20))
	}
	fmt.Println()
	return nil
}

// collector is a running process, pinned to core 0.
type collector struct {
	cmd *exec.Cmd
	log string
}

func start(bin, config, logs, state, sink string, env ...string) (*collector, error) {
	logPath := filepath.Join(filepath.Dir(state), "collector.log")
	logFile, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	args := []string{"-c", "0", bin}
	for _, name := range append([]string{"common"}, strings.Fields(config)...) {
		args = append(args, "--config", "bench/config/"+name+".yaml")
	}
	cmd := exec.Command("taskset", args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "BENCH_LOGS="+logs, "BENCH_STATE="+state, "BENCH_SINK="+sink, "OTEL_TRACES_SAMPLER=always_off")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = logFile
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &collector{cmd: cmd, log: logPath}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(logPath)
		if err == nil && strings.Contains(string(text), "Everything is ready") {
			return c, nil
		}
		if time.Now().After(deadline) {
			c.stop()
			return nil, fmt.Errorf("the collector did not start within 30 s; see %s", logPath)
		}
	}
}

func (c *collector) stop() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// cpu is the user and system time so far: fields 14 and 15 of proc(5) stat, in ticks of 10 ms.
func (c *collector) cpu() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, err
}

// peak is VmHWM, the largest resident size so far, in bytes.
func (c *collector) peak() (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(raw), "VmHWM:")
	if !ok {
		return 0, errors.New("no VmHWM in /proc/PID/status")
	}
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return kib << 10, err
}
