//go:build full

package main

import (
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/compare"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/lake"
)

// The agent reads no Parquet: docs/reference/adr/0011-two-builds.md.
func init() { compare.ReadHistory = lake.History }
