package partial

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/logids"
)

// The fields of a record, each a column, in the order of the format: a new field of op.Op is added at the end of its table, and version grows.
var (
	ints64 = [...]func(o *op.Op) *int64{
		func(o *op.Op) *int64 { return &o.PID },
		func(o *op.Op) *int64 { return &o.Size },
		func(o *op.Op) *int64 { return &o.Total },
		func(o *op.Op) *int64 { return &o.Start },
		func(o *op.Op) *int64 { return &o.Duration },
		func(o *op.Op) *int64 { return &o.Stream },
		func(o *op.Op) *int64 { return &o.Errors },
		func(o *op.Op) *int64 { return &o.Retries },
		func(o *op.Op) *int64 { return &o.Sends },
	}
	ints32 = [...]func(o *op.Op) *int32{
		func(o *op.Op) *int32 { return &o.CommSize },
		func(o *op.Op) *int32 { return &o.Nodes },
		func(o *op.Op) *int32 { return &o.Rank },
		func(o *op.Op) *int32 { return &o.Peer },
		func(o *op.Op) *int32 { return &o.Source },
		func(o *op.Op) *int32 { return &o.Destination },
		func(o *op.Op) *int32 { return &o.Channel },
		func(o *op.Op) *int32 { return &o.Channels },
	}
	numbers = [...]func(o *op.Op) *uint64{
		func(o *op.Op) *uint64 { return &o.Seq },
		func(o *op.Op) *uint64 { return &o.ParentSeq },
	}
	floats = [...]func(o *op.Op) *float64{
		func(o *op.Op) *float64 { return &o.ReportedAlg },
		func(o *op.Op) *float64 { return &o.ReportedBus },
		func(o *op.Op) *float64 { return &o.LinkBandwidth },
		func(o *op.Op) *float64 { return &o.LinkBandwidthWorst },
	}
	texts = [...]func(o *op.Op) *[]byte{
		func(o *op.Op) *[]byte { return &o.Comm },
		func(o *op.Op) *[]byte { return &o.CommName },
		func(o *op.Op) *[]byte { return &o.Host },
		func(o *op.Op) *[]byte { return &o.Name },
		func(o *op.Op) *[]byte { return &o.Timing },
		func(o *op.Op) *[]byte { return &o.Algorithm },
		func(o *op.Op) *[]byte { return &o.Protocol },
		func(o *op.Op) *[]byte { return &o.Datatype },
	}
	flags = [...]func(o *op.Op) *bool{
		func(o *op.Op) *bool { return &o.Global },
		func(o *op.Op) *bool { return &o.HasSeq },
		func(o *op.Op) *bool { return &o.SeqOfAll },
		func(o *op.Op) *bool { return &o.Ordinal },
		func(o *op.Op) *bool { return &o.Waits },
		func(o *op.Op) *bool { return &o.TimedOut },
		func(o *op.Op) *bool { return &o.Proxy },
		func(o *op.Op) *bool { return &o.HasParent },
	}
)

// hasIDs is the flag after flags: the record has IDs.
const hasIDs = 1 << len(flags)

const idFields = len(logids.IDs{})

// The columns, by the tables above. Columns from colName on have a value for each detail of a record, all others one for each record.
const (
	colKind   = 0 // always written, a byte for each record: a packing is never shorter than its claim
	colInt64  = 1
	colInt32  = colInt64 + len(ints64)
	colNumber = colInt32 + len(ints32)
	colFloat  = colNumber + len(numbers)
	colText   = colFloat + len(floats)
	colID     = colText + len(texts)

	colFlags      = colID + idFields
	colTime       = colFlags + 1
	colUnit       = colFlags + 2
	colEnd        = colFlags + 3 // End, less behind(Start, Duration): mostly 0
	colState      = colFlags + 4
	colParentKind = colFlags + 5
	colDetails    = colFlags + 6 // how many

	colName      = colFlags + 7 // always written, as colKind
	colStart     = colName + 1  // after the start of the record
	colDetailEnd = colName + 2  // as colEnd
	colDuration  = colName + 3
	colChannel   = colName + 4
	colPeer      = colName + 5
	colStep      = colName + 6
	colSize      = colName + 7
	colDirection = colName + 8
	colOperation = colName + 9
	colUnder     = colName + 10

	columns = colName + 11
)

// absent has the default value of each column: the fields of an empty op.Op. A column with only this value is not written. A text is the number of its entry in
// the dictionary, from 1 on; 0: nil, or an empty string.
var absent = func() (v [columns]int64) {
	var o op.Op
	o.Init()
	for i, f := range ints64 {
		v[colInt64+i] = *f(&o)
	}
	for i, f := range ints32 {
		v[colInt32+i] = int64(*f(&o))
	}
	for i, f := range floats {
		v[colFloat+i] = int64(math.Float64bits(*f(&o)))
	}
	for c := colDuration; c <= colSize; c++ {
		v[c] = op.Unknown
	}
	v[colUnder] = op.Unknown
	return v
}()

// expectedEnd returns start plus duration, Unix ns: columns of ends only have the difference to it, mostly 0. Without a start (0) it returns 0.
func expectedEnd(start, duration int64) int64 {
	if start == 0 {
		return 0
	}
	return start + max(duration, 0)
}
