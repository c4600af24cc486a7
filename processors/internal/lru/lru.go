// Package lru bounds the memory that processors keep of runs: a run may never come again.
package lru

import "github.com/hashicorp/golang-lru/v2/simplelru"

// Size is the usual capacity: windows, series, episodes. The least recently used value makes room.
const Size = 1000

// New keeps the size values used last. A key must not share memory with a batch: the key outlives the batch.
func New[K comparable, V any](size int) *simplelru.LRU[K, V] {
	kept, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // only for a size below one
	}
	return kept
}
