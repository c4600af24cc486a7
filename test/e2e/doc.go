// Package e2e runs the shipped collector binaries against a real Jaeger, Tempo and Prometheus and asks the servers' own APIs what arrived.
// Its tests need those binaries, so they sit behind the build tag e2e: `make e2e`.
package e2e
