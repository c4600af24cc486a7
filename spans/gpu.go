package spans

// GPUValues are a log's values of one of its GPUs, for programs that sum up and need no point for each value.
type GPUValues struct {
	Service, RunID string
	Host           string // "": not said
	Rank           int64  // rank that logged the values; -1: unknown
	Device         string // hw.id; "": not said
	Metric         string
	Label, Of      string // the extra attribute of the points, and its value; "": none

	Times  []int64 // ns since the epoch, one per value
	Values []float64
}
