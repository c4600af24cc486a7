// Package jsonlike reads the parts of JSON, and of what programs print that looks like JSON: Python's repr of a dict, with its quotes and words, traces whose
// values are bare words, lines that were cut. What is JSON, it reads as encoding/json does.
//
// It works on bytes and allocates nothing. Each function reads what stands at b[i:] and returns where that ends, -1 where it is not there or does not end. What
// names and values mean is up to the callers, and so is what of a writer's liberties they take.
package jsonlike
