// Package object reads the two ways in which training scripts print a record of named values, JSON objects and Python's repr of a
// dict, and knows the names under which they print what record.Field holds.
package object
