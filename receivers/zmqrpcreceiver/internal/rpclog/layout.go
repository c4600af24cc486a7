package rpclog

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/trainbridge/trainbridge/internal/logids"
)

// Column is a known column of the table.
type Column uint8

// The columns. Server is the server's computing time, within Receive; Offline is beside Total; Comm is the sum of the four stages.
const (
	ID Column = iota
	Method
	Serialize
	Send
	Receive
	Deserialize
	Total
	Server
	Offline
	Comm
	Sent
	Received
	Throughput
)

// Durations is the length of Row.NS: the columns up to Comm.
const Durations = Comm + 1

// Columns is a set of columns.
type Columns uint16

// Has says whether c is in the set.
func (s Columns) Has(c Column) bool { return s&(1<<c) != 0 }

// dimension is the dimension of a column or a unit.
type dimension uint8

const (
	none dimension = iota
	duration
	size
	rate
	method // the text
	other  // an unknown column
)

// unit is a unit of a column or of a value in the summary; of is none: not a known one.
type unit struct {
	of     dimension
	digits int    // of a duration: decimals down to a nanosecond
	bytes  uint64 // of sizes and rates: the bytes of one
}

// unitOf reads a unit. K, M and G are powers of 1024, as the writers compute them. "Mbps" could be bits and is none.
func unitOf(s string) unit {
	switch s {
	case "s":
		return unit{duration, 9, 0}
	case "ms":
		return unit{duration, 6, 0}
	case "us", "µs", "μs":
		return unit{duration, 3, 0}
	case "ns":
		return unit{duration, 0, 0}
	}
	of := size
	if base, ok := strings.CutSuffix(s, "/s"); ok {
		s, of = base, rate
	} else if strings.HasSuffix(s, "Bps") {
		s, of = s[:len(s)-2], rate
	}
	switch s {
	case "B":
		return unit{of, 0, 1}
	case "KB", "kB", "kb", "KiB":
		return unit{of, 0, 1 << 10}
	case "MB", "mb", "MiB":
		return unit{of, 0, 1 << 20}
	case "GB", "gb", "GiB":
		return unit{of, 0, 1 << 30}
	}
	return unit{}
}

// The units of columns without one: those of the writers.
var usual = map[dimension]unit{duration: unitOf("ms"), size: unitOf("KB"), rate: unitOf("MB/s")}

// columnOf returns the known column of a name in snake_case, and the dimension that the column's values have; none: not known. of is the dimension of the unit
// in the header: "recv" in a unit of size is the bytes received, else the time of receiving.
func columnOf(name string, of dimension) (Column, dimension) {
	switch name {
	case "method":
		return Method, method
	case "serialize", "ser":
		return Serialize, duration
	case "send":
		return Send, duration
	case "recv", "receive":
		if of == size {
			return Received, size
		}
		return Receive, duration
	case "deserialize", "deser":
		return Deserialize, duration
	case "total":
		return Total, duration
	case "gpu", "compute", "gpu_compute":
		return Server, duration
	case "offline":
		return Offline, duration
	case "comm", "communication":
		return Comm, duration
	case "sent":
		return Sent, size
	case "received":
		return Received, size
	case "throughput":
		return Throughput, rate
	}
	return 0, none
}

const (
	maxHeader  = 4096 // bytes: kept over a restart
	maxColumns = 64
	maxNS      = 9e15    // of a duration, a quarter of a year: sums of some hundred do not overflow
	maxBytes   = 1 << 43 // of a size, for integer arithmetic; and of throughput
)

// layout is a header, compiled into a program that reads rows.
type layout struct {
	header string
	has    Columns
	ids    bool   // the table has columns of ids
	cells  []cell // without the ID, the first cell
}

// cell describes how to read one cell of a row.
type cell struct {
	of     dimension
	column Column       // unless of is other
	digits int          // decimals that are read; the value is an integer in 10^-digits of the unit
	limit  uint64       // of the number before the point
	safe   int          // a number of this many digits before the point stays below the limit
	timed  bool         // the call's duration depends on the cell
	bytes  uint64       // unit.bytes
	name   string       // of other
	id     logids.Field // of other: the kind of id in the cell
}

