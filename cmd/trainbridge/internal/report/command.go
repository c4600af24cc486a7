// Package report is `trainbridge report`: the findings of finished logs in a document.
package report

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/term"

	"github.com/trainbridge/trainbridge"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/internal/records"
)

// options are the flags.
type options struct {
	out, format, lang, table string
	full                     bool
	schema                   bool
	steady                   float64
	serve                    string // HOST:PORT; "": the report is written
	links                    links
	reading.Flags
}

// NewCommand is `trainbridge report`.
func NewCommand() *cobra.Command {
	var opt options
	cmd := &cobra.Command{
		Use:   "report PATH…",
		Short: "Say what finished logs tell: where the time went, and why",
		Long: `Reads logs from their first line to their last and says what they tell: one conclusion per job, what its causes cost, the evidence
(file, line and trace id), what to do, what no log tells; then the figures. It opens no port, needs no server, and leaves nothing on the disk.

PATH is a file, a directory with all that is below it, a glob, or - for the standard input; .gz and .zst are read as they are. Formats are
found by content. Text is one screen, with --full all figures.

--format parquet (full build) adds the runs to a lake, tables of all runs for SQL; what the lake has of these runs is replaced.

With --serve it serves the page that --format html writes, and makes it anew as the logs grow. It prints the page's address, and ends with Ctrl-C.`,
		Example: `  trainbridge report /data/job
  trainbridge report 'logs/**/*.log' --device 'H100 SXM' -o report.html
  zcat old.log.gz | trainbridge report - --lang zh
  trainbridge report /data/job --format csv -o tables/
  trainbridge report /data/job --format parquet -o lake/
  trainbridge report /data/job --serve --jaeger http://127.0.0.1:16686
  trainbridge report zmq_performance.log --format csv --table rpc_calls -o performance.csv`,
		SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if opt.schema && len(args) > 0 {
				return reading.Errorf(cmd, "--schema takes no logs: it is the schema of --format json for any of them")
			}
			if opt.schema {
				return nil
			}
			return reading.Paths(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.schema {
				_, err := io.WriteString(cmd.OutOrStdout(), trainbridge.ReportSchema)
				return err
			}
			return run(cmd, args, opt)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&opt.out, "output", "o", "", "a `file` to write the report to (default: the standard output)")
	f.StringVar(&opt.format, "format", "", names()+" (default: as the name of the file ends, else text)")
	f.BoolVar(&opt.full, "full", false, "of text: all figures, not the first screen alone")
	f.StringVar(&opt.table, "table", "", "of --format csv: the one table to write, instead of a file for each into the directory -o (docs/reference/report.md)")
	f.BoolVar(&opt.schema, "schema", false, "write the JSON Schema of --format json, and nothing else")
	f.Float64Var(&opt.steady, "steady", 0.1, "from which `share` of all step time on loading data, GET and PUT, waiting or RPCs are a loss")
	f.StringVar(&opt.serve, "serve", "", "serve the page at `HOST:PORT`, while the logs grow; write it with =, as --serve=127.0.0.1:8080")
	f.Lookup("serve").NoOptDefVal = "127.0.0.1:0"
	opt.links.add(f)
	reading.Choice(cmd, &opt.lang, "lang", "language", "en", "zh")
	opt.Add(cmd)
	return cmd
}

// run checks the flags against each other, and reads the logs and writes the report, or serves the page. Wrong flags are errors before anything is read.
func run(cmd *cobra.Command, paths []string, opt options) error {
	to := kindOf(opt.out)
	if opt.format != "" {
		if to = named(opt.format); to == nil {
			return reading.Errorf(cmd, "--format %q: there are %s", opt.format, names())
		}
	}
	if to.open == nil {
		return reading.Errorf(cmd, "--format %s is in the full build only: make that with `make build-full`; --format csv has the same tables", to.name)
	}
	if !(opt.steady > 0 && opt.steady <= 1) {
		return reading.Errorf(cmd, "--steady %v: a share above 0, at most 1, such as 0.1", opt.steady)
	}
	if opt.serve != "" {
		if opt.out != "" || opt.table != "" || opt.format != "" && to.name != htmlName {
			return reading.Errorf(cmd, "--serve serves the page: -o, --table and other formats are of reports that are written")
		}
		to = named(htmlName)
	}
	if opt.full && to.name != textName {
		return reading.Errorf(cmd, "--full is of text: %s has all figures", to.name)
	}
	if err := checkTable(cmd, to, opt); err != nil {
		return err
	}
	links, err := opt.links.of(cmd, to)
	if err != nil {
		return err
	}
	if f, ok := cmd.OutOrStdout().(*os.File); ok && to.binary && opt.out == "" && term.IsTerminal(int(f.Fd())) {
		return reading.Errorf(cmd, "%s is not for a terminal: add -o FILE", to.name)
	}
	how, err := opt.Options(cmd)
	if err != nil {
		return err
	}
	how.Positions = true
	req := format.Request{Full: opt.full, Width: fullWidth, Options: how, Chinese: opt.lang == "zh", Table: opt.table, Steady: opt.steady, Links: links}
	req.Conclude = concluder(req.Chinese, req.Steady)
	// The first screen fits the terminal; the full report is as wide everywhere.
	if !opt.full {
		terminal := false
		req.Width, terminal = reading.Terminal(cmd.OutOrStdout(), briefWidth)
		req.Width, req.Colours = max(leastWidth, min(req.Width, fullWidth)), reading.Colours(terminal && opt.out == "")
	}
	if opt.serve != "" {
		return serving(cmd, paths, opt.serve, req)
	}
	in, err := reading.Open(cmd, paths)
	if err != nil {
		return err
	}
	defer in.Close()
	req.In = in
	if to.dir || to.tables && opt.table == "" {
		req.Dir, req.Temporary = opt.out, filepath.Dir(filepath.Clean(opt.out))
		return write(cmd, to, req)
	}
	return output(cmd.OutOrStdout(), opt.out, func(w io.Writer, dir string) error {
		req.Out, req.Temporary = w, dir
		return write(cmd, to, req)
	})
}

// checkTable checks --table, which is of csv alone, and -o of the formats that are several files, csv, tfevents and parquet: they need a directory, but csv
// with --table is a single file or the standard output.
func checkTable(cmd *cobra.Command, to *kind, opt options) error {
	all := strings.Join(records.Names(), ", ")
	switch {
	case !to.tables && opt.table != "":
		return reading.Errorf(cmd, "--table %s is of --format csv, not of %s", opt.table, to.name)
	case to.dir && (opt.out == "" || opt.out == "-"):
		return reading.Errorf(cmd, "%s is a file for each run: add -o DIR", to.name)
	case !to.tables:
		return nil
	case opt.table != "" && !slices.Contains(records.Names(), opt.table):
		return reading.Errorf(cmd, "--table %q: there are %s", opt.table, all)
	case opt.table == "" && (opt.out == "" || opt.out == "-"):
		return reading.Errorf(cmd, "csv is a table for each kind of record: add -o DIR for all of them, or --table NAME for one of %s", all)
	}
	stat, err := os.Stat(opt.out)
	isFile := err == nil && !stat.IsDir() || kindOf(opt.out) == to // there is one, or its name ends as a table's
	if opt.table == "" && isFile {
		return reading.Errorf(cmd, "-o %s: csv is a table for each kind of record: name a directory, or add --table NAME: %s", opt.out, all)
	}
	return nil
}

// write reads the logs of a request and writes the report in the format to. It returns the first error: of the report's writer, which ends the reading, the
// cancellation of the command, or an error of the reading.
func write(cmd *cobra.Command, to *kind, req format.Request) error {
	w := to.open(req)
	if c, ok := w.(io.Closer); ok {
		defer c.Close() // frees temporary files; the errors of a whole report come from Finish
	}
	ctx, end := context.WithCancelCause(cmd.Context())
	defer end(nil)
	read, err := reading.Read(ctx, cmd, req.In, req.Options, ending(w.Sink(), end))
	if failed := context.Cause(ctx); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	return w.Finish(ctx, read)
}

// ending wraps a sink so that its first error ends the reading, by way of the reading's context: receivers take an error for a backend that is down, and try
// again without end.
func ending(to offline.Sink, end context.CancelCauseFunc) offline.Sink {
	check := func(err error) error {
		if err != nil {
			end(err)
		}
		return err
	}
	traces, metrics := to.Traces, to.Metrics
	to.Traces, _ = consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error { return check(traces.ConsumeTraces(ctx, td)) })
	if metrics != nil {
		to.Metrics, _ = consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error { return check(metrics.ConsumeMetrics(ctx, md)) })
	}
	return to
}

// output calls write with the coming file, or with the standard output without a file, and with the directory for temporary files. A file is written whole or
// not at all.
func output(stdout io.Writer, file string, write func(w io.Writer, dir string) error) error {
	if file == "" || file == "-" {
		return outfile.Fill(stdout, func(w io.Writer) error { return write(w, "") })
	}
	f, err := outfile.Create(file)
	if err != nil {
		return fmt.Errorf("report: -o %w", err)
	}
	defer f.Close()
	if err := outfile.Fill(f, func(w io.Writer) error { return write(w, f.Dir()) }); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return fmt.Errorf("report: -o %w", err)
	}
	return nil
}
