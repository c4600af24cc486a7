// Package trainbridge holds what a user of the distribution needs at hand: the default configuration.
package trainbridge

import _ "embed"

// DefaultConfig is otelcol-config.yaml: what the binary runs without --config.
//
//go:embed otelcol-config.yaml
var DefaultConfig string
