package wandb

import (
	"encoding/json"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trainbridge/trainbridge/internal/decimal"
)

// Item is a name and its value.
type Item struct {
	Key   []byte // the names of nested values with dots between: "train.acc", or a key with a dot
	Value []byte // JSON, with the SDK's NaN, Infinity and -Infinity
}

// History is a row of metrics, of one or more calls of wandb.log for the same step.
type History struct {
	Step      int64   // of W&B, not of the trainer; -1: none, as in runs of several writers ("shared" mode)
	Timestamp float64 // seconds since 1970; 0: none
	Runtime   float64 // seconds of the run so far, without pauses; 0: none
	Items     []Item  // all but _step, _timestamp and _runtime
}

// Stats is a sample of system metrics.
type Stats struct {
	Timestamp float64 // seconds since 1970
	Items     []Item
}

// Run describes the run. A Run comes before all rows, and again after a change.
type Run struct {
	ID, Entity, Project, Group, JobType, Name, Host []byte

	Start        float64 // seconds since 1970
	StartingStep int64   // the first step of W&B; more than 0 where a run was resumed
	Resumed      bool
	Config       []Item // as known at the start; Config has later values
}

// Config is a change of the run's configuration.
type Config struct {
	Items   []Item // new values
	Removed []Item // keys, without values
}

// Exit is the end of a run.
type Exit struct {
	Code        int32 // of the process
	Runtime     int32 // seconds
	NotComplete bool  // a process of several ends, and the code says nothing of the run
}

// Fields of the messages, by tag: number and wire type. wandb/wandb, commit b6e29505884ea60c79ca12091f1f75bd39d2f955,
// wandb/proto/wandb_internal.proto; typed values from wandb/proto/v6/wandb_internal_pb2.py of wandb 0.31.0 on PyPI.
const (
	recordHistory = 2<<3 | uint64(protowire.BytesType)
	recordConfig  = 5<<3 | uint64(protowire.BytesType)
	recordStats   = 7<<3 | uint64(protowire.BytesType)
	recordRun     = 17<<3 | uint64(protowire.BytesType)
	recordExit    = 18<<3 | uint64(protowire.BytesType)

	historyItem = 1<<3 | uint64(protowire.BytesType)
	historyStep = 2<<3 | uint64(protowire.BytesType)
	stepNum     = 1<<3 | uint64(protowire.VarintType)

	itemKey       = 1<<3 | uint64(protowire.BytesType)
	itemNestedKey = 2<<3 | uint64(protowire.BytesType)
	itemNone      = 3<<3 | uint64(protowire.VarintType)
	itemBoolean   = 4<<3 | uint64(protowire.VarintType)
	itemInteger   = 5<<3 | uint64(protowire.VarintType) // zigzag
	itemNumber    = 6<<3 | uint64(protowire.Fixed64Type)
	itemText      = 7<<3 | uint64(protowire.BytesType)
	itemJSON      = 8<<3 | uint64(protowire.BytesType)
	itemValueJSON = 16<<3 | uint64(protowire.BytesType)

	statsTimestamp = 2<<3 | uint64(protowire.BytesType)
	statsItem      = 3<<3 | uint64(protowire.BytesType)
	timeSeconds    = 1<<3 | uint64(protowire.VarintType)
	timeNanos      = 2<<3 | uint64(protowire.VarintType)

	configUpdate = 1<<3 | uint64(protowire.BytesType)
	configRemove = 2<<3 | uint64(protowire.BytesType)

	runID           = 1<<3 | uint64(protowire.BytesType)
	runEntity       = 2<<3 | uint64(protowire.BytesType)
	runProject      = 3<<3 | uint64(protowire.BytesType)
	runConfig       = 4<<3 | uint64(protowire.BytesType)
	runGroup        = 6<<3 | uint64(protowire.BytesType)
	runJobType      = 7<<3 | uint64(protowire.BytesType)
	runName         = 8<<3 | uint64(protowire.BytesType)
	runHost         = 13<<3 | uint64(protowire.BytesType)
	runStartingStep = 14<<3 | uint64(protowire.VarintType)
	runStart        = 17<<3 | uint64(protowire.BytesType)
	runResumed      = 18<<3 | uint64(protowire.VarintType)

	exitCode        = 1<<3 | uint64(protowire.VarintType)
	exitRuntime     = 2<<3 | uint64(protowire.VarintType)
	exitNotComplete = 3<<3 | uint64(protowire.VarintType)
)

