package redact

import (
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/secrets"
	"github.com/trainbridge/trainbridge/spans"
)

// Counts are the numbers of replaced texts.
type Counts struct {
	Keys   int64 // values replaced because of the name of their field
	Values int64 // texts replaced because of their shape
	Hosts  int64 // names of hosts replaced by a hash
}

// Redactor takes secrets out of spans, points and texts. nil takes nothing out.
type Redactor struct {
	finder
	walkers sync.Pool
}

// New makes the redactor of a configuration, nil without anything to do.
func New(cfg Config) (*Redactor, error) {
	if !cfg.Enabled && !cfg.HashHosts {
		return nil, nil
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Redactor{finder: finder{builtIn: cfg.Enabled}}
	r.keys, _ = compile("keys", cfg.Keys) // checked by Validate
	r.values, _ = compile("values", cfg.Values)
	if cfg.HashHosts {
		r.hosts = &hosts{key: []byte(cfg.HashKey)}
	}
	return r, nil
}

// sampleRoom is the length beyond the sample that is searched: a truncated secret would not be found.
const sampleRoom = 4 << 10

// Sample is the beginning of a line without secrets, at most most bytes, for the collector's own log.
func (r *Redactor) Sample(line []byte, most int) string {
	s := strings.ToValidUTF8(string(line[:min(len(line), most+sampleRoom)]), "\uFFFD")
	if r != nil {
		s = r.text(s, &Counts{})
	}
	return cut(s, most)
}

// Line is a line without secrets, for the file of dead letters, which is as readable as the log.
func (r *Redactor) Line(line []byte) []byte {
	if r == nil {
		return line
	}
	return []byte(r.text(string(line), &Counts{}))
}

// Batch has all texts redacted that are added to the batch from now on. After the batch has made its messages, the caller calls done once, for the counts.
func (r *Redactor) Batch(b *spans.Batch) (done func() Counts) {
	if r == nil {
		return func() Counts { return Counts{} }
	}
	w := r.walker()
	b.Edit(w.attributes, w.span)
	return func() Counts {
		defer r.walkers.Put(w)
		return w.counts
	}
}

// Metrics redacts the labels of points in place, with those of the resource, and returns the counts.
func (r *Redactor) Metrics(md pmetric.Metrics) (n Counts) {
	if r == nil {
		return n
	}
	w := r.walker()
	defer r.walkers.Put(w)
	for _, rm := range md.ResourceMetrics().All() {
		w.attributes(rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				w.points(spans.Points(m))
			}
		}
	}
	return w.counts
}

// Attribute returns a text as redaction would leave it in an attribute of the name.
func (r *Redactor) Attribute(name, text string) string {
	if r == nil {
		return text
	}
	w := r.walker()
	defer r.walkers.Put(w)
	m := pcommon.NewMap()
	m.PutStr(name, text)
	w.attributes(m)
	return spans.AttrText(m, name)
}

// walker redacts the spans or points of one batch. Its cache of fields is kept from batch to batch: a log has few names, and their attributes mostly repeat.
type walker struct {
	*finder
	counts Counts            // of the batch
	fields map[string]*field // by name
	recent [256]*field       // a faster way to fields: slot
	rename []*field          // fields of the current attributes with a secret in their name
}

// field is the cached knowledge about the attributes with one name.
type field struct {
	name       string
	cleanName  string        // the name without secrets: equal to name for a name without secrets
	nameCounts Counts        // how many secrets of each kind are in the name
	class      secrets.Looks // which values are secrets, by the name
	skip       bool          // not of the log, or needed to find the file
	host       bool          // the values are names of hosts, to be hashed
	lastValue  string        // the last value: values repeat
	lastClean  string        // the last value without secrets
	lastCounts Counts        // how many secrets of each kind are in the last value
}

// hasSecretName reports whether the name itself contains a secret.
func (f *field) hasSecretName() bool { return f.cleanName != f.name }

const (
	maxFields = 4096 // cached names
	maxKept   = 256  // bytes of a remembered value
)

// walker is a walker with counts of zero, from the pool if possible.
func (r *Redactor) walker() *walker {
	w, ok := r.walkers.Get().(*walker)
	if !ok {
		w = &walker{finder: &r.finder, fields: make(map[string]*field)}
	}
	w.counts = Counts{}
	return w
}

// kept are the attributes that redaction leaves alone: ids, paths, and texts of trainbridge itself, not of the log.
var kept = map[string]bool{
	spans.AttrServiceName: true, spans.AttrServiceInstanceID: true, spans.AttrRunID: true, spans.AttrLogFile: true, spans.AttrTimeSource: true,
	spans.AttrSource: true, spans.AttrKind: true,
}

// prefixes stand before the names of a log's own fields.
var prefixes = [...]string{spans.AttrTrainFieldPrefix, spans.AttrTQFieldPrefix, spans.AttrZMQFieldPrefix}

// slot is the index in walker.recent of a name, which must not be empty: a hash of the length and two bytes, quicker than a map's.
func slot(name string) uint8 {
	n := len(name)
	return uint8(n*37) ^ name[n-1] ^ name[n/2]<<3
}

