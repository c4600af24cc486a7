package tail

import (
	"cmp"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

const (
	probeBytes = 16 << 20    // decompressed per sweep, of all compressed files being compared
	maxPacked  = 16          // decoders open at once
	probeMax   = time.Minute // lifetime of a probe without requests
)

// probe is a compressed file in comparison with files already read. Decompressing up to the heads takes many sweeps, while only the file's stream waits.
type probe struct {
	src   *unpack.Reader // nil: the comparison is complete, or not begun
	size  int64          // of the compressed file; a change ends the probe
	mtime time.Time      // likewise
	asked time.Time      // last request
	of    *file          // the file's original; src is at the original's head
	not   map[*file]bool // files excluded as originals
}

// findOriginal returns the candidate, a file of stream s, from which a compressed file was made: the decompressed content begins as the original did, and has
// the same bytes before the original's head. nil: there is none, or the compressed file cannot be opened. wait: call again, because a limit is used up: the
// sweep's allowance of decompressed bytes, the decoders, or the process's open files. In the first two cases the stream is looked at again without delay.
func (w *sweeper) findOriginal(s *Stream, path string, fi fs.FileInfo, candidates []*file) (_ *file, wait bool) {
	id := fingerprint.IDOf(fi)
	p := w.probes[id]
	if p != nil && (p.size != fi.Size() || !p.mtime.Equal(fi.ModTime())) {
		w.endProbe(id)
		p = nil
	}
	if p != nil && p.of != nil { // known from an earlier call
		if slices.Contains(candidates, p.of) {
			return p.of, false
		}
		return nil, false
	}
	candidates = slices.DeleteFunc(slices.Clone(candidates), func(f *file) bool { return p != nil && p.not[f] })
	if len(candidates) == 0 {
		return nil, false
	}
	// In the order of their heads: the decoder cannot go back.
	slices.SortStableFunc(candidates, func(a, b *file) int { return cmp.Compare(a.head, b.head) })
	if p == nil {
		p = &probe{size: fi.Size(), mtime: fi.ModTime(), not: map[*file]bool{}}
		w.probes[id] = p
	}
	p.asked = w.now
	if p.src == nil {
		if int64(w.probing) >= w.t.descriptors.share(maxPacked, 16) {
			w.t.kick(s)
			return nil, true
		}
		raw, now, err := osfile.Open(path, w.t.cfg.FollowSymlinks)
		if err != nil || fingerprint.IDOf(now) != id {
			if err == nil {
				_ = raw.Close()
			}
			return nil, isShort(err)
		}
		p.src = w.t.unpack(path, raw).(*unpack.Reader)
		w.probing++
		w.t.descriptors.take()
	}
	for _, f := range candidates {
		same, again := false, true
		for ; again && w.allowance > 0; w.allowance -= unpack.SkipBytes {
			same, again = compare(f, p.src)
		}
		if again {
			w.t.kick(s)
			return nil, true
		}
		if same {
			if f.head > 0 { // else only the beginnings were compared, which is no answer to keep
				p.of = f
			}
			return f, false
		}
		p.not[f] = true
	}
	w.stopProbe(p)
	return nil, false
}

// replica is an open file with the content of another file.
type replica struct {
	path string
	raw  *os.File
	fi   fs.FileInfo
	src  source
}

// replicaOf ends the probe of a compressed file whose origin is known now, and returns the file with the probe's open decoder.
func (w *sweeper) replicaOf(path string, fi fs.FileInfo) *replica {
	p := w.probes[fingerprint.IDOf(fi)]
	delete(w.probes, fingerprint.IDOf(fi))
	w.probing--
	w.t.descriptors.give() // attach counts it again
	return &replica{path, p.src.File(), fi, p.src}
}

// stopProbe closes the decoder of a probe, whose results stay.
func (w *sweeper) stopProbe(p *probe) {
	if p.src != nil {
		_ = p.src.Close()
		p.src = nil
		w.probing--
		w.t.descriptors.give()
	}
}

// endProbe forgets a probe.
func (w *sweeper) endProbe(id fingerprint.ID) {
	w.stopProbe(w.probes[id])
	delete(w.probes, id)
}

// endProbes ends the probes without requests since the given time.
func (w *sweeper) endProbes(before time.Time) {
	for id, p := range w.probes {
		if p.asked.Before(before) {
			w.endProbe(id)
		}
	}
}
