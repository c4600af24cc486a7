//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package trainmetricsconnector is the train_metrics connector: it turns the spans of training jobs into histograms
// with exemplars, gauges and counters. Everything that is counted or distributed over spans comes from here.
//
// A batch flows: ConsumeTraces → read (outside the lock: spans to observations) → apply (under it: drop spans that were
// counted before, add to the series) → save (where there is a storage) → flush (ticker: series to pmetric, exemplars, staleness) → next consumer.
//
// Each domain is a family (tq.go, steps.go, rpc.go, collectives.go): it says which kinds of spans it takes, reads them
// through their view, adds them to its series and emits these. What all families share (span ids that were counted,
// room for series, verdicts, incomplete spans, expiry) is the store's, which knows none of them by name. A new family is
// a file like these and a line in family.go. What is stored, and taken back after a crash, is in journal.go; codec.go has its form.
package trainmetricsconnector
