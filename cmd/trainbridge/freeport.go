package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// portVariables are the environment variables with the ports of the shipped configurations; portKeys says which key of the configuration each variable sets.
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

// choosePorts replaces each 0 in portVariables by a free port, and returns the changed variables as "NAME=port". The command prints them: with a port 0 of
// their own, components would not log the port that the system chose.
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

// freePort finds a free TCP port at an address of this host, and on Linux keeps the port for the component that will listen: a socket stays bound to the port
// until the process ends. It does not listen and has SO_REUSEADDR, as the component's socket will have. Linux then lets the component listen at this number,
// but gives the number to nobody who asks for any free port.
func freePort(host string) (port int, err error) {
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
	defer func() {
		// On systems but Linux the bound socket would keep the component itself from listening.
		if err != nil || runtime.GOOS != "linux" {
			_ = unix.Close(fd)
		}
	}()
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
	if v4, ok := at.(*unix.SockaddrInet4); ok {
		return v4.Port, nil
	}
	return at.(*unix.SockaddrInet6).Port, nil
}
