package spans

// Verdict is the registry's entry for a verdict, or for one of its causes.
type Verdict struct {
	Name     string
	Severity string // one of the Severity… values: the usual one
	Unit     string // of its value and threshold, UCUM; empty: it has none, or the unit of the value that it judges
	Meaning  string // when it is said, with the default limits
	Advice   string // what to do
}

// VerdictNamed is the registry's verdict of a name and a cause; of a cause that the registry does not have, and of none, that of the name.
func VerdictNamed(name, cause string) (Verdict, bool) {
	v, ok := verdicts[[2]string{name, cause}]
	if !ok {
		v, ok = verdicts[[2]string{name, ""}]
	}
	return v, ok
}
