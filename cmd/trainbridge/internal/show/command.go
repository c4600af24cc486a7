package show

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/source"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
)

// countingTime is how long show may take for counting the traces beyond --limit, for "The latest 1,000 of 3,204 traces".
const countingTime = 3 * time.Second

// options are the flags of `trainbridge show`.
type options struct {
	jaeger, tempo       string // addresses; an empty tempo means jaeger
	files               []string
	service, run, trace string
	limit, width        int
	list, noColor       bool
	format              string
}

// NewCommand returns the command `trainbridge show`.
func NewCommand() *cobra.Command {
	var opt options
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Draw a trace of a running Jaeger in the terminal, with ratios and verdicts",
		Long: `Prints tables over the traces that Jaeger has, or Tempo, or files, and draws one of them as a waterfall: the one with the step that was
slow by the most, with why it was (where the collector has step_join), or the one with the highest TQ overhead, or the latest
with the worst training step, or the slowest of the worst passes of RPCs, or of the worst collectives the one whose last rank was latest.
Of calls whose log has no trace id, the worst one of each function is drawn.

` + documentHelp(),
		Example: `  trainbridge show --list
  trainbridge show --run run-4f1c09ab52e3 --format json
  trainbridge show --trace 9fddca35a6b44a70848589eaab933522
  trainbridge show --file spans.json`,
		Args:         reading.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			width, tty := reading.Terminal(out, 120)
			if opt.width == 0 {
				opt.width = width
			}
			var text strings.Builder
			if err := show(cmd.Context(), &text, opt, style{opt.width, time.Local, reading.Colours(tty && !opt.noColor)}, time.Now()); err != nil {
				return err
			}
			_, err := io.WriteString(out, text.String())
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.jaeger, "jaeger", "http://127.0.0.1:16686", "address of Jaeger's query port")
	f.StringVar(&opt.tempo, "tempo", "", "address of Tempo's HTTP port, in place of Jaeger; of the last weeks")
	f.StringArrayVar(&opt.files, "file", nil, "a file that the collector's file exporter wrote, in place of Jaeger; again for each further one")
	cmd.MarkFlagsMutuallyExclusive("jaeger", "tempo", "file")
	f.StringVar(&opt.service, "service", "", "service.name of the job (default: all that there are)")
	f.StringVar(&opt.run, "run", "", "only traces of this run (ml.run.id; --list has them)")
	f.StringVar(&opt.trace, "trace", "", "trace id (default: the most interesting one)")
	f.IntVar(&opt.limit, "limit", 1000, "how many traces to read, the latest; 0: all")
	f.BoolVar(&opt.list, "list", false, "list the services and runs that there are; with --service or --run also the traces")
	reading.Choice(cmd, &opt.format, "format", "format", "text", reading.JSON)
	f.IntVar(&opt.width, "width", 0, "columns, 40 at least (default: COLUMNS, else the terminal's, else 120)")
	f.BoolVar(&opt.noColor, "no-color", false, "no colours (also with NO_COLOR set, or when not writing to a terminal)")
	return cmd
}

// show reads the traces that the options ask for and writes them to w: as JSON, as lists (--list), or as tables over all traces followed by waterfalls of the
// traces chosen by worthDrawing. With --trace only the waterfall of that trace is written.
func show(ctx context.Context, w *strings.Builder, opt options, l style, now time.Time) error {
	from, err := open(opt)
	if err != nil {
		return err
	}
	r := report{from: from, run: opt.run}
	if opt.trace != "" {
		err = r.readTrace(ctx, opt.trace)
	} else {
		err = r.readLatest(ctx, opt, now)
	}
	if err != nil {
		return err
	}
	if opt.format == reading.JSON {
		body, err := json.MarshalIndent(r.document(opt), "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n", body)
		return nil
	}
	if opt.trace == "" {
		printParagraph(w, r.title(), "1", l)
		w.WriteByte('\n')
	}
	switch {
	case opt.list:
		printLists(w, r.traces, opt, l)
		return nil
	case opt.trace == "":
		all := digestOf(r.traces)
		for _, domain := range domains {
			domain.table(w, all, l)
		}
	}
	for i, t := range r.drawn {
		if i > 0 || opt.trace == "" {
			w.WriteByte('\n')
		}
		printWaterfall(w, t, l)
	}
	return nil
}

