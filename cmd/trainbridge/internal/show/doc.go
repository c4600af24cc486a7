// Package show draws traces in the terminal: tables over all traces of a Jaeger, a Tempo or a file, the first of them like the report of verl's
// analyze_tq_logs.py, and a trace as a waterfall. The figures of the tables are computed in internal/traces/digest; each domain is a file here.
package show
