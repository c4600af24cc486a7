package show

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

type options struct {
	jaeger, service, run, trace string
	limit, width                int
	list, json, noColor         bool
}

// NewCommand is `trainbridge show`.
func NewCommand() *cobra.Command {
	var opt options
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Draw a trace of a running Jaeger in the terminal, with ratios and verdicts",
		Long: `Prints tables over the traces that Jaeger has, and draws one of them as a waterfall: the one with the highest TQ overhead, or the
latest with the worst training step, or the slowest of the worst passes of RPCs, or of the worst collectives the one whose last rank was
latest. Of calls whose log has no trace id, the worst one of each function is drawn.

` + documentHelp,
		Example: `  trainbridge show --list
  trainbridge show --run 4f1c09ab --json
  trainbridge show --trace 9fddca35a6b44a70848589eaab933522`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			width, tty := terminal(out)
			if opt.width == 0 {
				opt.width = width
			}
			colour := tty && !opt.noColor && os.Getenv("NO_COLOR") == ""
			var text strings.Builder
			if err := show(cmd.Context(), &text, opt, palette(colour), time.Now(), time.Local); err != nil {
				return err
			}
			_, err := io.WriteString(out, text.String())
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.jaeger, "jaeger", "http://127.0.0.1:16686", "address of Jaeger's query port")
	f.StringVar(&opt.service, "service", "", "service.name of the job (default: all that there are)")
	f.StringVar(&opt.run, "run", "", "only traces of this run (ml.run.id; --list has them)")
	f.StringVar(&opt.trace, "trace", "", "trace id (default: the most interesting one)")
	f.IntVar(&opt.limit, "limit", 1000, "how many traces to read, the latest; 0: all")
	f.BoolVar(&opt.list, "list", false, "list the services and runs that there are; with --service or --run also the traces")
	f.BoolVar(&opt.json, "json", false, "print a JSON document with the same figures")
	f.IntVar(&opt.width, "width", 0, "columns, 40 at least (default: COLUMNS, else the terminal's, else 120)")
	f.BoolVar(&opt.noColor, "no-color", false, "no colours (also with NO_COLOR set, or when not writing to a terminal)")
	return cmd
}

// terminal returns COLUMNS, else the columns of the terminal that w is, else 120.
func terminal(w io.Writer) (width int, tty bool) {
	width = 120
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		tty = true
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			width = columns
		}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		width = columns
	}
	return width, tty
}

func show(ctx context.Context, w *strings.Builder, opt options, p palette, now time.Time, loc *time.Location) error {
	// No proxy and no shared transport: the address is meant literally, and no idle connection outlives the command.
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	j := &jaeger{base: opt.jaeger, http: &http.Client{Transport: transport, Timeout: time.Minute}}
	if !strings.Contains(j.base, "://") {
		j.base = "http://" + j.base
	}
	r := report{Jaeger: j.base, Run: opt.run}
	var err error
	if opt.trace != "" {
		err = r.one(ctx, j, opt.trace)
	} else {
		err = r.read(ctx, j, opt, now)
	}
	if err != nil {
		return err
	}
	if opt.json {
		body, err := json.MarshalIndent(r.document(opt), "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n", body)
		return nil
	}
	if opt.trace == "" {
		paragraph(w, r.title(), opt.width, "1", p)
		w.WriteByte('\n')
	}
	switch {
	case opt.list:
		overview(w, r.traces, opt, loc, p)
		return nil
	case opt.trace == "":
		table(w, r.traces, opt.width, p)
		steps(w, r.traces, opt.width, p)
		passes(w, r.traces, opt.width, loc, p)
		collectives(w, r.traces, opt.width, p)
	}
	for i, t := range r.drawn {
		if i > 0 || opt.trace == "" {
			w.WriteByte('\n')
		}
		waterfall(w, t, opt.width, loc, p)
	}
	return nil
}

// report is what was read of Jaeger.
type report struct {
	Jaeger   string
	Services []string
	Run      string
	Share    share
	older    error // why what is older than the last days could not be read

	traces, drawn []*trace // by start
}

// one reads one trace.
func (r *report) one(ctx context.Context, j *jaeger, text string) error {
	id, err := traceID(text)
	if err != nil {
		return err
	}
	td, err := j.trace(ctx, id)
	if err != nil {
		return err
	}
	if r.drawn = build(td); len(r.drawn) == 0 {
		return fmt.Errorf("%w with id %s in Jaeger at %s", ErrNoTraces, id, j.base)
	}
	return nil
}

// read reads the traces that the options ask for.
func (r *report) read(ctx context.Context, j *jaeger, opt options, now time.Time) error {
	services := []string{opt.service}
	if opt.service == "" {
		var err error
		if services, err = j.services(ctx); err != nil {
			return err
		}
		services = slices.DeleteFunc(services, func(s string) bool { return s == "jaeger" }) // it traces itself
	}
	s := search{jaeger: j, run: opt.run, limit: opt.limit, counting: counting}
	if err := s.all(ctx, services, now); err != nil {
		return err
	}
	r.traces = s.newest()
	if len(r.traces) == 0 {
		return j.nothing(ctx, opt)
	}
	r.Services, r.Share, r.older = services, s.share(r.traces), s.older
	if !opt.list {
		r.drawn = worth(r.traces)
	}
	return nil
}

// title says what the tables cover.
func (r *report) title() string {
	text := r.Share.String() + " of "
	if r.Run != "" {
		text += "run " + clean(r.Run) + ", "
	}
	names := make([]string, len(r.Services))
	for i, s := range r.Services {
		names[i] = clean(s)
	}
	if text += "service"; len(names) != 1 {
		text += "s"
	}
	text += " " + strings.Join(names, ", ") + " in Jaeger at " + r.Jaeger
	if r.Share.Read < r.Share.There || r.Share.More {
		text += "; --limit raises it"
	}
	if r.older != nil {
		text += "; those older than 7 days could not be read: " + clean(r.older.Error())
	}
	return text
}

// worth chooses what to draw: the most interesting trace; where its log has no trace ids, the most interesting one of each of the functions that took longest.
func worth(traces []*trace) []*trace {
	best := interesting(traces)
	if best.noID() == nil {
		return []*trace{best}
	}
	took, by := map[string]int64{}, map[string][]*trace{}
	for _, t := range traces {
		if f := t.noID(); f != nil {
			took[f.function()] += f.ns()
			by[f.function()] = append(by[f.function()], t)
		}
	}
	var out []*trace
	for _, name := range byCount(took) {
		out = append(out, interesting(by[name]))
	}
	return out[:min(3, len(out))]
}

// traceID accepts the 32 hex digits of a trace id, or a UUID as it stands in the log.
func traceID(text string) (string, error) {
	id := strings.ToLower(strings.ReplaceAll(text, "-", ""))
	if len(id) > 32 || strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "" {
		return "", fmt.Errorf("show: --trace %q: use the 32 hex digits of a trace id or the log's UUID", text)
	}
	return strings.Repeat("0", 32-len(id)) + id, nil
}
