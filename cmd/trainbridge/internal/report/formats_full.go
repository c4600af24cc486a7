//go:build full

package report

import "github.com/trainbridge/trainbridge/cmd/trainbridge/internal/lake"

// `make build-full` sets the build tag.
func init() { named("parquet").open = lake.Open }
