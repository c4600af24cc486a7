package gen

import "errors"

// File is one log file.
type File struct {
	Path  string `json:"path"`
	PID   int    `json:"pid,omitempty"` // 0: a driver log, with the lines of all workers
	IP    string `json:"ip,omitempty"`
	Lines int64  `json:"lines"` // rotated files included
	// Rotated is how many parts were renamed: Path.1 (the oldest) to Path.Rotated.
	Rotated int `json:"rotated,omitempty"`
}

// ErrTruthUnfinished says that the truth file has no closing line: the generator still runs or was killed.
var ErrTruthUnfinished = errors.New("the truth has no closing run line: the generator still runs or was killed")
