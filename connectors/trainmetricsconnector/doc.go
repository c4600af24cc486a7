//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package trainmetricsconnector is the train_metrics connector: it turns the spans of training jobs into histograms
// with exemplars, gauges and counters. Everything that is counted or distributed over spans comes from here.
//
// A batch flows: ConsumeTraces → read (outside the lock: spans to observations) → apply (under it: drop what was
// counted before, add to the series) → flush (ticker: series to pmetric, exemplars, staleness) → next consumer.
package trainmetricsconnector
