package main

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each 0 becomes a port free to listen on; other values stay.
func TestChoosePorts(t *testing.T) {
	for _, host := range []string{"", "0.0.0.0", "[::1]", "localhost"} {
		t.Setenv("TRAINBRIDGE_LISTEN", host)
		for _, name := range portVariables {
			t.Setenv(name, "0")
		}
		t.Setenv("TRAINBRIDGE_OTLP_PORT", "4317")
		t.Setenv("TRAINBRIDGE_HEALTH_PORT", "")
		chosen, err := choosePorts()
		require.NoError(t, err)
		require.Len(t, chosen, len(portVariables)-2)
		for _, c := range chosen {
			name, port, _ := strings.Cut(c, "=")
			assert.Equal(t, port, os.Getenv(name))
			l, err := net.Listen("tcp", host+":"+port) //nolint:noctx // a test
			require.NoError(t, err)
			require.NoError(t, l.Close())
		}
		assert.Equal(t, "4317", os.Getenv("TRAINBRIDGE_OTLP_PORT"))
		assert.Empty(t, os.Getenv("TRAINBRIDGE_HEALTH_PORT"))
	}
}

// Two processes that choose at the same time get different ports: the system gives a chosen port to nobody else.
func TestChosenPortIsKept(t *testing.T) {
	port, err := freePort("127.0.0.1")
	require.NoError(t, err)
	for range 40_000 { // more than the system has
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
		require.NoError(t, err)
		_, other, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		require.NotEqual(t, strconv.Itoa(port), other)
		require.NoError(t, l.Close())
	}
}

// A port that cannot be had leaves no socket open.
func TestFreePortClosesItsSocket(t *testing.T) {
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(all)
	}
	before := open()
	for range 10 {
		_, err := freePort("192.0.2.1") // of RFC 5737
		require.Error(t, err)
	}
	assert.Less(t, open(), before+10)
}

func TestChoosePortsErrors(t *testing.T) {
	for _, tt := range []struct{ listen, port, want string }{
		{"", "http", `TRAINBRIDGE_METRICS_PORT is "http": a port is a number up to 65535, 0 for a free one`},
		{"", "65536", `TRAINBRIDGE_METRICS_PORT is "65536": a port is a number up to 65535, 0 for a free one`},
		{"192.0.2.1", "0", "TRAINBRIDGE_METRICS_PORT is 0, and TRAINBRIDGE_LISTEN has no free port: bind: cannot assign requested address"}, // of RFC 5737
	} {
		t.Setenv("TRAINBRIDGE_LISTEN", tt.listen)
		t.Setenv("TRAINBRIDGE_METRICS_PORT", tt.port)
		_, err := choosePorts()
		require.EqualError(t, err, tt.want)
	}
}
