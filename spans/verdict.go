package spans

// Verdict is what the registry says of a verdict of train_perf.
type Verdict struct {
	Name     string
	Severity string // one of the Severity… values: the usual one
	Unit     string // of its value and threshold, UCUM; empty: it has none, or that of what it judges
	Meaning  string // when it is said, with the default limits
	Advice   string // what to do
}

// VerdictNamed is the registry's verdict of a name.
func VerdictNamed(name string) (Verdict, bool) {
	v, ok := verdicts[name]
	return v, ok
}
