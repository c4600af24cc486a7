//go:build e2e

package e2e

import (
	"fmt"
	"strings"
)

// peerConfig reads the same logs with contrib's file_log: offsets in file_storage, and the exporter's queue on disk, as its documentation advises for delivery
// across restarts.
func peerConfig(logs, sink string) string {
	var receivers, names []string
	for _, format := range logFormats {
		name := "file_log/" + format.receiver
		names = append(names, name)
		receivers = append(receivers, fmt.Sprintf("  %s: {include: [%q], start_at: beginning, storage: file_storage, poll_interval: 20ms, compression: auto, "+
			"retry_on_failure: {enabled: true, max_elapsed_time: 0s}}",
			name, logs+"/"+format.receiver+"/*"))
	}
	return fmt.Sprintf(`
receivers:
%s
exporters:
  otlp_grpc:
    {endpoint: %q, tls: {insecure: true}, timeout: 1s, sending_queue: {storage: file_storage}, retry_on_failure: {initial_interval: 50ms, max_interval: 300ms}}
extensions: {file_storage: {directory: "${env:TRAINBRIDGE_STATE_DIR}", create_directory: true}}
service:
  extensions: [file_storage]
  pipelines: {logs: {receivers: [%s], exporters: [otlp_grpc]}}
  telemetry: {metrics: {level: none}}
`, strings.Join(receivers, "\n"), sink, strings.Join(names, ", "))
}

// peerArgs leaves the shipped configuration out.
func peerArgs(args []string) []string { return args[len(args)-2:] }
