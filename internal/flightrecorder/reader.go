package flightrecorder

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/pickle"
)

// Reader reads dumps, one at a time. All dumps share their names and shapes. The zero Reader is ready. Not safe for concurrent use.
type Reader struct {
	pickle pickle.Decoder
	texts  map[string]Text      // each text once in memory, by itself
	lists  map[string][]Text    // the same for lists of texts …
	shapes map[string][][]int64 // … and shapes, by their items written one behind the other
	key    []byte               // scratch: the key of a map
	left   int                  // values that may still be read: a pickle can refer to one value many times
}

// mostShared bounds the names and shapes kept from dump to dump.
const mostShared = 1 << 16

// leastEntry is the smallest size of an entry in a pickle, B: twenty keys, of two bytes each when repeated.
const leastEntry = 64

// IsPickle says whether a file begins as a pickle does, of any protocol. Read reads protocols 2 to 5.
func IsPickle(text []byte) bool {
	if len(text) >= 2 && text[0] == 0x80 {
		return text[1] >= 2 && text[1] <= 5
	}
	for _, start := range []string{"(dp", "(lp", "}q", "]q"} { // protocols 0 and 1
		if bytes.HasPrefix(text, []byte(start)) {
			return true
		}
	}
	return false
}

// Read reads a dump, a pickle or JSON, into d, and reuses its memory; Rank stays. Nothing of data is kept. A value of a wrong type counts as missing, and so
// does the whole content of other JSON: a caller that needs entries must check for them. The error is one of pickle.Decoder, one of encoding/json, or
// ErrNotDump.
func (r *Reader) Read(data []byte, d *Dump) error {
	*d = Dump{Rank: d.Rank, Entries: d.Entries[:0]}
	if IsPickle(data) {
		return r.readPickle(data, d)
	}
	d.Entries = nil // encoding/json would keep old values for missing fields
	return readJSON(data, d)
}

// readPickle reads a dump, a pickled dictionary with the members of Dump. A pickle that refers to its values more often than its size allows (Reader.left) is
// no dump.
func (r *Reader) readPickle(data []byte, d *Dump) error {
	if len(r.texts)+len(r.lists)+len(r.shapes) > mostShared {
		r.texts = nil
	}
	if r.texts == nil {
		r.texts, r.lists, r.shapes = map[string]Text{}, map[string][]Text{}, map[string][][]int64{}
	}
	p := &r.pickle
	top, err := p.Decode(data)
	if err != nil {
		return err
	}
	if p.Kind(top) != pickle.Dict {
		return ErrNotDump
	}
	r.left = len(data)
	for i := range p.Len(top) {
		switch key, v := p.Pair(top, i); string(p.Text(key)) {
		case "version":
			d.Version = r.text(v)
		case "pg_config":
			d.PGConfig = groups(r, v, func(key string, v pickle.Value, pg *PG) {
				switch key {
				case "desc":
					pg.Desc = r.text(v)
				case "ranks":
					pg.Ranks = r.ranks(v)
				}
			})
		case "pg_status":
			d.PGStatus = groups(r, v, func(key string, v pickle.Value, s *Status) {
				switch key {
				case "last_enqueued_collective":
					s.Enqueued = r.integer(v)
				case "last_started_collective":
					s.Started = r.integer(v)
				case "last_completed_collective":
					s.Completed = r.integer(v)
				}
			})
		case "entries":
			if !r.isList(v) {
				continue
			}
			n := p.Len(v)
			if n > len(data)/leastEntry+1 {
				return ErrNotDump
			}
			d.Entries = slices.Grow(d.Entries[:0], n)[:n]
			clear(d.Entries)
			for i := range n {
				r.entry(p.Item(v, i), &d.Entries[i])
			}
		}
	}
	if r.left < 0 {
		return ErrNotDump
	}
	return nil
}

// isList says whether a value is a list or a tuple: PyTorch writes either.
func (r *Reader) isList(v pickle.Value) bool {
	k := r.pickle.Kind(v)
	return k == pickle.List || k == pickle.Tuple
}

// length is the number of items of a container, and takes them from the number that may still be read; 0: more than are left.
func (r *Reader) length(v pickle.Value) int {
	n := r.pickle.Len(v)
	if r.left -= n; r.left < 0 {
		return 0
	}
	return n
}

// groups reads a dictionary of dictionaries, pg_config or pg_status, by the name of the group: set sets a member of a group, found under key. nil: another
// value.
func groups[T any](r *Reader, v pickle.Value, set func(key string, v pickle.Value, t *T)) map[string]T {
	p := &r.pickle
	if p.Kind(v) != pickle.Dict {
		return nil
	}
	all := map[string]T{}
	for i := range r.length(v) {
		name, group := p.Pair(v, i)
		if p.Kind(group) != pickle.Dict {
			continue
		}
		var t T
		for i := range r.length(group) {
			key, v := p.Pair(group, i)
			set(string(p.Text(key)), v, &t)
		}
		all[string(r.text(name))] = t
	}
	return all
}

