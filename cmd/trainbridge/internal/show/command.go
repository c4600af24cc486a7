package show

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/trainbridge/trainbridge/spans"
)

// listed is how many traces the table covers.
const listed = 100

type options struct {
	jaeger, service, trace string
	width                  int
	noColor                bool
}

// NewCommand is `trainbridge show`.
func NewCommand() *cobra.Command {
	var opt options
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Draw a trace of a running Jaeger in the terminal, with ratios and verdicts",
		Long: `Draws one trace as a waterfall. Without --trace, it prints tables over the latest 100 traces of the service, and draws
the one with the highest TQ overhead, or the latest with the worst training step, or the slowest of the worst passes of RPCs, or of the worst
collectives the one whose last rank was latest.`,
		Example:      `  trainbridge show --service zeromq`,
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
	f.StringVar(&opt.service, "service", "verl", "service.name of the job")
	f.StringVar(&opt.trace, "trace", "", "trace id (default: the most interesting of the latest)")
	f.IntVar(&opt.width, "width", 0, "columns (default: the terminal's)")
	f.BoolVar(&opt.noColor, "no-color", false, "no colours (also with NO_COLOR set, or when not writing to a terminal)")
	return cmd
}

// terminal returns the columns of the terminal that w is, or 120.
func terminal(w io.Writer) (width int, tty bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 120, false
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width, true
	}
	return 120, true
}

func show(ctx context.Context, w *strings.Builder, opt options, p palette, now time.Time, loc *time.Location) error {
	// No proxy and no shared transport: the address is meant literally, and no idle connection outlives the command.
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	j := &jaeger{base: opt.jaeger, http: &http.Client{Transport: transport, Timeout: time.Minute}}
	if !strings.Contains(j.base, "://") {
		j.base = "http://" + j.base
	}
	if opt.trace != "" {
		id, err := traceID(opt.trace)
		if err != nil {
			return err
		}
		td, err := j.trace(ctx, id)
		if err != nil {
			return err
		}
		traces := build(td)
		if len(traces) == 0 {
			return fmt.Errorf("%w with id %s in Jaeger at %s", ErrNoTraces, id, j.base)
		}
		for _, t := range traces {
			waterfall(w, t, opt.width, loc, p)
		}
		return nil
	}
	td, err := j.latest(ctx, opt.service, now, listed)
	if err != nil {
		return err
	}
	traces := build(td)
	if len(traces) == 0 {
		return fmt.Errorf("%w of service %q in Jaeger at %s", ErrNoTraces, opt.service, j.base)
	}
	batches := 0
	for _, t := range traces {
		if !isRun(t) {
			batches++
		}
	}
	fmt.Fprintf(w, "%s\n\n", p.bold(fmt.Sprintf("The latest %s of service %s in Jaeger at %s", plural(batches, "trace"), clean(opt.service), j.base)))
	table(w, traces, p)
	steps(w, traces, p)
	passes(w, traces, loc, p)
	collectives(w, traces, p)
	fmt.Fprintln(w)
	waterfall(w, interesting(traces), opt.width, loc, p)
	return nil
}

// isRun says whether a trace is only about a run as a whole.
func isRun(t *trace) bool {
	return !slices.ContainsFunc(t.all, func(s *span) bool { return s.Name() != spans.SpanRun && s.Name() != spans.SpanSummary })
}

// traceID accepts the 32 hex digits of a trace id, or a UUID as it stands in the log.
func traceID(text string) (string, error) {
	id := strings.ToLower(strings.ReplaceAll(text, "-", ""))
	if len(id) > 32 || strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "" {
		return "", fmt.Errorf("show: --trace %q: use the 32 hex digits of a trace id or the log's UUID", text)
	}
	return strings.Repeat("0", 32-len(id)) + id, nil
}