// read passes a record to the handler, and counts its kind. A malformed record is only counted. At the end read empties d.items and the other fields that the
// handler's argument was made in.
func (d *Decoder) read(b []byte) {
	var tag uint64 // of the record's kind
	var of []byte  // its message
	m := message{rest: b}
	for m.next() {
		switch m.tag {
		case recordHistory, recordConfig, recordStats, recordRun, recordExit:
			tag, of = m.tag, m.bytes
		}
	}
	count, ok := &d.counts.Skipped, !m.bad
	if ok {
		switch tag {
		case recordHistory:
			count, ok = &d.counts.History, d.handler.History == nil || d.history(of)
		case recordStats:
			count, ok = &d.counts.Stats, d.handler.Stats == nil || d.sample(of)
		case recordRun:
			count, ok = &d.counts.Run, d.handler.Run == nil || d.runRecord(of)
		case recordConfig:
			count, ok = &d.counts.Config, d.handler.Config == nil || d.config(of)
		case recordExit:
			count, ok = &d.counts.Exit, d.handler.Exit == nil || d.exit(of)
		}
	}
	if !ok {
		count = &d.counts.Malformed
	}
	*count++
	// The decoder shall not keep the caller's bytes from being freed.
	clear(d.items)
	d.items, d.text, d.row, d.stats, d.run, d.cfg, d.end = d.items[:0], d.text[:0], History{}, Stats{}, Run{}, Config{}, Exit{}
}

// history reads a HistoryRecord, and passes the row to the handler; false: malformed. Where the caller of wandb.log gave the step, 0.16 only has the item
// _step.
func (d *Decoder) history(b []byte) bool {
	d.row.Step = -1
	step := int64(-1) // as the record says, which counts more than the item
	m := message{rest: b}
	for ok := true; m.next(); {
		switch m.tag {
		case historyItem:
			ok = d.item(m.bytes)
			d.special()
		case historyStep:
			step, ok = num(m.bytes)
		}
		if !ok {
			return false
		}
	}
	if m.bad {
		return false
	}
	if step >= 0 {
		d.row.Step = step
	}
	d.row.Items = d.items
	d.handler.History(&d.row)
	return true
}

// special moves the last item to its field of the row, if it is _step, _timestamp or _runtime.
func (d *Decoder) special() {
	if len(d.items) == 0 {
		return
	}
	item := d.items[len(d.items)-1]
	switch string(item.Key) {
	case "_step":
		if n, end := decimal.Unsigned(item.Value, 0); end > 0 && end == len(item.Value) && n <= math.MaxInt64 {
			d.row.Step = int64(n)
		}
	case "_timestamp":
		d.row.Timestamp = finite(item.Value)
	case "_runtime":
		d.row.Runtime = finite(item.Value)
	default:
		return
	}
	d.items[len(d.items)-1] = Item{}
	d.items = d.items[:len(d.items)-1]
}

