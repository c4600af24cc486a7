package tail

import (
	"cmp"
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
)

// snapshot appends the stream's checkpoint to b. The caller holds s.mu, so no batch is half built.
func (s *Stream) snapshot(b []byte) (_ []byte, holes int) {
	c := checkpoint.Stream{Path: s.path, LastWrite: unixNano(s.lastWrite), Document: s.document, ByContent: s.byContent, Sum: s.doc.sum, Handler: s.save()}
	if s.current != nil {
		c.LastWrite = unixNano(s.current.wrote)
	}
	first := s.firstMark()
	if first != nil {
		c.Handler = first.state
	}
	out, tags := map[*file][]checkpoint.Range{}, map[*file][]checkpoint.Tag{}
	for i := range s.held.slots {
		if h := &s.held.slots[i]; h.file != nil {
			out[h.file] = append(out[h.file], h.Range)
			if h.tag != 0 {
				tags[h.file] = append(tags[h.file], checkpoint.Tag{Begin: h.Begin, Value: h.tag})
			}
		}
	}
	for fb := range s.flying {
		for _, p := range fb.pieces {
			out[p.file] = append(out[p.file], p.Range)
		}
	}
	for _, f := range s.files {
		if f.life == lifeDead || f != s.current && f.head == 0 && f.print.N == 0 && !f.compressed {
			continue // an empty file cannot be told from another that gets its inode
		}
		if first != nil && first.at[f] < f.head { // a file that came later: all of it
			out[f] = append(out[f], checkpoint.Range{Begin: first.at[f], End: f.head})
		}
		merged := checkpoint.Merge(append(out[f], f.replay...))
		tagged := slices.Concat(tags[f], f.tags)
		holes += len(merged) + len(tagged)/10
		slices.SortFunc(tagged, func(a, b checkpoint.Tag) int { return cmp.Compare(a.Begin, b.Begin) })
		c.Files = append(c.Files, checkpoint.File{
			Path: f.path, ID: f.id, Size: f.size, MTime: unixNano(f.mtime), Head: f.head, Print: f.print, TailSum: f.tail.Hash(), TailN: f.tail.Len(),
			Skip: f.skip, Current: f == s.current, Retired: f.isRetired(), Complete: f.isComplete(), Holes: merged, Tags: tagged,
		})
	}
	return c.Encode(b), holes
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
