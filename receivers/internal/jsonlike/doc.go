// Package jsonlike reads JSON, and text that looks like JSON: Python's repr of a dict, with its quotes and words, traces whose values are bare words, lines
// that were cut. It reads JSON as encoding/json does.
//
// It works on bytes and allocates nothing, but for texts with escapes. Each function reads its part at b[i:] and returns where that ends, -1 where it is not
// there or does not end. The meaning of names and values is up to the callers, and so is how much that is not JSON they accept: a [Lexer] says what differs.
package jsonlike
