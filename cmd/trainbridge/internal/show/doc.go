// Package show draws traces in the terminal: tables over all that a Jaeger, a Tempo or a file has, the first of them like the report of verl's
// analyze_tq_logs.py, and one trace as a waterfall. What the tables say is computed in internal/traces/digest; each domain is one file here.
package show
