package assemble

import (
	"strconv"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
	"github.com/trainbridge/trainbridge/spans"
)

// Key is the raw log text that makes a record's ids: its first byte says which text it is, so that a start and an end with the
// same text differ. Its length is bounded; the few characters of a stamp always fit.
type Key struct {
	b [39]byte
	n uint8
}

// Bytes returns the key.
func (k *Key) Bytes() []byte { return k.b[:k.n] }

func (k *Key) set(tag byte, raw []byte) {
	k.b[0] = tag
	k.n = uint8(1 + copy(k.b[1:], raw)) // at most 39
}

// add puts a number behind the text, as far as it fits.
func (k *Key) add(n int64) {
	var b [24]byte
	k.n += uint8(copy(k.b[k.n:], strconv.AppendInt(append(b[:0], '/'), n, 10))) // at most 39
}

// Who is the process of a record.
type Who struct {
	Host string // "" when the log does not say
	PID  int64  // 0 when the log does not say
}

// Stage is one stage of a function, in wall ns.
type Stage struct {
	Start, End int64
	Known      bool
	Incomplete string // why its end is only the last time known; "": it was printed
}

// Function is one finished (or given up) call. Times in wall ns.
type Function struct {
	Who
	Trace, Name string // as printed
	Source      spans.TimeSource
	Key         Key
	Start, End  int64
	Stages      [3]Stage   // get, compute, put
	BatchSize   int64      // −1: unknown
	Ratios      [3]float64 // as reported; −1: unknown
	Incomplete  string
	// Ranges of Out.Ops and Out.Fields.
	OpsFrom, OpsTo       int
	FieldsFrom, FieldsTo int
	Place                tail.Place
}

// Op is one client operation: of a function, or with no function around it (Out.Lone). Times in wall ns.
type Op struct {
	Who
	Trace, Name          string
	Source               spans.TimeSource
	Kind                 tqline.Op
	Key                  Key
	Start, End           int64
	BatchSize, Size      int64   // samples, bytes; −1: unknown
	Reported             float64 // By/s; −1: unknown
	Incomplete           string
	FieldsFrom, FieldsTo int
	Place                tail.Place // of Out.Lone
}

// Field is an attribute of a field this version does not know.
type Field struct{ Name, Value string }

// Out collects finished functions and operations, in a small form that can be turned into spans as often as their delivery takes.
type Out struct {
	Functions []Function
	Ops       []Op // of Functions
	Lone      []Op // without a function
	Fields    []Field
}

// Reset empties Out, keeping its memory.
func (o *Out) Reset() {
	o.Functions, o.Ops, o.Lone, o.Fields = o.Functions[:0], o.Ops[:0], o.Lone[:0], o.Fields[:0]
}
