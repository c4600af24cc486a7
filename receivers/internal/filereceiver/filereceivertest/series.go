package filereceivertest

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
)

// Scraped returns the series of all metrics, with their values, as contrib's exporter gives them to Prometheus.
func (r *Result) Scraped(tb testing.TB) []string {
	tb.Helper()
	free, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	address := free.Addr().String()
	require.NoError(tb, free.Close())
	factory := prometheusexporter.NewFactory()
	cfg := factory.CreateDefaultConfig().(*prometheusexporter.Config)
	cfg.ServerConfig.NetAddr.Endpoint = address
	cfg.WithoutScopeInfo = true
	cfg.MetricExpiration = time.Hour
	exp, err := factory.CreateMetrics(tb.Context(), exportertest.NewNopSettings(factory.Type()), cfg)
	require.NoError(tb, err)
	require.NoError(tb, exp.Start(tb.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(tb, exp.Shutdown(context.WithoutCancel(tb.Context()))) }()
	for _, md := range r.Metrics.AllMetrics() {
		require.NoError(tb, exp.ConsumeMetrics(tb.Context(), md))
	}

	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(tb, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(tb, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(tb, err)
	require.NoError(tb, resp.Body.Close())
	require.Equal(tb, http.StatusOK, resp.StatusCode, string(body))
	var out []string
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}
