package gen

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// TruthNone in place of a truth file means that no truth is written.
const TruthNone = "none"

// ErrOptions wraps everything that is wrong with the options.
var ErrOptions = errors.New("gen")

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

// timeFlags are --start and --timezone, which all logs have.
type timeFlags struct{ start, timezone string }

func (f *timeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.start, "start", "", "time of the first line, RFC 3339 (default: such that the log ends now)")
	cmd.Flags().StringVar(&f.timezone, "timezone", "", "zone of the stamps in the log (default: local)")
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
