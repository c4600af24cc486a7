package format

import (
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// Conclusion is the report of a job in short, the most important first.
type Conclusion struct {
	Title    string // the run, its size, the place of its logs
	Headline string // a sentence
	Severity string // bad, warning or good, as of verdicts
	Run      tables.Run
	End      postmortem.End
	Step     int64 // the last in the logs; -1: none
	Claims   []Claim
	Gaps     []string // gaps of all logs of the job
}

// Claim is a finding of the logs.
type Claim struct {
	Text, Advice string   // Advice "": none
	Proof        []string // evidence: file, line, trace id

	Kind    string  // wrong: results are lost, or the job stands; costly: time is lost; remark: worth a look
	About   string  // slow, checkpoint, data_loading, down, …; "": a verdict, TransferQueue, a time zone
	Cost    float64 // s; NaN: not known
	Devices float64 // s x ranks; 0: not known
	Seen    []Seen  // the same as Proof, for programs
}

// Seen is the evidence of a claim.
type Seen struct {
	What string
	At   digest.At
}
