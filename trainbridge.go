// Package trainbridge holds what a user of the distribution needs at hand: the default configuration, and the schema of reports.
package trainbridge

import _ "embed"

// DefaultConfig is otelcol-config.yaml: what the binary runs without --config.
//
//go:embed otelcol-config.yaml
var DefaultConfig string

// VerdictsConfig is otelcol-verdicts.yaml: what the binary merges over it where TRAINBRIDGE_VERDICTS is set.
//
//go:embed otelcol-verdicts.yaml
var VerdictsConfig string

// ReportSchema describes what `trainbridge report --format json` writes, in JSON Schema (draft 2020-12).
//
//go:embed docs/reference/report.schema.json
var ReportSchema string
