package spans

// Verdict is the registry's entry for a verdict of train_perf.
type Verdict struct {
	Name     string
	Severity string // one of the Severity… values: the usual one
	Unit     string // of its value and threshold, UCUM; empty: it has none, or the unit of the value that it judges
	Meaning  string // when it is said, with the default limits
	Advice   string // what to do
}

// VerdictNamed is the registry's verdict of a name.
func VerdictNamed(name string) (Verdict, bool) {
	v, ok := verdicts[name]
	return v, ok
}
