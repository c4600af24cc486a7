package rpc

import "errors"

// Config holds the thresholds of the verdicts about ZeroMQ RPCs. The defaults are from TSQP's guide to ZeroMQ performance monitoring.
type Config struct {
	// SerializeHigh is the share of a group's call time above which serialization gets a warning. 0..1, default 0.30; 0: never.
	SerializeHigh float64 `mapstructure:"serialize_high"`
	// TransportHigh is the share of a group's call time above which sending and receiving, without the server's compute where logged, gets a warning. 0..1,
	// default 0.30; 0: never.
	TransportHigh float64 `mapstructure:"transport_high"`
	// CallsHigh: a pass of more calls gets a warning. Default 50; 0: never.
	CallsHigh int `mapstructure:"calls_high"`
	// ExpectedTransport: with ipc, calls over TCP get a warning. ipc, tcp, or empty for either. Default ipc.
	ExpectedTransport string `mapstructure:"expected_transport"`
}

// The values of 'zmq::expected_transport', beside empty.
const (
	expectIPC = "ipc"
	expectTCP = "tcp"
)

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{SerializeHigh: 0.30, TransportHigh: 0.30, CallsHigh: 50, ExpectedTransport: expectIPC}
}

var (
	errShare     = errors.New("'zmq::serialize_high' and 'zmq::transport_high' must be from 0 (never) to 1: they are shares of time, write 0.30 for 30 %")
	errCalls     = errors.New("'zmq::calls_high' must not be below 0: it is a number of calls per pass, 0 for never")
	errTransport = errors.New("'zmq::expected_transport' must be ipc or tcp, or empty for either")
)

// Errors returns all errors of the config.
func (c *Config) Errors() []error {
	var errs []error
	share := func(x float64) bool { return x >= 0 && x <= 1 } // NaN is no share
	if !share(c.SerializeHigh) || !share(c.TransportHigh) {
		errs = append(errs, errShare)
	}
	if c.CallsHigh < 0 {
		errs = append(errs, errCalls)
	}
	if c.ExpectedTransport != expectIPC && c.ExpectedTransport != expectTCP && c.ExpectedTransport != "" {
		errs = append(errs, errTransport)
	}
	return errs
}
