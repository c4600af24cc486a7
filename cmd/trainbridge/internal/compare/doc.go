// Package compare is `trainbridge compare`: two runs side by side, what differs between them, by how much, and how sure that is.
//
// Spans are the source, those of the pipeline that all commands over files have (offline). run.go keeps what is compared of each run, bounded
// (sample.go); comparison.go puts the values into units, the steps of the run, and lists the figures; bootstrap.go makes an interval of each; text.go,
// html.go and json.go print them.
package compare
