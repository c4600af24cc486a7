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

// failed finds the component in the collector's error about a start.
var failed = regexp.MustCompile(`failed to start "([^"]+)" (\w+)`)

// takenPort returns the error for an address in use, or nil for any other error.
func (c *configChecker) takenPort(err error) error {
	listen, ok := errors.AsType[*net.OpError](err)
	if !ok || listen.Addr == nil || !errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	_, port, err2 := net.SplitHostPort(listen.Addr.String())
	if err2 != nil {
		return nil
	}
	at := "service::telemetry"
	if m := failed.FindStringSubmatch(err.Error()); m != nil {
		at = m[2] + "s::" + m[1]
	} else if strings.Contains(err.Error(), "extension") {
		at = "extensions"
	}
	// Without a key the port is the component's default.
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

// listener names the process that listens on a TCP port of this host, as far as this user may see.
func listener(port string) string {
	const unknown = "another process"
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return unknown
	}
	suffix := fmt.Sprintf(":%04X", n)
	sockets := make(map[string]bool)
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
