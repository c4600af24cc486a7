//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package verdictlogsconnector is the train_verdicts connector: it turns the verdicts that train_perf and step_join put on spans into log records, one for
// each, for a file, Loki or an alert.
//
// A batch flows: ConsumeTraces → find (verdicts, without the lock) → choose (under it: pass over what is known and what is over the rate) → record (their
// records) → next consumer → settle (under the lock again: only what was accepted is known, and only that took of the rate).
package verdictlogsconnector
