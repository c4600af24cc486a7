package digest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Most bounds the names of a kind (functions, methods, ranks, hosts, links, verdicts) counted separately: the rest is counted as [Other]. Names with
// distributions have a lower bound, to keep endless names from filling the memory.
const (
	Most            = 10_000
	mostDistributed = 1_000
	mostJobs        = 256 // of Jobs
	Other           = "other"
	textLimit       = 512   // bytes of a name, or of a sentence
	mostSlow        = 1_000 // slow windows of a kind that are kept
	mostPasses      = 1_000 // passes that are kept: the newest
	mostShown       = 5     // examples: the slowest, the largest, the worst
)

// table maps keys to values, with a bound on the number of keys.
type table[K comparable, V any] struct {
	by    map[K]*V
	last  *V    // the value found last: most often the next span is of the same
	lastK K     // its key
	Left  int64 // how often a key found no room
}

// findOrMake returns the value of a key. For a new key, begin makes the value and a copy of the key, whose texts belong to a span. Beyond most keys, new keys
// share the key other, and are counted in Left. The copy may be another key: cut where the key is too long, or other where another table is full.
func (t *table[K, V]) findOrMake(k, other K, most int, begin func(k K) (K, *V)) *V {
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
			v = t.by[other]
			if v != nil {
				return v
			}
			k = other
		}
		k, v = begin(k)
		if had := t.by[k]; had != nil { // the copy is a known key
			v = had
		} else {
			t.by[k] = v
		}
	}
	t.lastK, t.last = k, v
	return v
}

// rows returns the values, sorted.
func (t *table[K, V]) rows(order func(a, b *V) int) []*V {
	return slices.SortedFunc(maps.Values(t.by), order)
}

// noteName adds a name to m, and returns the name to count under: for a new name a copy, cut to a limit; beyond Most names, Other.
func noteName(m map[string]bool, name string) string {
	if m[name] {
		return name
	}
	if len(m) >= Most {
		name = Other
	}
	name = shortText(name)
	m[name] = true
	return name
}

// shortText returns a copy of a name, cut to textLimit. Without the copy, the whole message would stay in memory.
func shortText(s string) string { return strings.Clone(s[:min(len(s), textLimit)]) }

// ByCount returns the keys, the highest count first.
func ByCount[N int | int64 | float64](m map[string]N) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
}
