package digest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Most is how many names of a kind (functions, methods, ranks, hosts, links, verdicts) are told apart: what comes beyond is one more, [Other].
// Of those that have distributions there are fewer, so that names that never end do not fill the memory.
const (
	Most            = 10_000
	mostDistributed = 1_000
	mostJobs        = 256
	Other           = "other"
	textLimit       = 512 // bytes of a name, or of a sentence
	mostSlow        = 1_000
	mostShown       = 5
)

// table holds what is known by a key, of so many keys at most.
type table[K comparable, V any] struct {
	by    map[K]*V
	last  *V // most often the next span is of the same
	lastK K
	Left  int64 // how often a key found no room
}

// of finds what is known by a key, or begins it. What finds no room is counted by the key other. own makes a key whose texts the table may keep.
func (t *table[K, V]) of(k, other K, most int, begin func(k K) (K, *V)) *V {
	if t.last != nil && t.lastK == k {
		return t.last
	}
	v := t.by[k]
	if v == nil {
		if t.by == nil {
			t.by = map[K]*V{}
		}
		if len(t.by) >= most {
			t.Left++
			if v = t.by[other]; v != nil {
				return v
			}
			k = other
		}
		k, v = begin(k)
		t.by[k] = v
	}
	t.lastK, t.last = k, v
	return v
}

// rows are what is known, in order.
func (t *table[K, V]) rows(order func(a, b *V) int) []*V {
	return slices.SortedFunc(maps.Values(t.by), order)
}

// note notes a name, as long as there are not too many, and returns it as it is kept.
func note(m map[string]bool, name string) string {
	if m[name] {
		return name
	}
	if len(m) >= Most {
		name = Other
	}
	name = text(name)
	m[name] = true
	return name
}

// text is a copy of a name, which must not keep the message alive that it stands in, and is not too long.
func text(s string) string { return strings.Clone(s[:min(len(s), textLimit)]) }

// ByCount are the keys, the highest numbers first.
func ByCount[N int | int64 | float64](m map[string]N) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
}
