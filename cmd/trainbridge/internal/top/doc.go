// Package top is `trainbridge top`: a live view of a training job for a terminal.
//
// What is shown is a model (model.go), which spans of logs that are still written (spans.go) or the metrics of a running trainbridge (scrape.go) fill.
// render.go makes the lines of a screen of it, plain.go lines for a pipe; screen.go draws them and reads keys.
package top
