package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// portVariables name the ports of the shipped configurations; portKeys are their keys.
var (
	portVariables = []string{
		"TRAINBRIDGE_OTLP_PORT", "TRAINBRIDGE_OTLP_HTTP_PORT", "TRAINBRIDGE_METRICS_PORT", "TRAINBRIDGE_TELEMETRY_PORT", "TRAINBRIDGE_HEALTH_PORT",
	}
	portKeys = map[string]string{
		"receivers::otlp::protocols::grpc::endpoint":                                "TRAINBRIDGE_OTLP_PORT",
		"receivers::otlp::protocols::http::endpoint":                                "TRAINBRIDGE_OTLP_HTTP_PORT",
		"exporters::prometheus::endpoint":                                           "TRAINBRIDGE_METRICS_PORT",
		"service::telemetry::metrics::readers::0::pull::exporter::prometheus::port": "TRAINBRIDGE_TELEMETRY_PORT",
		"extensions::health_check::endpoint":                                        "TRAINBRIDGE_HEALTH_PORT",
	}
)

// choosePorts replaces each 0 by a free port, and returns the changed variables with their values: components do not log the port that the system chose.
func choosePorts() (chosen []string, err error) {
	host := os.Getenv("TRAINBRIDGE_LISTEN")
	if host == "" {
		host = "127.0.0.1"
	}
	for _, name := range portVariables {
		given := os.Getenv(name)
		if _, err := strconv.ParseUint(given, 10, 16); err != nil && given != "" {
			return nil, fmt.Errorf("%s is %q: a port is a number up to 65535, 0 for a free one", name, given)
		}
		if given != "0" {
			continue
		}
		port, err := freePort(host)
		if err != nil {
			return nil, fmt.Errorf("%s is 0, and TRAINBRIDGE_LISTEN has no free port: %w", name, err)
		}
		value := strconv.Itoa(port)
		chosen = append(chosen, name+"="+value)
		_ = os.Setenv(name, value)
	}
	return chosen, nil
}

// freePort is a free TCP port at an address of this host. On Linux a socket stays bound to the port, without listening, until the process ends: the system then
// gives the port to nobody who asks for any port, but to whoever asks for this number.
func freePort(host string) (int, error) {
	addr, err := net.ResolveTCPAddr("tcp", host+":0")
	if err != nil {
		return 0, err
	}
	family, at := unix.AF_INET, unix.Sockaddr(nil)
	if ip := addr.IP.To4(); ip != nil {
		at = &unix.SockaddrInet4{Addr: [4]byte(ip)}
	} else {
		family, at = unix.AF_INET6, &unix.SockaddrInet6{Addr: [16]byte(addr.IP.To16())}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	unix.CloseOnExec(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(fd, at); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	at, err = unix.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	if runtime.GOOS != "linux" {
		defer func() { _ = unix.Close(fd) }() // elsewhere an open socket would keep the component itself from listening
	}
	if v4, ok := at.(*unix.SockaddrInet4); ok {
		return v4.Port, nil
	}
	return at.(*unix.SockaddrInet6).Port, nil
}
