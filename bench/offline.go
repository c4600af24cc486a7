package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// offlineTable tells what commands about finished logs take, beside programs that count lines, or sum up the same columns.
type offlineTable struct {
	title string
	rows  []offlineRow
}

// offlineRow is what a command on a log takes: the least times of the rounds, and the most memory.
type offlineRow struct {
	log, command string
	size         int64 // bytes
	cost
}

// cost is what a command takes.
type cost struct {
	cpu, wall time.Duration
	peak      float64 // MiB, of memory
}

// cores are those of the commands. Only with one is the CPU time the wall time: with two the garbage collector may run beside.
const oneCore, twoCores = "0", "0,1"

// sums are the programs for comparison with JSON lines: count, mean, median, P95 and last value of columns of the log.
var sums = []struct{ name, python string }{
	{"DuckDB", `import duckdb,sys; print(duckdb.connect(config={"threads": 1}).sql(f"""select count(*), avg(step_time_s), median(step_time_s),
		quantile_cont(step_time_s, .95), last(loss) from read_json({sys.argv[1]!r}, format='newline_delimited')""").fetchall())`},
	{"polars", `import polars as p,sys; t=p.col("step_time_s"); print(p.scan_ndjson(sys.argv[1]).select(p.len(), t.mean().alias("mean"),
		t.median().alias("median"), t.quantile(.95).alias("p95"), p.col("loss").last()).collect())`},
	{"Python's json", `import json,sys,statistics as s; r=[json.loads(l) for l in open(sys.argv[1])]; t=sorted(x["step_time_s"] for x in r)
print(len(r), s.fmean(t), s.median(t), t[len(t)*95//100], r[-1]["loss"])`},
}

// offline takes the time of report, check and grep for each kind of log, and for JSON lines of the sums. python runs the sums; a program without its
// package there is left out.
func (o *options) offline(python string) (*offlineTable, error) {
	out := &offlineTable{title: "finished log"}
	for i := range duels {
		d := &duels[i]
		log := filepath.Join(o.out, d.name+".log")
		t := &table{duel: d}
		if err := t.generate(o.gen, log, o.lines); err != nil {
			return nil, err
		}
		commands := [][]string{{o.bin, "report", log}, {o.bin, "check", log}, {"grep", "-c", "e", log}}
		names := []string{"report", "check", "grep -c"}
		if d.name == "JSONL" {
			for _, s := range sums {
				names, commands = append(names, s.name), append(commands, []string{python, "-c", s.python, log})
			}
		}
		for k, command := range commands {
			err := out.add(o, d.name, names[k], t.size, oneCore, command)
			if command[0] == python && err != nil {
				fmt.Fprintln(os.Stderr, "left out:", err)
			} else if err != nil {
				return nil, err
			}
		}
		if err := out.add(o, d.name, "report, two cores", t.size, twoCores, commands[0]); err != nil {
			return nil, err
		}
		if err := os.Remove(log); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// files takes the time of report for the same lines of JSON in more and more files: what a file costs.
func (o *options) files() (*offlineTable, error) {
	const lines = 20_000
	out := &offlineTable{title: strconv.Itoa(lines) + " lines of JSONL"}
	i := slices.IndexFunc(duels, func(d duel) bool { return d.name == "JSONL" })
	log, t := filepath.Join(o.out, "files.log"), &table{duel: &duels[i]}
	if err := t.generate(o.gen, log, lines); err != nil {
		return nil, err
	}
	defer os.Remove(log)
	text, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	for n := 1; n <= lines; n *= 10 {
		err := o.dealt(bytes.SplitAfter(bytes.TrimSpace(text), []byte("\n")), n, func(dir string) error {
			return out.add(o, fmt.Sprintf("%d files", n), "report", t.size, oneCore, []string{o.bin, "report", dir})
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// dealt writes lines to n files of a directory, each with as many lines that follow one another, for the call of f.
func (o *options) dealt(lines [][]byte, n int, f func(dir string) error) error {
	dir, err := os.MkdirTemp(o.out, "files")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for k := range n {
		part := lines[k*len(lines)/n : (k+1)*len(lines)/n]
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("train-%d.jsonl", k)), bytes.Join(part, nil), 0o600); err != nil {
			return err
		}
	}
	return f(dir)
}

// add runs a command in rounds and adds a row with the least times and the most memory.
func (t *offlineTable) add(o *options, log, name string, size int64, cores string, command []string) error {
	row := offlineRow{log: log, command: name, size: size}
	for round := range o.rounds {
		c, err := once(cores, command)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", name, log, err)
		}
		if round == 0 {
			row.cost = c
		}
		row.cost = cost{min(row.cpu, c.cpu), min(row.wall, c.wall), max(row.peak, c.peak)}
	}
	t.rows = append(t.rows, row)
	return nil
}

// once runs a command on some cores to its end. Its memory is looked at every few milliseconds: what the system tells at the end includes that of the bench,
// whose child the command is.
func once(cores string, command []string) (c cost, err error) {
	cmd := exec.Command("taskset", append([]string{"-c", cores}, command...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return c, err
	}
	p, ended := &process{cmd: cmd}, make(chan error)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(5 * time.Millisecond):
			if m, gone := p.memory(); gone == nil {
				c.peak = m.peak
			}
		}
	}
	c.cpu, c.wall = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), time.Since(begin)
	if problems := command[1] == "check" && cmd.ProcessState.ExitCode() == 1; err != nil && !problems {
		text := said.Bytes()
		return c, fmt.Errorf("%w: %s", err, text[max(0, len(text)-400):])
	}
	return c, nil
}

// print writes the table in Markdown.
func (t *offlineTable) print(w io.Writer) {
	fmt.Fprintf(w, "| %s | MB | command | CPU s | MB/s of CPU | wall ÷ CPU | peak MiB |\n|---|---|---|---|---|---|---|\n", t.title)
	for _, r := range t.rows {
		mb, cpu := float64(r.size)/1e6, r.cpu.Seconds()
		fmt.Fprintf(w, "| %s | %.0f | %s | %.2f | %.0f | %.2f | %.0f |\n", r.log, mb, r.command, cpu, mb/cpu, r.wall.Seconds()/cpu, r.peak)
	}
	fmt.Fprintln(w)
}
