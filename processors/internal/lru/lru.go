// Package lru bounds what processors remember of runs that may never come again.
package lru

import "github.com/hashicorp/golang-lru/v2/simplelru"

// Size is how many values of a kind are mostly kept: windows, series, episodes. The value that was not used for longest makes room.
const Size = 1000

// New keeps the values used last, size of them. A key must not share memory with a batch: the key outlives the batch.
func New[K comparable, V any](size int) *simplelru.LRU[K, V] {
	kept, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // only for a size below one
	}
	return kept
}
