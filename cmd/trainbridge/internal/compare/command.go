package compare

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
)

// options are the flags.
type options struct {
	reading      reading.Flags
	format, lang string
	runA, runB   string // the run id to take from logs of several runs
	last         string // of a lake
}

// NewCommand returns the command `trainbridge compare`.
func NewCommand() *cobra.Command {
	var opt options
	cmd := &cobra.Command{
		Use:   "compare A B | compare LAKE",
		Short: "Say what differs between two runs, by how much, and how sure that is",
		Long: `Reads the logs of two runs from their first line to their last and sets them side by side: where the wall clock went, step time and where that goes,
throughput, FLOP/s, MFU, TransferQueue functions, RPC stages, collectives, the loss at equal steps. Each difference has an interval; one that holds zero
is none that can be told. Runs of another model, world size or batch are not comparable: what differs is said first.

With one path, a lake of report --format parquet (full build), its newest run is set among like runs before it: each figure's rank, and what is beyond
all others.

A and B are files, directories, globs, or one of them - for the standard input; .gz and .zst are read as they are.`,
		Example: `  trainbridge compare /data/job-before /data/job-after
  trainbridge compare before.log after.log --format json
  trainbridge compare /data/jobs /data/jobs --run-a run-0863c804a488 --run-b run-f774874bd504
  trainbridge compare /lake --last 30d`,
		SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 2 && opt.last != "":
				return reading.Errorf(cmd, "--last is of a lake: name one path")
			case len(args) == 1 && (opt.last != "" || isLake(args[0])):
				return nil
			case len(args) != 2:
				return reading.Errorf(cmd, "name the logs of two runs, A and B: each a file, a directory or a glob in quotes; or name a lake")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			how, err := opt.reading.Options(cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return compareHistory(cmd, args[0], how.Run, &opt)
			}
			a, err := readLogs(cmd, args[0], "--run-a", opt.runA, how)
			if err != nil {
				return err
			}
			b, err := readLogs(cmd, args[1], "--run-b", opt.runB, how)
			if err != nil {
				return err
			}
			var out bytes.Buffer
			if err := formats[opt.format](&out, &document{Compare(a, b), words(opt.lang == "zh"), args[0], args[1]}); err != nil {
				return err
			}
			_, err = out.WriteTo(cmd.OutOrStdout())
			return err
		},
	}
	opt.reading.Add(cmd)
	f := cmd.Flags()
	reading.Choice(cmd, &opt.format, "format", "format", "text", "html", "json")
	reading.Choice(cmd, &opt.lang, "lang", "language", "en", "zh")
	f.StringVar(&opt.runA, "run-a", "", "which run of A, where there are several")
	f.StringVar(&opt.runB, "run-b", "", "which run of B, where there are several")
	f.StringVar(&opt.last, "last", "", "of a lake: only runs of these `days` before the run, such as 30d; --run names the run (default: the newest)")
	return cmd
}

// formats write a comparison, by --format.
var formats = map[string]func(io.Writer, *document) error{
	"html": writeHTML,
	"json": writeJSON,
	"text": writeText,
}

// readLogs reads the logs at a path, and returns the kept data of a run: of the run id if the flag gives one, otherwise of the only run in the logs.
func readLogs(cmd *cobra.Command, path, flag, id string, how offline.Options) (*Run, error) {
	in, err := reading.Open(cmd, []string{path})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	to := &runs{by: map[string]*Run{}}
	how.Positions = true
	done, err := reading.Read(cmd.Context(), cmd, in, how, offline.Sink{Traces: to, NoParts: true})
	if err != nil {
		return nil, err
	}
	for _, run := range to.by {
		done.Book(run.ID, &run.Ledger)
		run.files = done.FilesOf(run.ID)
	}
	all := slices.Sorted(maps.Keys(to.by))
	switch {
	case len(all) == 0:
		return nil, reading.Errorf(cmd, "%s: there is no record in it; trainbridge check %s says more of each file", path, path)
	case id != "" && to.by[id] == nil:
		return nil, reading.Errorf(cmd, "%s %s: %s has the runs %s", flag, id, path, reading.Clean(strings.Join(all, ", ")))
	case id != "":
		return to.by[id], nil
	case len(all) > 1:
		return nil, reading.Errorf(cmd, "%s: there are %d runs in it, choose one by %s: %s", path, len(all), flag, reading.Clean(strings.Join(all, ", ")))
	}
	return to.by[all[0]], nil
}
