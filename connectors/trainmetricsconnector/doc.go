//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package trainmetricsconnector is the train_metrics connector: spans of training jobs become histograms with exemplars, gauges and counters. All metrics that
// count spans or describe their distribution come from here.
//
// A batch flows: ConsumeTraces → read (outside the lock: spans to observations) → apply (under the lock: drop spans already counted, add to the series) →
// save (with a storage) → flush (ticker: series to pmetric, exemplars, staleness) → next consumer.
//
// Each domain is a family (tq.go, steps.go, rpc.go, collectives.go): a family names its kinds of spans, reads them through their view, adds them to its series
// and emits these. The store has the parts common to all families (ids of counted spans, room for series, verdicts, incomplete spans, expiry) and knows no
// family by name. A new family is a file and a line in family.go. journal.go stores the state and restores it after a crash; codec.go has the stored form.
package trainmetricsconnector
