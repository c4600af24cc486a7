package vccl

import (
	"bytes"
	"math"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/spans"
)

// fill reads the other values of a record into o: times, size, ranks, errors, bandwidth, algorithm and ids. All values are read, whatever their errors; the
// reason is that of the first bad one, "" if there is none. A record needs a time or a duration.
func (m *messages) fill(v *values, o *op.Op) (reason string) {
	note := func(why string) {
		if reason == "" {
			reason = why
		}
	}
	var why string
	o.Time = spans.TimeSynthetic
	if b := v.of[keyTimestamp]; !absent(b) {
		at, err := decimal.Nanos(b)
		switch {
		case err != nil || b[len(b)-1] == 's': // Nanos reads "1.5s", too
			note(reasonNumber)
		case at <= 0:
			note(reasonNegative)
		}
		o.Start, o.End, o.Time = at, at, spans.TimeLogged
	}
	if b := v.of[keyDuration]; !absent(b) {
		d, ok := micros(b)
		switch {
		case !ok || d > math.MaxInt64-o.Start:
			note(reasonNumber)
		case d < 0:
			note(reasonNegative)
		default:
			o.Duration = d
			if o.Start > 0 {
				o.End = o.Start + d
			}
		}
	} else if o.Start == 0 {
		note(reasonNoTime)
	}
	o.Size, why = natural(v.of[keySize], op.Unknown)
	note(why)
	o.Total = o.Size
	o.Source, why = small(v.of[keySource])
	note(why)
	o.Destination, why = small(v.of[keyDestination])
	note(why)
	o.Channel, why = small(v.of[keyChannel])
	note(why)
	o.Stream, why = natural(v.of[keyStream], op.Unknown)
	note(why)
	o.Errors, why = natural(v.of[keyErrors], 0)
	note(why)
	o.Retries, why = natural(v.of[keyRetries], 0)
	note(why)
	switch o.Kind {
	case op.Send, op.SendRecv:
		o.Peer = o.Destination
	case op.Recv:
		o.Peer = o.Source
	}
	if b := v.of[keyBandwidth]; !absent(b) {
		r, ok := decimal.Float(b)
		if !ok {
			note(reasonNumber)
		}
		if r >= 0 && !math.IsInf(r, 0) {
			o.ReportedUnit, o.ReportedAlg = bandwidth(r, o.Total, o.Duration)
		}
	}
	if b := v.of[keyAlgorithm]; !absent(b) {
		if bytes.IndexByte(b, '\\') >= 0 {
			b = m.decode(b)
		}
		o.Algorithm = b
	}
	o.IDs = v.ids
	if o.IDs != nil {
		for f, b := range o.IDs {
			if bytes.IndexByte(b, '\\') >= 0 {
				o.IDs[f] = m.decode(b)
			}
		}
	}
	return reason
}

// The units of bandwidth_gbps.
const (
	gigabytes = "GB/s"
	gigabits  = "Gbit/s"
	perGbit   = 1e9 / 8 // By/s
	perGB     = 1e9
	// A printed bandwidth fits S/t within this share of S/t, and half of the last decimal printed.
	fits     = 0.1
	rounding = 0.05
)

// bandwidth returns the unit of bandwidth_gbps, found by S/t, and the value in By/s. If neither unit fits, or S/t is unknown, the unit is Gbit/s, as in the
// document's example (4194304 B in 1250.5 us are 26.8 Gbit/s or 3.35 GB/s; 26.8 is printed).
func bandwidth(reported float64, size, ns int64) (unit string, bytesPerSecond float64) {
	if size > 0 && ns > 0 {
		gb := float64(size) / float64(ns) // By/ns
		asBits, asBytes := math.Abs(reported-8*gb), math.Abs(reported-gb)
		if asBytes <= fits*gb+rounding && asBytes < asBits {
			return gigabytes, reported * perGB
		}
	}
	return gigabits, reported * perGbit
}

// natural reads a non-negative integer. none is the value of an absent integer, and may itself be printed (-1). reason is "" for a valid integer.
func natural(b []byte, none int64) (v int64, reason string) {
	if absent(b) {
		return none, ""
	}
	v, ok := integer(b)
	switch {
	case !ok:
		return none, reasonNumber
	case v < 0 && v != none:
		return none, reasonNegative
	}
	return v, ""
}

// small reads a non-negative integer of 32 bits, such as a rank; op.Unknown, −1, is the value of an absent one. reason is "" for a valid integer.
func small(b []byte) (v int32, reason string) {
	n, reason := natural(b, op.Unknown)
	if n > math.MaxInt32 {
		return op.Unknown, reasonNumber
	}
	return int32(n), reason
}
