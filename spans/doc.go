// Package spans is the vocabulary of trainbridge: the ids, names, units and span model that every receiver,
// processor and Go service shares. It is the only place that makes trace and span ids.
//
// Names, metric descriptors and verdicts are generated from spans/registry: a new one is written there, then `make generate`.
package spans
