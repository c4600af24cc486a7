package writer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/internal/outfile"
)

// TruthNone in place of a truth file: no truth is written.
const TruthNone = "none"

// Complaints collects the mistakes in options.
type Complaints []error

// Bad adds a complaint.
func (c *Complaints) Bad(format string, args ...any) {
	*c = append(*c, fmt.Errorf("%w: "+format, append([]any{logfile.ErrOptions}, args...)...))
}

// OneOf complains about a value not among names.
func (c *Complaints) OneOf(flag, value string, names ...string) {
	if !slices.Contains(names, value) {
		c.Bad("--%s %q: use one of %q", flag, value, names)
	}
}

// Positive complains about a duration of 0 or below.
func (c *Complaints) Positive(flag string, d time.Duration) {
	if d <= 0 {
		c.Bad("--%s %v: use more than 0", flag, d)
	}
}

// Range01 complains about a value below 0 or above most.
func (c *Complaints) Range01(flag string, v, most float64) {
	if !(v >= 0 && v <= most) {
		c.Bad("--%s %v: use 0 to %v", flag, v, most)
	}
}

// IsDir reports whether --out is a directory: an existing one, or a name without extension.
func IsDir(out string) bool {
	if out == "-" {
		return false
	}
	if st, err := os.Stat(out); err == nil {
		return st.IsDir()
	}
	return filepath.Ext(filepath.Base(out)) == ""
}

// TruthPath is empty when no truth is to be written.
func TruthPath(out, truth string) string {
	switch {
	case truth == TruthNone, truth == "" && (out == "-" || outfile.IsStream(out)):
		return ""
	case truth != "":
		return truth
	case IsDir(out):
		return filepath.Join(out, "truth.json")
	}
	return out + ".truth.json"
}

// TimeFlags are --start and, of logs with stamps, --timezone.
type TimeFlags struct{ start, timezone string }

// Add adds both flags.
func (f *TimeFlags) Add(cmd *cobra.Command) {
	f.AddStart(cmd)
	cmd.Flags().StringVar(&f.timezone, "timezone", "", "zone of the stamps in the log (default: local)")
}

// AddStart adds --start alone.
func (f *TimeFlags) AddStart(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.start, "start", "", "time of the first line, RFC 3339 (default: such that the log ends now)")
}

// Parse reads the given flags into start and zone.
func (f *TimeFlags) Parse(start *time.Time, zone **time.Location) (err error) {
	if f.start != "" {
		*start, err = time.Parse(time.RFC3339Nano, f.start)
		if err != nil {
			return fmt.Errorf("%w: --start %q: use RFC 3339, such as 2026-02-11T16:40:00Z", logfile.ErrOptions, f.start)
		}
	}
	if f.timezone != "" {
		*zone, err = time.LoadLocation(f.timezone)
		if err != nil {
			return fmt.Errorf("%w: --timezone %q: use a name of the IANA database, such as Asia/Shanghai: %w", logfile.ErrOptions, f.timezone, err)
		}
	}
	return nil
}
