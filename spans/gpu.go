package spans

// GPUValues are what a log states of one of its GPUs, for programs that sum such values up and need no point for each of them.
type GPUValues struct {
	Service, RunID string
	Host           string // "": not said
	Rank           int64  // whose log states them; -1: not said
	Device         string // hw.id; "": not said
	Metric         string
	Label, Of      string // the attribute that its points have beside these, and its value; "": none

	Times  []int64 // ns since the epoch, one for each value
	Values []float64
}