// field returns the cached knowledge about the attributes with a name, computed if new. A full cache begins anew.
func (w *walker) field(name string) *field {
	if name == "" {
		name = "?"
	}
	at := slot(name)
	if f := w.recent[at]; f != nil && f.name == name {
		return f
	}
	f, ok := w.fields[name]
	if !ok {
		if len(w.fields) >= maxFields {
			clear(w.fields)
		}
		f = w.newField(name)
		w.fields[f.name] = f
	}
	w.recent[at] = f
	return f
}

// newField finds out about the attributes with a name.
func (w *walker) newField(name string) *field {
	name = strings.Clone(name) // outlives the batch
	inLog := name              // as in the log: train.field.api_key is api_key
	for _, p := range prefixes {
		inLog = strings.TrimPrefix(inLog, p)
	}
	f := &field{name: name, skip: kept[name], class: w.class(inLog)}
	f.cleanName = bounded(w.text(name, &f.nameCounts), name)
	f.host = w.hosts != nil && (isHost(inLog) || name == spans.AttrNCCLClockReference)
	return f
}

// value returns a value of a field without its secrets, and counts them: all of the value, if the field's name says that the value is secret; else the host;
// else the secrets within the text.
func (w *walker) value(f *field, s string) string {
	switch {
	case f.skip || s == "":
		return s
	case f.class != secrets.Nothing && hides(f.class, s):
		w.counts.Keys++
		return Redacted
	case s == f.lastValue:
		w.counts.add(f.lastCounts)
		return f.lastClean
	}
	before := w.counts
	clean := s
	if f.host {
		clean = w.hosts.host(s, &w.counts)
	} else {
		clean = w.text(s, &w.counts)
	}
	clean = bounded(clean, s)
	if len(s) <= maxKept {
		f.lastValue, f.lastClean, f.lastCounts = s, clean, w.counts.since(before)
	}
	return clean
}

// bounded truncates clean, the redacted form of s, if redaction made it longer than an attribute may be: a hash is longer than most addresses.
func bounded(clean, s string) string {
	if len(clean) > max(len(s), spans.MaxAttributeBytes) {
		return spans.Text(clean)
	}
	return clean
}

// add adds other counts.
func (c *Counts) add(o Counts) { c.Keys += o.Keys; c.Values += o.Values; c.Hosts += o.Hosts }

// since is the difference to earlier counts.
func (c Counts) since(o Counts) Counts {
	return Counts{c.Keys - o.Keys, c.Values - o.Values, c.Hosts - o.Hosts}
}

// span redacts a span: its name, attributes, status, events and links. The span's name is treated as the name of a field, with the cache of fields: spans have
// few names, too.
func (w *walker) span(s ptrace.Span) {
	if f := w.field(s.Name()); f.hasSecretName() {
		s.SetName(f.cleanName)
		w.counts.add(f.nameCounts)
	}
	w.attributes(s.Attributes())
	if m := s.Status().Message(); m != "" {
		s.Status().SetMessage(w.text(m, &w.counts))
	}
	for _, e := range s.Events().All() {
		e.SetName(w.text(e.Name(), &w.counts))
		w.attributes(e.Attributes())
	}
	for _, l := range s.Links().All() {
		w.attributes(l.Attributes())
	}
}

// points redacts the labels of points.
func (w *walker) points(points pmetric.NumberDataPointSlice) {
	for _, p := range points.All() {
		w.attributes(p.Attributes())
	}
}

// attributes redacts the values of attributes in place, then renames attributes with a secret in their name.
func (w *walker) attributes(m pcommon.Map) {
	for name, v := range m.All() {
		switch v.Type() {
		case pcommon.ValueTypeStr:
			f := w.field(name)
			s := v.Str()
			if clean := w.value(f, s); clean != s {
				v.SetStr(clean)
			}
			if f.hasSecretName() {
				w.rename = append(w.rename, f)
			}
		case pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
			// Only a log's own fields may be a password made of digits, or have a token for a name.
			if !strings.HasPrefix(name, spans.AttrTrainFieldPrefix) {
				continue
			}
			f := w.field(name)
			if f.class == secrets.Anything {
				v.SetStr(Redacted)
				w.counts.Keys++
			}
			if f.hasSecretName() {
				w.rename = append(w.rename, f)
			}
		case pcommon.ValueTypeSlice:
			f := w.field(name)
			for _, e := range v.Slice().All() {
				if e.Type() == pcommon.ValueTypeStr {
					e.SetStr(w.value(f, e.Str()))
				}
			}
		}
	}
	// After the loop: an attribute that is removed and added would be met again.
	for _, f := range w.rename {
		if v, ok := m.Get(f.name); ok {
			kept := pcommon.NewValueEmpty()
			v.CopyTo(kept)
			m.Remove(f.name)
			kept.CopyTo(m.PutEmpty(f.cleanName))
			w.counts.add(f.nameCounts)
		}
	}
	w.rename = w.rename[:0]
}
