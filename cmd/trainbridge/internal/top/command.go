package top

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
)

const defaultMetrics = "http://127.0.0.1:8889/metrics"

// options are the flags of `trainbridge top`.
type options struct {
	metrics string
	device  string
	service string
	run     string
	noColor bool

	patterns reading.Patterns
}

// NewCommand is `trainbridge top`.
func NewCommand() *cobra.Command {
	var opt options
	cmd := &cobra.Command{
		Use:   "top [PATH…]",
		Short: "Watch a training job: step, where its time goes, throughput, loss, verdicts, GPUs",
		Long: `Shows a training job while it runs: the step, its time and where it goes, tokens/s, TFLOP/s, MFU, the loss, verdicts as they come, GPUs.
Type q to quit. Into a pipe it prints a line for each step and each verdict.

With PATH, a file, directory or glob in quotes, it reads these logs from their beginning and follows them; it needs no server and writes nothing to
the disk. Without PATH it looks every 2 s at the metrics of a running trainbridge.`,
		Example: `  trainbridge top /data/job
  trainbridge top train.log | grep -v '^step'
  trainbridge top --metrics http://gpu-node-7:8889/metrics`,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			if len(args) > 0 && cmd.Flags().Changed("metrics") {
				return reading.Errorf(cmd, "name logs or --metrics, not both")
			}
			from, fill, err := source(cmd, args, &opt)
			if err != nil {
				return err
			}
			return show(ctx, cmd, newModel(from), fill, &opt)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.metrics, "metrics", defaultMetrics, "the `URL` of a trainbridge's metrics, where no PATH is named")
	f.StringVar(&opt.device, "device", "", "the GPUs that train, such as 'H100 SXM', for MFU")
	f.StringVar(&opt.service, "service", "", "the name of the job (default: each log's own)")
	f.StringVar(&opt.run, "run", "", "the run that all logs are of (default: told by directories)")
	opt.patterns.Add(cmd)
	f.BoolVar(&opt.noColor, "no-color", false, "no colours (also with NO_COLOR set)")
	return cmd
}

// fill fills a model until the context ends.
type fill func(ctx context.Context, m *model) error

// source returns what fills the model, by the command line: the logs of paths, which are followed, or without paths the metrics of a running trainbridge. from
// names the source on the screen.
func source(cmd *cobra.Command, paths []string, opt *options) (from string, f fill, err error) {
	if len(paths) == 0 {
		at := opt.metrics
		if !strings.Contains(at, "://") {
			at = "http://" + at
		}
		u, err := url.Parse(at)
		if err != nil || u.Host == "" {
			return "", nil, reading.Errorf(cmd, "--metrics %q: write it as %s", opt.metrics, defaultMetrics)
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/metrics"
		}
		return u.String(), func(ctx context.Context, m *model) error {
			newScraper(m, u.String()).run(ctx)
			return nil
		}, nil
	}
	if slices.Contains(paths, "-") {
		return "", nil, reading.Errorf(cmd, "-: the standard input cannot be followed: name a file, or trainbridge report -")
	}
	patterns, err := opt.patterns.Of(cmd)
	if err != nil {
		return "", nil, err
	}
	in, err := reading.Open(cmd, paths)
	if err != nil {
		return "", nil, err
	}
	return strings.Join(paths, " "), func(ctx context.Context, m *model) error {
		defer in.Close()
		w := &watcher{model: m, now: time.Now}
		how := offline.Options{Run: opt.run, Service: opt.service, Device: opt.device, Patterns: patterns}
		return offline.Follow(ctx, in, how, offline.Sink{Traces: w, Metrics: w})
	}, nil
}

// show fills the model until the context ends, meanwhile drawing the model on a terminal, or printing a line for each step and verdict into a pipe or a file.
// The view ends too when the user quits, the source ends, or the reader of the output is gone, as with `| head`. The error is that of writing lines, else that
// of the screen, else that of the source.
func show(ctx context.Context, cmd *cobra.Command, m *model, f fill, opt *options) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	var lost error // why the reader of the output is gone
	out, ok := cmd.OutOrStdout().(*os.File)
	drawn := ok && term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb" // a dumb terminal knows no escape sequences
	if !drawn {
		m.on = printer(cmd.OutOrStdout(), func(err error) {
			lost = err
			quit()
		})
	}
	done := make(chan error, 1)
	go func() {
		err := f(ctx, m)
		quit()
		done <- err
	}()
	var err error
	if drawn {
		k := look{colour: !opt.noColor && os.Getenv("NO_COLOR") == "", plain: !utf8Terminal()}
		err = screen(ctx, m, os.Stdin, out, k, func() (width, height int) { return size(out) })
		quit()
	}
	if e := <-done; err == nil {
		err = e
	}
	return cmp.Or(lost, err)
}

// size is the size of a terminal, 80 × 24 if unknown.
func size(out *os.File) (width, height int) {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// utf8Terminal says whether the terminal is likely to know more signs than ASCII, as in the C library.
func utf8Terminal() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
