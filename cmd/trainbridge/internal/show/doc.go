// Package show draws traces of a running Jaeger in the terminal: one trace as a waterfall, and a table over the latest
// ones like the report of verl's analyze_tq_logs.py. It asks Jaeger's /api/v3, which answers with OTLP JSON.
package show
