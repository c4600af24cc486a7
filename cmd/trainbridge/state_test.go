package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/otelcol"
)

// What `trainbridge validate` says of a state directory that is not set or cannot be used.
func TestStateDirectoryIsValidated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for dir, want := range map[string]string{
		"":                           "'directory' is not set: name a directory for the state (TRAINBRIDGE_STATE_DIR in the shipped configuration)",
		file:                         file + ": not a directory",
		filepath.Join(file, "state"): filepath.Join(file, "state") + ": not a directory",
	} {
		t.Setenv("TRAINBRIDGE_STATE_DIR", dir)
		col, err := otelcol.NewCollector(settings())
		require.NoError(t, err)
		err = col.DryRun(t.Context())
		require.ErrorContains(t, err, "extensions::state_storage: 'directory'")
		require.ErrorContains(t, err, want)
	}
}
