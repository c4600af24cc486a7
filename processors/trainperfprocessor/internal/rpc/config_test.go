package rpc

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	nan := math.NaN()
	for name, tt := range map[string]struct {
		change func(*Config)
		want   error
		key    string
	}{
		"serialize in percent": {func(c *Config) { c.SerializeHigh = 30 }, errShare, "'zmq::serialize_high'"},
		"serialize negative":   {func(c *Config) { c.SerializeHigh = -0.1 }, errShare, "'zmq::serialize_high'"},
		"serialize NaN":        {func(c *Config) { c.SerializeHigh = nan }, errShare, "'zmq::serialize_high'"},
		"transport in percent": {func(c *Config) { c.TransportHigh = 1.01 }, errShare, "'zmq::transport_high'"},
		"transport NaN":        {func(c *Config) { c.TransportHigh = nan }, errShare, "'zmq::transport_high'"},
		"calls":                {func(c *Config) { c.CallsHigh = -1 }, errCalls, "'zmq::calls_high'"},
		"expected transport":   {func(c *Config) { c.ExpectedTransport = "IPC" }, errTransport, "'zmq::expected_transport'"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.change(&cfg)
			err := errors.Join(cfg.Errors()...)
			require.ErrorIs(t, err, tt.want)
			assert.ErrorContains(t, err, tt.key)
		})
	}
	cfg := DefaultConfig()
	cfg = Config{SerializeHigh: 1, TransportHigh: 1}
	assert.NoError(t, errors.Join(cfg.Errors()...))
}
