// Package check is `trainbridge check`: the format of each file, the lines that are read and ignored, and settings that are probably missing.
package check

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/internal/writable"
)

// errOff is printed already: only the exit code is left.
var errOff = errors.New("something is off")

// Resolve returns the configuration made of files, or the built-in one without files, and its errors. A configuration may come with an error.
type Resolve func(ctx context.Context, files []string) (conf map[string]any, err error)

// NewCommand is `trainbridge check`.
func NewCommand(resolve Resolve) *cobra.Command {
	var format string
	var files []string
	var zones reading.Zones
	var patterns reading.Patterns
	cmd := &cobra.Command{
		Use:   "check [PATH…]",
		Short: "Say which logs are understood, as what, and what is off",
		Long: `Reads logs as the collector does and says of each file which receiver understands it, how many of its lines are records, ignored and rejected,
why, and where the first of each is; then what is off, and notes on what would make the traces say more. It sends nothing.

PATH is a file, a directory with all that is below it, a glob, or - for the standard input; .gz and .zst are read as they are. Without PATH it reads
what a collector would: of the configuration in --config, else of the built-in one, with the variables of the environment.

Exit code: 0 nothing is off (notes may be there), 1 something is off, 2 nothing can be read.`,
		Example: `  trainbridge check /data/job
  trainbridge check 'logs/**/*.log' --format json
  trainbridge check --config collector.yaml`,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, paths []string) error {
			if len(paths) > 0 && len(files) > 0 {
				return reading.Errorf(cmd, "name either logs or a --config, whose globs name the logs")
			}
			c := new(account)
			var err error
			c.zones, err = zones.Of(cmd)
			if err != nil {
				return err
			}
			c.patterns, err = patterns.Of(cmd)
			if err != nil {
				return err
			}
			if len(paths) > 0 {
				err = c.logs(cmd, paths)
			} else {
				err = c.config(cmd, files, resolve)
			}
			if err != nil {
				return err
			}
			return c.end(cmd, format == reading.JSON)
		},
	}
	cmd.Flags().StringArrayVar(&files, "config", nil, "a `file` with a collector's configuration; of several, the later wins")
	reading.Choice(cmd, &format, "format", "format", "text", reading.JSON)
	zones.Add(cmd)
	patterns.Add(cmd)
	return cmd
}

// logs checks TRAINBRIDGE_STATE_DIR, if set, then reads the logs of paths and judges them. Paths without any file are findings, and no error.
func (c *account) logs(cmd *cobra.Command, paths []string) error {
	if dir := os.Getenv("TRAINBRIDGE_STATE_DIR"); dir != "" {
		c.stateDirectory(dir)
	}
	in, err := offline.Open(paths, cmd.InOrStdin())
	if err != nil {
		c.missing(err)
		return nil
	}
	defer in.Close()
	return c.read(cmd, in, nil)
}

// read reads the logs, by the given receivers (nil: each file by the receiver that understands the file), and judges them.
func (c *account) read(cmd *cobra.Command, in *offline.Input, receivers []offline.Receiver) error {
	w := newWatch()
	opt := offline.Options{Device: os.Getenv("TRAINBRIDGE_DEVICE"), Watch: w.file, Receivers: receivers, Positions: true, Zones: c.zones, Patterns: c.patterns}
	got, err := reading.ReadAny(cmd.Context(), cmd, in, opt, w.sink())
	if err != nil {
		return err
	}
	c.take(in, got, w)
	return nil
}

// end writes the account as text or JSON. The error makes the exit code: none 0, errOff 1, a UsageError 2; these two are not printed (SilenceErrors), as the
// output says the same. An error of writing is printed.
func (c *account) end(cmd *cobra.Command, asJSON bool) error {
	c.sort()
	write := c.text
	if asJSON {
		write = c.json
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	cmd.SilenceErrors = true
	switch c.exit() {
	case 1:
		return errOff
	case 2:
		return reading.Errorf(cmd, "nothing can be read")
	}
	return nil
}

// exit is the exit code: 2 nothing can be read, 1 something is off, 0 all is well.
func (c *account) exit() int {
	switch {
	case c.Understood == 0:
		return 2
	case c.off() > 0:
		return 1
	}
	return 0
}

// stateDirectory checks whether a collector could keep its positions in a directory: whether the directory, or the first existing one above, is writable.
func (c *account) stateDirectory(dir string) {
	at := dir
	for { // a collector makes missing directories at its start
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	if err := writable.Dir(at); err != nil {
		c.find(finding{
			Name: "state_directory", Off: true,
			What: "TRAINBRIDGE_STATE_DIR is " + dir + ", and nothing can be written to " + at + ": " + outfile.Reason(err).Error(),
			Why:  "A collector stores its read positions there, and does not start without.",
			Fix:  "Name a directory that the collector's user may write to.",
		})
	}
}
