package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// failed finds the component in the collector's error about a start: `failed to start "otlp" receiver: …`.
var failed = regexp.MustCompile(`failed to start "([^"]+)" (\w+)`)

// takenPort returns an error that says who holds the port and which key of the configuration sets the port, if err is of an address in use; else nil.
func (c *configChecker) takenPort(err error) error {
	listen, ok := errors.AsType[*net.OpError](err)
	if !ok || listen.Addr == nil || !errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	_, port, err2 := net.SplitHostPort(listen.Addr.String())
	if err2 != nil {
		return nil
	}
	// The part of the configuration that asked for the port: a component that the error names, else an extension, else the collector's own metrics.
	at := "service::telemetry"
	if m := failed.FindStringSubmatch(err.Error()); m != nil {
		at = m[2] + "s::" + m[1]
	} else if strings.Contains(err.Error(), "extension") {
		at = "extensions"
	}
	// The key below at with this port, as an endpoint or as a port. None has the port if it is the component's default: then the component is named.
	key := at
	walk(c.conf, "", func(k, last string, value any) {
		k = strings.TrimPrefix(k, "::")
		if !strings.HasPrefix(k, at+"::") {
			return
		}
		if _, p, err := net.SplitHostPort(fmt.Sprint(value)); err == nil && p == port || last == "port" && fmt.Sprint(value) == port {
			key = k
		}
	})
	text := fmt.Sprintf("port %s is taken by %s: stop that, or give '%s' another port", port, listener(port), key)
	if name := portKeys[key]; name != "" {
		text += fmt.Sprintf("; in the shipped configuration it is %s, 0 for a free one", name)
	}
	return errors.New(text)
}

// listener names the process that listens on a TCP port of this host, "jaeger (pid 4711)", by the tables of sockets in /proc. The processes of other users are
// not visible, and systems but Linux have no /proc: then it is "another process".
func listener(port string) string {
	const unknown = "another process"
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return unknown
	}
	suffix := fmt.Sprintf(":%04X", n) // ports are hexadecimal in the tables
	sockets := make(map[string]bool)  // those that listen, as links in /proc/PID/fd lead to them
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			// sl, local address, remote address, state (0A: listens), …, inode
			if f := strings.Fields(line); len(f) > 9 && strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
				sockets["socket:["+f[9]+"]"] = true
			}
		}
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && sockets[target] {
			pid := strings.Split(fd, "/")[2]
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), pid)
		}
	}
	return unknown
}
