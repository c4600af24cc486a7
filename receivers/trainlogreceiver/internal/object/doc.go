// Package object reads the two notations of training scripts for a record of named values, JSON objects and Python's repr of a dict, and knows their names for
// the values of record.Field.
package object
