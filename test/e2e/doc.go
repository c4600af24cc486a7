// Package e2e runs the shipped collector binaries against a real Jaeger, Tempo and Prometheus and queries the servers' own APIs. Its tests need the binaries of
// these servers, hence the build tag e2e: `make e2e`.
package e2e
