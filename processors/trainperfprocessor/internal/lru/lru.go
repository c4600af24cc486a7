// Package lru bounds what train_perf remembers of runs that may never come again.
package lru

import "github.com/hashicorp/golang-lru/v2/simplelru"

// Size is how many values of a kind are kept: windows, series, episodes. The value that was not used for longest makes room.
const Size = 1000

// New keeps the Size values used last. A key must not share memory with a batch: the key outlives the batch.
func New[K comparable, V any]() *simplelru.LRU[K, V] {
	kept, err := simplelru.NewLRU[K, V](Size, nil)
	if err != nil {
		panic(err) // only for a size below one
	}
	return kept
}