// sizeDigits are the significant decimals of a size or throughput, in sizeParts.
const (
	sizeDigits = 6
	sizeParts  = 1e6
)

// newLayout reads a header: "ID" is first and "Method" among the rest, split at commas or blanks. Names not known, a second column of the same meaning, and a
// unit that does not fit make a column an unknown one. false: not a header.
//
//	ID  Method  Serialize(ms)  Send(ms)  Recv(ms)  Deserialize(ms)  Total(ms)  Sent(KB)  Recv(KB)  Throughput(MB/s)
func newLayout(header string) (l layout, ok bool) {
	if len(header) < 3 || !strings.EqualFold(header[:2], "ID") || header[2] > ' ' && header[2] != ',' {
		return l, false
	}
	var names []string
	if strings.Contains(header, ",") {
		names = strings.Split(header, ",")
	} else {
		names = strings.FieldsFunc(header, func(c rune) bool { return c <= ' ' })
	}
	if len(names) > maxColumns || strings.TrimSpace(names[0]) != header[:2] {
		return l, false
	}
	l.header, l.has = header, 1<<ID
	for i, text := range names[1:] {
		name, u := splitUnit(strings.TrimSpace(text))
		c := cell{of: other, name: name, id: logids.Named(name)}
		column, of := columnOf(name, u.of)
		unitFits := u.of == none || u.of == of
		if of != none && unitFits && !l.has.Has(column) {
			if u.of == none {
				u = usual[of]
			}
			c = newCell(column, of, u)
			l.has |= 1 << column
		} else if name == "" {
			c.name = "column_" + strconv.Itoa(i+2) // counted from 1, and the ID is the first
		}
		if slices.ContainsFunc(l.cells, func(o cell) bool { return c.name != "" && o.name == c.name }) {
			c.name += "_" + strconv.Itoa(i+2)
		}
		l.ids = l.ids || c.id != logids.None
		l.cells = append(l.cells, c)
	}
	for i := range l.cells {
		c := &l.cells[i]
		c.timed = c.of == duration && l.times(c.column)
	}
	return l, l.has.Has(Method)
}

// times says whether a call's duration, with its offline work, depends on a column: see Row.NS for the columns that stand for Total.
func (l *layout) times(c Column) bool {
	switch c {
	case Total, Offline:
		return true
	case Comm:
		return !l.has.Has(Total)
	case Serialize, Send, Receive, Deserialize:
		return !l.has.Has(Total) && !l.has.Has(Comm)
	}
	return false
}

// newCell makes the cell of a known column with its unit.
func newCell(column Column, of dimension, u unit) cell {
	c := cell{of: of, column: column, digits: u.digits, bytes: u.bytes}
	switch of {
	case duration:
		c.limit = maxNS / pow10[u.digits]
	case size, rate:
		c.digits, c.limit = sizeDigits, maxBytes/u.bytes
	}
	c.safe = len(strconv.FormatUint(c.limit, 10)) - 1
	return c
}

// splitUnit splits a name in a header into the name in snake_case and the unit: "Recv(KB)" and "Recv_KB" are recv and KB, "GPU_Compute" is gpu_compute without
// a unit.
func splitUnit(s string) (name string, u unit) {
	if before, inside, ok := strings.Cut(strings.TrimSuffix(s, ")"), "("); ok {
		u = unitOf(strings.TrimSpace(inside))
		if u.of != none {
			return snake(before), u
		}
	} else if i := strings.LastIndexByte(s, '_'); i >= 0 {
		u = unitOf(s[i+1:])
		if u.of != none {
			return snake(s[:i]), u
		}
	}
	return snake(s), unit{}
}

// snake writes a name in small letters and digits, with _ between the parts: "GPU Compute" is gpu_compute.
func snake(s string) string {
	var b strings.Builder
	gap := false
	for _, c := range s {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
