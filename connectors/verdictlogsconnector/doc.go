//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package verdictlogsconnector is the train_verdicts connector: each verdict that train_perf and step_join put on a span becomes a log record, for a file, Loki
// or an alert.
//
// A batch flows: ConsumeTraces → find (verdicts, without the lock) → choose (under the lock: skip known verdicts and those over the rate) → record →
// next consumer → settle (under the lock: records refused for now are not known, and give back the rate).
package verdictlogsconnector
