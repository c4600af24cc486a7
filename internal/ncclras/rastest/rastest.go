// Package rastest is a RAS server for tests, written by NCCL's source: NVIDIA/nccl src/ras/client_support.cc at v2.28.9-1 (dbc86fd0) and v2.30.7-1
// (73cf1122). The functions name theirs and the lines of both versions.
package rastest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainbridge/trainbridge/internal/ncclras"
)

// Versions, different for a client: without JSON (v2.28.3-1, f1308997), with JSON and its flaws, and without these.
const (
	V2283 = "2.28.3"
	V2289 = "2.28.9"
	V2307 = "2.30.7"
)

// Server is a process of a job.
type Server struct {
	// Addr is host:port.
	Addr string
	// Version is a V… value.
	Version string

	mu       sync.Mutex // guards commands
	answer   func() *ncclras.Answer
	commands []string
}

// Serve starts a server until the end of the test. answer is called for each STATUS.
func Serve(tb testing.TB, version string, answer func() *ncclras.Answer) *Server {
	tb.Helper()
	s := &Server{Version: version, answer: answer}
	s.Addr = Listen(tb, s.talk)
	return s
}

// Commands are all commands until now.
func (s *Server) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.commands...)
}

// Listen has each connection talked to by talk, and returns host:port. Connections are closed when talk returns, and by the end of the test.
func Listen(tb testing.TB, talk func(net.Conn)) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var loops sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	loops.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			loops.Go(func() {
				talk(conn)
				_ = conn.Close()
			})
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		loops.Wait()
	})
	return l.Addr().String()
}

