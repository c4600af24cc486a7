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
	{name: "tq_trace", detect: isTrace, parse: (*handler).trace},
	{name: "tq_neighbours", detect: isNeighbour, parse: (*handler).neighbour},
}

// Formats returns the formats of tq_trace, in order.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// detect makes the function that says of a line, with its prefix, whether it is a record of any of the formats: tail reads a file by its content where the name
// does not decide (include_by_content).
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

// isNeighbour reports whether a line is a neighbour that makes a file one of TransferQueue: its values can be read. The rest of the neighbours have none, or
// come after a PerfHeader.
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
