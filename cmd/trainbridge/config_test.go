package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/otelcol"

	"github.com/trainbridge/trainbridge"
)

// What `trainbridge validate` does without --config.
func TestDefaultConfigIsValid(t *testing.T) {
	t.Setenv("TRAINBRIDGE_STATE_DIR", t.TempDir())
	t.Setenv("TRAINBRIDGE_TQ_LOGS", "/var/log/verl/*.err,/var/log/more/*.log")
	col, err := otelcol.NewCollector(settings(new(checker)))
	require.NoError(t, err)
	require.NoError(t, col.DryRun(t.Context()))
}

func TestDefaultConfigBindsLoopbackOnly(t *testing.T) {
	addresses := regexp.MustCompile(`(?m)^\s*(?:endpoint|host): (.*)$`).FindAllStringSubmatch(trainbridge.DefaultConfig, -1)
	require.NotEmpty(t, addresses)
	for _, a := range addresses {
		assert.Regexp(t, `127\.0\.0\.1`, a[1])
	}
}
