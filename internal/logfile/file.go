package logfile

// File is one log file.
type File struct {
	Path  string `json:"path"`
	PID   int    `json:"pid,omitempty"` // 0: a driver log, with the lines of all workers
	IP    string `json:"ip,omitempty"`
	Lines int64  `json:"lines"` // rotated files included
	// Rotated is the number of renamed parts: Path.1 (the oldest) to Path.Rotated.
	Rotated int `json:"rotated,omitempty"`
	// LineCounts is of all logs but TransferQueue's.
	LineCounts
	// Of logs about collectives: the writing host, the number of operations or sends in the file, and the number of lines overwritten since (of a file that
	// alternates with another).
	Host        string `json:"host,omitempty"`
	Operations  int64  `json:"operations,omitempty"`
	Overwritten int64  `json:"overwritten_lines,omitempty"`
}

// LineCounts sorts the lines of a log.
type LineCounts struct {
	Records  int64 `json:"record_lines,omitempty"`
	Sides    int64 `json:"side_lines,omitempty"` // with values of the record before
	Ignored  int64 `json:"ignored_lines,omitempty"`
	Rejected int64 `json:"rejected_lines,omitempty"` // broken records
}
