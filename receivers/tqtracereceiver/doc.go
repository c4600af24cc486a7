//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package tqtracereceiver tails the logs of verl jobs with TransferQueue and turns every function call into a waterfall: the function, its get, compute and put
// stages, and the client operations under them. The other records become metrics.
package tqtracereceiver
