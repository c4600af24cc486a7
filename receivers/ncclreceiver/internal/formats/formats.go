// Package formats is the list of the receiver's formats.
package formats

import (
	"bytes"
	"time"

	fr "github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/inspector"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/profiler"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/vccl"
)

// Format is a format of the list.
type Format struct {
	Name string // as in the configuration
	// Tool is the writer of the file. All files of a tool have the same communicators; a collective in the files of two tools would have each rank twice.
	Tool string
	// Sniff reports whether a line, usually a file's first, is of this format.
	Sniff func(line []byte) bool
	// New makes the parser of a file. zone is the zone of times without one.
	New func(path string, zone *time.Location) parse.Parser
	// Sure reports whether a line decides the reader of its file: the line is of this format, and of no other writer. out is the result of a record. nil: every
	// record is.
	Sure func(path string, line []byte, out *parse.Out) bool
	// Header reports whether a line is a header of this writer alone: the header decides the reader before any record. nil: no headers.
	Header func(line []byte) bool
}

// All is tried in order. To add a format, add its line.
var All = []Format{
	{Name: "nccl_inspector", Tool: "nccl_inspector", Sniff: inspector.Sniff, New: func(string, *time.Location) parse.Parser { return inspector.New() }},
	{Name: Profiler, Tool: Profiler, Sniff: profiler.Sniff, New: func(path string, _ *time.Location) parse.Parser { return profiler.New(path) }},
	{
		Name: FlightRecorder, Tool: FlightRecorder, Sniff: flightrecorder.Sniff,
		New: func(path string, _ *time.Location) parse.Parser { return flightrecorder.New(path) },
	},
	{
		Name: "vccl_json", Tool: toolVCCL, Sniff: vccl.SniffJSON, New: func(path string, _ *time.Location) parse.Parser { return vccl.NewJSON(path) },
		Sure: vccl.SureMessage,
	},
	{
		Name: "vccl_csv", Tool: toolVCCL, Sniff: vccl.SniffCSV, New: func(path string, _ *time.Location) parse.Parser { return vccl.NewCSV(path) },
		Sure: vccl.SureMessage,
	},
	{
		Name: "vccl_flow", Tool: toolVCCL, Sniff: vccl.SniffFlow, New: func(path string, _ *time.Location) parse.Parser { return vccl.NewFlow(path) },
		Header: vccl.IsHeader,
	},
	{
		Name: "vccl_packed", Tool: toolVCCL, Sniff: vccl.SniffPacked, New: func(path string, _ *time.Location) parse.Parser { return vccl.NewPacked(path) },
		Sure: vccl.SurePacked, Header: vccl.IsHeader,
	},
	{
		Name: "vccl_mean", Tool: toolVCCL, Sniff: vccl.SniffMean, New: func(path string, zone *time.Location) parse.Parser { return vccl.NewMean(path, zone) },
		Header: vccl.IsHeader,
	},
	{Name: "vccl_text", Tool: toolVCCL, Sniff: vccl.SniffText, New: func(path string, zone *time.Location) parse.Parser { return vccl.NewText(path, zone) }},
}

const (
	// Profiler is the format of the traces of NCCL's profiler plugin, one a process.
	Profiler = "nccl_profiler"
	// FlightRecorder is the format with documents as files: one object each, written whole.
	FlightRecorder = "flight_recorder"
	toolVCCL       = "vccl"
)

// Names returns the names of All.
func Names() []string {
	names := make([]string, len(All))
	for i := range All {
		names[i] = All[i].Name
	}
	return names
}

// Named returns the format with a name; nil: none.
func Named(name string) *Format {
	for i := range All {
		if All[i].Name == name {
			return &All[i]
		}
	}
	return nil
}

// The reasons why a line is of no format.
const (
	reasonBracket    = "bracket"
	reasonPrometheus = "prometheus" // Inspector's other output: for the prometheus receiver
	reasonUnknown    = "unknown_format"
	reasonBinary     = "binary_without_layout" // no binary layout of VCCL telemetry is specified, in code or documents
)

// Of returns the format of a file by a line, usually its first. nil: the line does not decide; then the verdict on the line and the reason are returned.
// Pickles, which are no text, come first; then the formats whose Sniff accepts the line.
func Of(line []byte) (f *Format, v parse.Verdict, reason string) {
	switch {
	case fr.IsPickle(line) && flightrecorder.Sniff(line):
		return Named(FlightRecorder), parse.Record, ""
	case fr.IsPickle(line):
		_, reason := flightrecorder.New("").Line(line, false, 0, new(parse.Out))
		return nil, parse.Rejected, reason
	case inspector.IsPrometheus(line):
		return nil, parse.Ignored, reasonPrometheus
	case vccl.Binary(line):
		return nil, parse.Rejected, reasonBinary
	case len(bytes.Trim(line, "[]}, \t\r")) == 0:
		return nil, parse.Ignored, reasonBracket // an array or a trace: the next line says
	}
	for i := range All {
		if All[i].Sniff(line) {
			return &All[i], parse.Record, ""
		}
	}
	return nil, parse.Rejected, reasonUnknown
}
