package tqtracereceiver

import (
	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/envelope"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
)

// format is a log format of jobs with a TransferQueue.
type format struct {
	name string
	// detect reports whether a line without its prefix is a record, for include_by_content. rec is scratch memory.
	detect func(text []byte, rec *tqline.Line) bool
	// parse reads a line without its prefix. mine is false for a line of another format.
	parse func(h *handler, text []byte, l *tail.Line) (v tail.Verdict, reason string, mine bool)
}

// formats are tried in order. To add a format, add its line.
var formats = [...]format{
	{name: "tq_trace", detect: isTrace, parse: (*handler).readTagged},
	{name: "tq_neighbours", detect: isNeighbour, parse: (*handler).readNeighbour},
}

// Formats returns the formats of tq_trace, in order.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// detect returns the detector of a file's lines (tail.Settings.Detect), by which a file belongs to this receiver if a line, with its prefix, is a record of any
// of the formats.
func detect(string) tail.Detect {
	var peeler envelope.Peeler
	var prefix line.Prefix
	var rec tqline.Line
	return func(text []byte) tail.Reads {
		rest := peeler.Peel(text, &prefix)
		for i := range formats {
			if formats[i].detect(rest, &rec) {
				return tail.ReadsOwn
			}
		}
		return tail.ReadsNot
	}
}

// isTrace reports whether a line has a [TQ-…] record that can be read.
func isTrace(text []byte, rec *tqline.Line) bool {
	i := tqline.Find(text)
	return i >= 0 && tqline.Parse(text[i:], rec) == nil
}

// isNeighbour reports whether a line without a tag proves that its file is of TransferQueue: it is a neighbour with readable values. Other kinds of neighbours
// have no values, or come after a PerfHeader.
func isNeighbour(text []byte, _ *tqline.Line) (is bool) {
	switch tqline.Classify(text) {
	case tqline.TaskCost:
		_, is = tqline.ParseCost(text)
	case tqline.PerfHeader:
		_, is = tqline.ParsePerf(text)
	case tqline.Other, tqline.TaskGetting, tqline.TaskPutting, tqline.TensordictKeys, tqline.PerfRange, tqline.PerfOperations:
	}
	return is
}
