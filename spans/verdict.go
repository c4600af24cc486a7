package spans

// Verdict is the registry's entry for a verdict, or for one of its causes.
type Verdict struct {
	Name     string
	Severity string // the usual severity, one of the Severity… values
	Unit     string // of its value and threshold, UCUM; empty: no value, or the unit of the judged value
	Meaning  string // the condition, with the default limits
	Advice   string // advice to the reader
}

// VerdictNamed returns the registry's verdict of a name and a cause; for an unknown or empty cause, the entry of the name.
func VerdictNamed(name, cause string) (Verdict, bool) {
	v, ok := verdicts[[2]string{name, cause}]
	if !ok {
		v, ok = verdicts[[2]string{name, ""}]
	}
	return v, ok
}
