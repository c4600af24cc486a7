package logfile

// HostClock is a host's clock: at true time t it shows t + Skew + Drift·1e-6·(t − Start), all in ns but for the drift in ppm.
type HostClock struct {
	Start, Skew int64
	Drift       float64
}

// Local is what the clock shows at a true time.
func (c *HostClock) Local(at int64) int64 {
	return at + c.Skew + int64(c.Drift*1e-6*float64(at-c.Start))
}
