// Package spans is the vocabulary of trainbridge: the ids, names, units and span model that every receiver,
// processor and Go service shares. It is the only place that makes trace and span ids.
package spans