// finite reads a number; 0: not a finite number.
func finite(b []byte) float64 {
	v, ok := decimal.Float(b)
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// num reads a HistoryStep.
func num(b []byte) (n int64, ok bool) {
	m := message{rest: b}
	for m.next() {
		if m.tag == stepNum {
			n = int64(m.number)
		}
	}
	return n, !m.bad
}

// sample reads a StatsRecord, and passes it to the handler; false: malformed.
func (d *Decoder) sample(b []byte) bool {
	m := message{rest: b}
	for ok := true; m.next(); {
		switch m.tag {
		case statsTimestamp:
			d.stats.Timestamp, ok = seconds(m.bytes)
		case statsItem:
			ok = d.item(m.bytes)
		}
		if !ok {
			return false
		}
	}
	if m.bad {
		return false
	}
	d.stats.Items = d.items
	d.handler.Stats(&d.stats)
	return true
}

// runRecord reads a RunRecord, and passes it to the handler; false: malformed.
func (d *Decoder) runRecord(b []byte) bool {
	m := message{rest: b}
	for ok := true; m.next(); {
		switch m.tag {
		case runID:
			d.run.ID = m.bytes
		case runEntity:
			d.run.Entity = m.bytes
		case runProject:
			d.run.Project = m.bytes
		case runGroup:
			d.run.Group = m.bytes
		case runJobType:
			d.run.JobType = m.bytes
		case runName:
			d.run.Name = m.bytes
		case runHost:
			d.run.Host = m.bytes
		case runStartingStep:
			d.run.StartingStep = int64(m.number)
		case runResumed:
			d.run.Resumed = m.number != 0
		case runStart:
			d.run.Start, ok = seconds(m.bytes)
		case runConfig:
			ok = d.itemsOf(m.bytes, configUpdate)
		}
		if !ok {
			return false
		}
	}
	if m.bad {
		return false
	}
	d.run.Config = d.items
	d.handler.Run(&d.run)
	return true
}

// config reads a ConfigRecord, and passes it to the handler; false: malformed. d.cfg, with the slices of d.items in it, is valid until read empties both after
// the handler's return.
func (d *Decoder) config(b []byte) bool {
	// d.items, empty before each record, gets the updates first, and the removals behind.
	if !d.itemsOf(b, configUpdate) {
		return false
	}
	updates := len(d.items)
	if !d.itemsOf(b, configRemove) {
		return false
	}
	d.cfg = Config{Items: d.items[:updates:updates], Removed: d.items[updates:]}
	d.handler.Config(&d.cfg)
	return true
}

// itemsOf appends the items of a ConfigRecord in the field with a tag to d.items: updates or removals; false: malformed.
func (d *Decoder) itemsOf(b []byte, tag uint64) bool {
	m := message{rest: b}
	for m.next() {
		if m.tag == tag && !d.item(m.bytes) {
			return false
		}
	}
	return !m.bad
}

// exit reads a RunExitRecord, and passes it to the handler; false: malformed.
func (d *Decoder) exit(b []byte) bool {
	m := message{rest: b}
	for m.next() {
		switch m.tag {
		case exitCode:
			d.end.Code = int32(m.number)
		case exitRuntime:
			d.end.Runtime = int32(m.number)
		case exitNotComplete:
			d.end.NotComplete = m.number != 0
		}
	}
	if m.bad {
		return false
	}
	d.handler.Exit(&d.end)
	return true
}

// item reads a HistoryItem, StatsItem or ConfigItem, with fields from the same list, and appends the item to d.items. Nested keys are joined with dots; a value
// is the JSON, or the typed value written as JSON. An item without a key is left out. false: malformed.
func (d *Decoder) item(b []byte) bool {
	var item Item
	var typed message   // stays at the field of the typed value
	from := len(d.text) // where the joined key begins, if any
	m := message{rest: b}
	for m.next() {
		switch m.tag {
		case itemKey:
			item.Key = m.bytes
		case itemNestedKey:
			if item.Key == nil { // A single name is the rule, and is not copied.
				item.Key = m.bytes
				continue
			}
			if from == len(d.text) {
				d.text = append(d.text, item.Key...)
			}
			d.text = append(append(d.text, '.'), m.bytes...)
			item.Key = d.text[from:]
		case itemValueJSON:
			item.Value = m.bytes
		case itemNone, itemBoolean, itemInteger, itemNumber, itemText, itemJSON:
			typed = m
		}
	}
	if m.bad {
		return false
	}
	if item.Value == nil {
		from = len(d.text)
		d.text = appendTyped(d.text, &typed)
		item.Value = d.text[from:]
	}
	if len(item.Key) > 0 {
		d.items = append(d.items, item)
	}
	return true
}

// appendTyped appends a typed value as the SDK writes the JSON beside; nothing, if the message has no typed value.
func appendTyped(to []byte, m *message) []byte {
	switch m.tag {
	case itemNone:
		return append(to, "null"...)
	case itemBoolean:
		return strconv.AppendBool(to, m.number != 0)
	case itemInteger:
		return strconv.AppendInt(to, protowire.DecodeZigZag(m.number), 10)
	case itemNumber:
		return appendNumber(to, math.Float64frombits(m.number))
	case itemText:
		text, err := json.Marshal(string(m.bytes))
		if err != nil {
			return to
		}
		return append(to, text...)
	case itemJSON:
		return append(to, m.bytes...)
	}
	return to
}

// appendNumber appends a number; NaN and the infinities as Python's json.dumps writes them, though JSON has none.
func appendNumber(to []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(to, "NaN"...)
	case math.IsInf(v, 1):
		return append(to, "Infinity"...)
	case math.IsInf(v, -1):
		return append(to, "-Infinity"...)
	}
	return strconv.AppendFloat(to, v, 'g', -1, 64)
}