// talk answers the commands of a connection, a line each, until STATUS, as NCCL's rasClientEventLoop does: 2.28.9 lines 310-415, 2.30.7 lines 305-454.
func (s *Server) talk(conn net.Conn) {
	in := bufio.NewReaderSize(conn, 1024) // recvBuffer
	json := false
	for {
		line, err := in.ReadSlice('\n') // "RAS excessively long input line; terminating the client socket"
		if err != nil {
			return
		}
		cmd := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		s.mu.Lock()
		s.commands = append(s.commands, cmd)
		s.mu.Unlock()
		lower := strings.ToLower(cmd) // strcasecmp, strncasecmp
		reply := "ERROR: Unknown command " + cmd + "\n"
		switch {
		case strings.HasPrefix(lower, "client protocol "):
			reply = "SERVER PROTOCOL 2\n"
		case strings.HasPrefix(lower, "timeout "):
			reply = "OK\n"
			if n, err := strconv.Atoi(lower[len("timeout "):]); err != nil || n < 0 {
				reply = "ERROR: Invalid timeout value " + cmd[len("timeout "):] + "\n"
			}
		case s.Version != V2283 && strings.HasPrefix(lower, "set format "):
			format := lower[len("set format "):]
			reply = "OK\n"
			if format != "text" && format != "json" {
				reply = "ERROR: Invalid format " + cmd[len("set format "):] + "\n"
			}
			json = format == "json"
		case s.Version == V2307 && (lower == "monitor" || strings.HasPrefix(lower, "monitor ")):
			reply = "OK\n"
			for group := range strings.SplitSeq(strings.TrimLeft(cmd[len("monitor"):], " "), ",") {
				if g := strings.ToLower(group); g != "" && g != "lifecycle" && g != "trace" && g != "all" {
					reply = "ERROR: Invalid event group '" + group + "'\n"
					break
				}
			}
		case lower == "status" || lower == "verbose status":
			if json {
				Write(conn, s.Version, s.answer())
			} else {
				_, _ = fmt.Fprintf(conn, "NCCL version %s compiled with CUDA 12.9\n", s.Version) // the text form, never read
			}
			return // RAS_CLIENT_FINISHED
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

// Write prints an answer as a version of NCCL does: rasDumpCommsToJSON, 2.28.9 lines 2060-2130, 2.30.7 lines 2095-2164.
func Write(to io.Writer, version string, a *ncclras.Answer) {
	w := new(bytes.Buffer)
	defer func() { _, _ = to.Write(w.Bytes()) }() // whoever has asked may be gone
	// jsonWriteHeader, 2.28.9 lines 1890-1899, 2.30.7 lines 1919-1928
	fmt.Fprintf(w, "{\n")
	fmt.Fprintf(w, "  \"nccl_version\": \"%s\",\n", version)
	fmt.Fprintf(w, "  \"cuda_runtime_version\": %d,\n", a.CUDARuntime)
	fmt.Fprintf(w, "  \"cuda_driver_version\": %d,\n", a.CUDADriver)
	fmt.Fprintf(w, "  \"timestamp\": \"%s\",\n", a.Timestamp)
	fmt.Fprintf(w, "  \"communicators_count\": %d,\n", len(a.Communicators))
	fmt.Fprintf(w, "  \"communicators\": [\n")
	for i := range a.Communicators {
		writeComm(w, version, a, &a.Communicators[i], i == 0)
	}
	// jsonWriteFooter, 2.28.9 lines 1980-1987, 2.30.7 lines 2009-2016
	fmt.Fprintf(w, "\n  ],\n")
	fmt.Fprintf(w, "  \"ras\": {\n")
	fmt.Fprintf(w, "    \"collection_time_sec\": %.3f,\n", a.Collected)
	fmt.Fprintf(w, "    \"timeouts_count\": %d\n", a.Timeouts)
	fmt.Fprintf(w, "  }\n")
	fmt.Fprintf(w, "}\n")
}

// writeComm prints an element of communicators, with its ranks.
func writeComm(w *bytes.Buffer, version string, a *ncclras.Answer, c *ncclras.Communicator, first bool) {
	// jsonStartCommunicator, 2.28.9 lines 1902-1912, 2.30.7 lines 1931-1941
	if !first {
		fmt.Fprintf(w, ",\n")
	}
	fmt.Fprintf(w, "    {\n")
	fmt.Fprintf(w, "      \"hash\": \"%s\",\n", c.Hash) // 0x%lx
	fmt.Fprintf(w, "      \"secondary_hash\": \"%s\",\n", c.Secondary)
	fmt.Fprintf(w, "      \"size\": %d,\n", c.Size)
	fmt.Fprintf(w, "      \"ranks_count\": %d,\n", len(c.Ranks))
	fmt.Fprintf(w, "      \"missing_ranks_count\": %d,\n", len(c.Missing))
	fmt.Fprintf(w, "      \"ranks\": [\n")
	for i := range c.Ranks {
		writeRank(w, a, &c.Ranks[i], i == 0)
	}
	// jsonStartMissingRanks, 2.28.9 lines 1946-1951, 2.30.7 lines 1975-1980
	fmt.Fprintf(w, "\n      ],\n")
	fmt.Fprintf(w, "      \"missing_ranks\": [\n")
	for i := range c.Missing {
		writeMissing(w, version, &c.Missing[i], i == 0)
	}
	// jsonEndCommunicator, 2.28.9 lines 1974-1977, 2.30.7 lines 2003-2006
	fmt.Fprintf(w, "\n      ]\n")
	fmt.Fprintf(w, "    }")
}

// writeRank prints an element of ranks, as jsonWriteRankData does: 2.28.9 lines 1915-1943, 2.30.7 lines 1944-1972.
func writeRank(w *bytes.Buffer, a *ncclras.Answer, r *ncclras.Rank, first bool) {
	if !first {
		fmt.Fprintf(w, ",\n")
	}
	fmt.Fprintf(w, "        {\n")
	fmt.Fprintf(w, "          \"rank\": %d,\n", r.Rank)
	fmt.Fprintf(w, "          \"host\": \"%s\",\n", r.Host)
	fmt.Fprintf(w, "          \"pid\": %d,\n", r.PID)
	fmt.Fprintf(w, "          \"cuda_dev\": %d,\n", r.CUDADev)
	fmt.Fprintf(w, "          \"nvml_dev\": %d,\n", r.NVMLDev)
	fmt.Fprintf(w, "          \"status\": {\n")
	fmt.Fprintf(w, "            \"init_state\": %d,\n", int64(r.InitState))
	fmt.Fprintf(w, "            \"async_error\": %d,\n", int64(r.AsyncError))
	fmt.Fprintf(w, "            \"finalize_called\": %t,\n", r.FinalizeCalled)
	fmt.Fprintf(w, "            \"destroy_flag\": %t,\n", r.DestroyFlag)
	fmt.Fprintf(w, "            \"abort_flag\": %t\n", r.AbortedFlag)
	fmt.Fprintf(w, "          },\n")
	fmt.Fprintf(w, "          \"collective_counts\": {\n")
	for op, name := range a.Operations {
		fmt.Fprintf(w, "            \"%s\": %d", name, r.Counts[op])
		if op < len(a.Operations)-1 {
			fmt.Fprintf(w, ",")
		}
		fmt.Fprintf(w, "\n")
	}
	fmt.Fprintf(w, "          }\n")
	fmt.Fprintf(w, "        }")
}

// writeMissing prints an element of missing_ranks, as jsonWriteMissingRank does: 2.28.9 lines 1954-1971, without the comma behind nvml_dev, and 2.30.7 lines
// 1983-2000.
func writeMissing(w *bytes.Buffer, version string, m *ncclras.Missing, first bool) {
	if !first {
		fmt.Fprintf(w, ",\n")
	}
	fmt.Fprintf(w, "        {\n")
	fmt.Fprintf(w, "          \"rank\": %d,\n", m.Rank)
	fmt.Fprintf(w, "          \"host\": \"%s\",\n", m.Host)
	fmt.Fprintf(w, "          \"pid\": %d,\n", m.PID)
	fmt.Fprintf(w, "          \"cuda_dev\": %d,\n", m.CUDADev)
	if version == V2289 {
		fmt.Fprintf(w, "          \"nvml_dev\": %d\n", m.NVMLDev)
	} else {
		fmt.Fprintf(w, "          \"nvml_dev\": %d,\n", m.NVMLDev)
	}
	fmt.Fprintf(w, "          \"status\": {\n")
	fmt.Fprintf(w, "            \"unresponsive\": %t,\n", m.Unresponsive)
	fmt.Fprintf(w, "            \"considered_dead\": %t\n", m.Dead)
	fmt.Fprintf(w, "          }\n")
	fmt.Fprintf(w, "        }")
}

// Job is an answer with a communicator of n ranks, eight on a host, with all counts 0.
func Job(n int) *ncclras.Answer {
	a := &ncclras.Answer{
		Version: V2307, CUDARuntime: 12090, CUDADriver: 12090, Timestamp: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC).Format(time.DateTime),
		Operations: []string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}, Collected: 0.012,
	}
	a.Communicators = []ncclras.Communicator{Comm(0, n)}
	return a
}

// Comm is a communicator of the ranks from first to end-1 of a job, numbered from 0.
func Comm(first, end int) ncclras.Communicator {
	c := ncclras.Communicator{
		Hash: fmt.Sprintf("0x%x", 0xfa93daea854b060b-uint64(first)), Secondary: fmt.Sprintf("0x%x:0x%x", 0x1d2f^first, 0x77aa^end), Size: int64(end - first),
	}
	for i := first; i < end; i++ {
		c.Ranks = append(c.Ranks, ncclras.Rank{Rank: int32(i - first), Process: Process(i), Counts: make([]uint64, 5)})
	}
	return c
}

// Process is the process of a rank of a job.
func Process(rank int) ncclras.Process {
	return ncclras.Process{
		Host: fmt.Sprintf("10.137.%d.%d", rank/8/250, 1+rank/8%250), PID: int64(323000 + rank), CUDADev: int64(rank % 8), NVMLDev: int64(rank % 8),
	}
}