// digestOf returns the digest of all spans of traces, for the tables. The spans of a trace are added from the roots down, parents before their children.
func digestOf(traces []*tree.Trace) *digest.Digest {
	d := new(digest.Digest)
	var add func(list []*tree.Span)
	add = func(list []*tree.Span) {
		for _, s := range list {
			d.Add(s.Span, s.Kind, s.Resource)
			add(s.Children)
		}
	}
	for _, t := range traces {
		add(t.Roots)
		if len(t.Roots) == 0 { // the parents are a circle: no root leads to the spans
			for _, s := range t.Spans {
				d.Add(s.Span, s.Kind, s.Resource)
			}
		}
	}
	return d
}

// report has the traces read by a call of show, where they are from, and how many the backend has in all.
type report struct {
	from     *backend
	services []string
	run      string       // of --run, "": all runs
	share    source.Share // how many traces were read, and how many there are
	older    error        // why traces older than the last days could not be read

	traces []*tree.Trace // of the tables and lists, by start; none with --trace
	drawn  []*tree.Trace // with a waterfall
}

// readTrace reads the trace of --trace, given by its id as hex digits or as a UUID, for drawing.
func (r *report) readTrace(ctx context.Context, text string) error {
	id, err := source.ParseID(text)
	if err != nil {
		return fmt.Errorf("show: --trace %q: use the 32 hex digits of a trace id or the log's UUID", text)
	}
	t, err := r.from.Trace(ctx, id)
	if err != nil {
		return r.from.explain(err)
	}
	r.drawn = []*tree.Trace{t}
	return nil
}

// readLatest reads the latest traces of the service and run of the options, and chooses the traces to draw (see worthDrawing). If there is no trace, the error
// has advice what to check or to choose.
func (r *report) readLatest(ctx context.Context, opt options, now time.Time) error {
	r.services = []string{opt.service}
	if opt.service == "" {
		var err error
		if r.services, err = r.from.Services(ctx); err != nil {
			return r.from.explain(err)
		}
	}
	found, err := r.from.Find(ctx, source.Query{Services: r.services, Run: opt.run, Limit: opt.limit, Now: now, Counting: countingTime})
	if err != nil {
		return r.from.explain(err)
	}
	if len(found.Traces) == 0 {
		return r.from.noTraces(ctx, opt)
	}
	r.traces, r.share = found.Traces, found.Share
	if found.Older != nil {
		r.older = r.from.explain(found.Older)
	}
	if !opt.list {
		r.drawn = worthDrawing(r.traces)
	}
	return nil
}

// title returns the title of the tables: "The latest 1,000 of 3,204 traces of run r1, service verl in Jaeger at http://…; --limit raises it".
func (r *report) title() string {
	text := shareText(r.share) + " of "
	if r.run != "" {
		text += "run " + reading.Clean(r.run) + ", "
	}
	names := make([]string, len(r.services))
	for i, s := range r.services {
		names[i] = reading.Clean(s)
	}
	if text += "service"; len(names) != 1 {
		text += "s"
	}
	text += " " + strings.Join(names, ", ") + " in " + reading.Clean(r.from.String())
	if r.share.Read < r.share.There || r.share.More {
		text += "; --limit raises it"
	}
	if r.older != nil {
		text += "; those older than 7 days could not be read: " + reading.Clean(r.older.Error())
	}
	return text
}

// shareText returns how many of the existing traces were read. s.More: the backend has an unknown number more than s.There.
func shareText(s source.Share) string {
	switch {
	case s.There == 1 && !s.More:
		return "The only trace"
	case s.Read == s.There && !s.More:
		return "All " + human.Plural(s.Read, "trace")
	case s.More:
		return fmt.Sprintf("The latest %s of more than %s", human.Thousands(s.Read), human.Plural(s.There, "trace"))
	}
	return fmt.Sprintf("The latest %s of %s", human.Thousands(s.Read), human.Plural(s.There, "trace"))
}
