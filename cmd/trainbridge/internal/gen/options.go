package gen

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// TruthNone in place of a truth file means that no truth is written.
const TruthNone = "none"

// ErrOptions wraps everything that is wrong with the options.
var ErrOptions = errors.New("gen")

// complaints collects what is wrong with options.
type complaints []error

func (c *complaints) bad(format string, args ...any) {
	*c = append(*c, fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...))
}

func (c *complaints) oneOf(flag, value string, names ...string) {
	if !slices.Contains(names, value) {
		c.bad("--%s %q: use one of %q", flag, value, names)
	}
}

// isDir says whether --out is a directory: one that exists, or a name without extension.
func isDir(out string) bool {
	if out == "-" {
		return false
	}
	if st, err := os.Stat(out); err == nil {
		return st.IsDir()
	}
	return filepath.Ext(filepath.Base(out)) == ""
}

// truthPath is empty when no truth is to be written.
func truthPath(out, truth string) string {
	switch {
	case truth == TruthNone, truth == "" && out == "-":
		return ""
	case truth != "":
		return truth
	case isDir(out):
		return filepath.Join(out, "truth.json")
	}
	return out + ".truth.json"
}

// timeFlags are --start and, of logs with stamps, --timezone.
type timeFlags struct{ start, timezone string }

func (f *timeFlags) add(cmd *cobra.Command) {
	f.addStart(cmd)
	cmd.Flags().StringVar(&f.timezone, "timezone", "", "zone of the stamps in the log (default: local)")
}

func (f *timeFlags) addStart(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.start, "start", "", "time of the first line, RFC 3339 (default: such that the log ends now)")
}

func (f *timeFlags) parse(start *time.Time, zone **time.Location) (err error) {
	if f.start != "" {
		if *start, err = time.Parse(time.RFC3339Nano, f.start); err != nil {
			return fmt.Errorf("%w: --start %q: use RFC 3339, such as 2026-02-11T16:40:00Z", ErrOptions, f.start)
		}
	}
	if f.timezone != "" {
		if *zone, err = time.LoadLocation(f.timezone); err != nil {
			return fmt.Errorf("%w: --timezone %q: use a name of the IANA database, such as Asia/Shanghai: %w", ErrOptions, f.timezone, err)
		}
	}
	return nil
}
