//go:build !linux || !cgo

package nvmlreceiver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver/internal/metadata"
)

// Without cgo the receiver logs once why nothing is read, or does not start.
func TestIdle(t *testing.T) {
	for mode, warnings := range map[string]int{errorIgnore: 1, errorPropagate: 0} {
		core, log := observer.New(zapcore.InfoLevel)
		set := receivertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		cfg := createDefaultConfig().(*Config)
		cfg.ErrorMode = mode
		s, err := newScraper(cfg, set)
		require.NoError(t, err)
		err = s.Start(context.Background(), componenttest.NewNopHost())
		if mode == errorPropagate {
			require.ErrorIs(t, err, errBuild)
		} else {
			require.NoError(t, err)
		}
		for range 3 {
			md, err := s.ScrapeMetrics(context.Background())
			require.NoError(t, err)
			assert.Zero(t, md.MetricCount())
		}
		require.NoError(t, s.Shutdown(context.Background()))
		assert.Equal(t, warnings, log.Len())
	}
}
