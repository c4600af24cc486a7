package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is a running contender, pinned to core 0.
type process struct {
	cmd     *exec.Cmd
	log     string                   // its output
	ended   chan struct{}            // closed when the process has ended and is no zombie, whose CPU time could still be read
	threads map[string]time.Duration // CPU time of each thread at the last reading: ended threads still count
}

// start runs a process on the first core, and returns when the process has printed ready, or for an empty ready after a second. Without ready for
// 30 s the process is killed, and the error says so.
func start(dir string, command, env []string, ready string) (*process, error) {
	p := &process{log: dir + ".out", ended: make(chan struct{}), threads: map[string]time.Duration{}}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.cmd = exec.Command("taskset", append([]string{"-c", "0"}, command...)...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out // the defaults of the shipped configuration find no logs in dir
	p.cmd.Env = append(append(os.Environ(), "GOMAXPROCS=1"), env...)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	if ready == "" {
		time.Sleep(time.Second)
		return p, nil
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(p.log); err == nil && strings.Contains(string(text), ready) {
			return p, nil
		}
	}
	p.stop()
	return nil, fmt.Errorf("not ready after 30 s; see %s", p.log)
}

// stop kills the process.
func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// cpu is the CPU time of all threads up to now, by /proc/PID/task/*/schedstat. Threads that have ended since the last call count with their last reading,
// a thread that began and ended since then with nothing.
func (p *process) cpu() (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the process has ended; see %s", p.log)
	}
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has just ended
		}
		p.threads[f], err = schedstat(text)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", f, err)
		}
	}
	sum := time.Duration(0)
	for _, t := range p.threads {
		sum += t
	}
	return sum, nil
}

// schedstat reads the first field of /proc/PID/task/TID/schedstat: nanoseconds on a core.
func schedstat(text []byte) (time.Duration, error) {
	ran, _, ok := bytes.Cut(text, []byte(" "))
	if !ok {
		return 0, fmt.Errorf("not what schedstat has: %q", text)
	}
	ns, err := strconv.ParseInt(string(ran), 10, 64)
	return time.Duration(ns), err
}

// memory is in MiB: anonymous memory, file mappings (mainly the process's own binary, shared between processes), and the peak of the sum.
type memory struct{ anon, file, peak float64 }

// memory is the memory of the process now, and its peak.
func (p *process) memory() (memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return memory{}, err
	}
	return status(text)
}

// status reads /proc/PID/status (proc(5)): lines like "RssAnon:	   12345 kB".
func status(text []byte) (m memory, err error) {
	for key, to := range map[string]*float64{"RssAnon": &m.anon, "RssFile": &m.file, "VmHWM": &m.peak} {
		_, rest, _ := bytes.Cut(text, []byte("\n"+key+":"))
		fields := bytes.Fields(rest)
		if len(fields) == 0 {
			return memory{}, errors.New("no " + key + " in /proc/PID/status")
		}
		kib, err := strconv.ParseFloat(string(fields[0]), 64)
		if err != nil {
			return memory{}, fmt.Errorf("%s: %w", key, err)
		}
		*to = kib / 1024
	}
	return m, nil
}