// entry reads an operation, a dictionary with the members of Entry. A member that is missing or of a wrong type stays empty.
func (r *Reader) entry(v pickle.Value, e *Entry) {
	p := &r.pickle
	if p.Kind(v) != pickle.Dict {
		return
	}
	for i := range r.length(v) {
		switch key, v := p.Pair(v, i); string(p.Text(key)) {
		case "record_id":
			e.RecordID = r.integer(v)
		case "pg_id":
			e.PGID = r.integer(v)
		case "process_group":
			e.ProcessGroup = r.textList(v)
		case "collective_seq_id":
			e.Collective = r.integer(v)
		case "p2p_seq_id":
			e.P2P = r.integer(v)
		case "profiling_name":
			e.Name = r.text(v)
		case "time_created_ns":
			e.Created = r.integer(v)
		case "duration_ms":
			if f, ok := p.Float(v); ok {
				e.Millis = (*Float)(&f)
			}
		case "input_sizes":
			e.InputSizes = r.sizes(v)
		case "input_dtypes":
			e.InputDtypes = r.textList(v)
		case "output_sizes":
			e.OutputSizes = r.sizes(v)
		case "output_dtypes":
			e.OutputDtypes = r.textList(v)
		case "state":
			e.State = r.text(v)
		case "time_discovered_started_ns":
			e.Started = r.integer(v)
		case "time_discovered_completed_ns":
			e.Completed = r.integer(v)
		case "retired":
			e.Retired, _ = p.Bool(v)
		case "timeout_ms":
			e.TimeoutMS = r.integer(v)
		case "is_p2p":
			e.IsP2P, _ = p.Bool(v)
		}
	}
}

// integer reads a whole number or a text of one, as Integer.UnmarshalJSON does; 0: neither, or beyond 64 bits.
func (r *Reader) integer(v pickle.Value) Integer {
	n, ok := r.pickle.Int(v)
	if b := r.pickle.Text(v); !ok && b != nil {
		n, _ = strconv.ParseInt(string(b[:min(len(b), 20)]), 10, 64)
		if n == math.MaxInt64 || n == math.MinInt64 { // beyond
			n = 0
		}
	}
	return Integer(n)
}

// text reads a text or a number, shared with earlier equal ones; "" for other values. Long texts count as several of the values that may still be read.
func (r *Reader) text(v pickle.Value) Text {
	b := r.pickle.Text(v)
	var digits [20]byte
	if n, ok := r.pickle.Int(v); ok {
		b = strconv.AppendInt(digits[:0], n, 10)
	}
	if r.left -= len(b) / longText; r.left < 0 {
		return ""
	}
	t, ok := r.texts[string(b)]
	if !ok {
		t = Text(b)
		r.texts[string(t)] = t
	}
	return t
}

// longText is the number of bytes of a text that count as one value.
const longText = 64

// textList reads a list of texts, shared with earlier equal lists: dumps have few different ones. nil: no list.
func (r *Reader) textList(v pickle.Value) []Text {
	if !r.isList(v) {
		return nil
	}
	n := r.length(v)
	key := r.key[:0]
	for i := range n {
		t := r.text(r.pickle.Item(v, i))
		key = append(binary.AppendUvarint(key, uint64(len(t))), t...)
	}
	list, ok := r.lists[string(key)]
	r.key = key
	if !ok {
		list = make([]Text, n)
		for i := range n {
			list[i] = r.text(r.pickle.Item(v, i))
		}
		r.lists[string(key)] = list
	}
	return list
}

// sizes reads the shapes of tensors, "[[4096, 1024], [8]]", shared with earlier equal shapes. First the numbers are written into a key, and only shapes not
// seen before are made of the key. nil: no list.
func (r *Reader) sizes(v pickle.Value) [][]int64 {
	if !r.isList(v) {
		return nil
	}
	p := &r.pickle
	n := r.length(v)
	key := r.key[:0]
	for i := range n {
		dims := p.Item(v, i)
		m := 0
		if r.isList(dims) {
			m = r.length(dims)
		}
		key = binary.AppendUvarint(key, uint64(m))
		for j := range m {
			dim, _ := p.Int(p.Item(dims, j))
			key = binary.AppendVarint(key, dim)
		}
	}
	shape, ok := r.shapes[string(key)]
	r.key = key
	if !ok {
		shape = make([][]int64, n)
		rest := key
		for i := range shape {
			m, size := binary.Uvarint(rest)
			rest = rest[size:]
			shape[i] = make([]int64, m)
			for j := range shape[i] {
				shape[i][j], size = binary.Varint(rest)
				rest = rest[size:]
			}
		}
		r.shapes[string(key)] = shape
	}
	return shape
}

// ranks reads ranks, a text as in Ranks.UnmarshalJSON or a list of numbers, in ascending order. nil: unknown, for another value or a number that is no rank.
func (r *Reader) ranks(v pickle.Value) Ranks {
	var ranks Ranks
	if b := r.pickle.Text(v); b != nil {
		if r.left -= len(b); r.left >= 0 {
			_ = ranks.UnmarshalJSON(b)
		}
		return ranks
	}
	if !r.isList(v) {
		return nil
	}
	for i := range r.length(v) {
		n, ok := r.pickle.Int(r.pickle.Item(v, i))
		if !ok || n < 0 || n > math.MaxInt32 || len(ranks) == maxRanks {
			return nil
		}
		ranks = append(ranks, int32(n))
	}
	slices.Sort(ranks)
	return ranks
}
