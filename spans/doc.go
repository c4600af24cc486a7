// Package spans is the vocabulary of trainbridge: the ids, names, units and span model shared by every receiver, processor and Go service. Trace and span ids
// are made only here.
//
// Names, metric descriptors and verdicts are generated from spans/registry: add new ones there, then run `make generate`.
package spans
