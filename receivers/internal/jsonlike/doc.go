// Package jsonlike reads JSON, and text similar to JSON: Python's repr of a dict, with its quotes and words, traces with bare words as values, truncated lines.
// Valid JSON is read as by encoding/json.
//
// The functions work on bytes and allocate only for texts with escapes. Each function reads its part at b[i:] and returns the end, -1 where the part is missing
// or unfinished (blanks and a comma may be missing). Callers decide the meaning of names and values, and the accepted deviations from JSON: see [Lexer].
package jsonlike
