package format

import (
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// Conclusion is what there is to say of a job, most of it first.
type Conclusion struct {
	Title    string // which run, how much of it, where its logs are
	Headline string // one sentence
	Severity string // bad, warning or good, as of verdicts
	Run      tables.Run
	End      postmortem.End
	Step     int64 // that was under way when the run ended; -1: not known
	Claims   []Claim
	Gaps     []string // what no log of the job tells
}

// Claim is one thing that the logs show.
type Claim struct {
	Text, Advice string   // Advice: ""
	Proof        []string // where it can be seen: file, line, trace id

	Kind    string  // wrong: results are lost, or the job stands; costly: time is lost; remark: worth a look
	About   string  // slow, checkpoint, data_loading, down, …; "": a verdict
	Cost    float64 // s; NaN: not known
	Devices float64 // s x ranks; 0: not known
	Seen    []Seen  // the same as Proof, for programs
}

// Seen is where a claim can be seen, and what is there.
type Seen struct {
	What string
	At   digest.At
}
