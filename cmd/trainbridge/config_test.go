package main

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/otelcol"

	"github.com/trainbridge/trainbridge"
)

// `trainbridge validate` without --config.
func TestDefaultConfigIsValid(t *testing.T) {
	t.Setenv("TRAINBRIDGE_STATE_DIR", t.TempDir())
	t.Setenv("TRAINBRIDGE_TQ_LOGS", "/var/log/verl/*.err,/var/log/more/*.log")
	for _, verdicts := range []string{"", filepath.Join(t.TempDir(), "to", "anomalies.log")} {
		t.Setenv("TRAINBRIDGE_VERDICTS", verdicts)
		check := new(configChecker)
		col, err := otelcol.NewCollector(settings(check))
		require.NoError(t, err)
		require.NoError(t, col.DryRun(t.Context()))

		pipelines := section(section(check.conf, "service"), "pipelines")
		exporters := []any{"otlp_acked", "train_metrics"}
		if verdicts != "" {
			exporters = append(exporters, "train_verdicts")
			assert.Equal(t, []any{"file/verdicts"}, section(pipelines, "logs")["exporters"])
		}
		assert.Equal(t, exporters, section(pipelines, "traces")["exporters"])
		assert.Equal(t, verdicts != "", section(pipelines, "logs") != nil, "a pipeline of logs")
	}
}

func TestDefaultConfigBindsLoopbackOnly(t *testing.T) {
	addresses := regexp.MustCompile(`(?m)^\s*(?:endpoint|host): (.*)$`).FindAllStringSubmatch(trainbridge.DefaultConfig, -1)
	require.NotEmpty(t, addresses)
	for _, a := range addresses {
		assert.Regexp(t, `127\.0\.0\.1`, a[1])
	}
}
