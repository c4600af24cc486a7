package show

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/trainbridge/trainbridge/internal/traces/source"
)

// backend is a source of traces, with the advice for its errors.
type backend struct {
	source.Source
	key   string // of value in the document of --format json: "jaeger", "tempo" or "files"
	value any    // the address, or the names of the files

	// Texts for advice, each of an error of explain; empty for files.
	start   string // "its query port with --jaeger"
	port    string // "--jaeger needs the query port of …"
	example string // "--jaeger http://…"
	yet     string // what to check if no traces came
}

// open returns the backend of the options: the files of --file, else the Tempo of --tempo, else the Jaeger of --jaeger. Servers are not asked yet.
func open(opt options) (*backend, error) {
	const check = "check that the collector runs, that its logs have lines and that its OTLP exporter points to this "
	switch {
	case len(opt.files) > 0:
		files, err := source.Files(opt.files...)
		if err != nil {
			return nil, fmt.Errorf("show: %w", err)
		}
		return &backend{Source: files, key: "files", value: opt.files, yet: "check that the collector's pipeline has exporter file, with this path"}, nil
	case opt.tempo != "":
		t := source.NewTempo(opt.tempo)
		return &backend{
			Source: t, key: "tempo", value: t.Address(), yet: check + "Tempo", start: "its HTTP port with --tempo",
			port: "--tempo needs the HTTP port of Tempo, 3200 by default", example: "--tempo http://127.0.0.1:3200",
		}, nil
	}
	j := source.NewJaeger(opt.jaeger)
	return &backend{
		Source: j, key: "jaeger", value: j.Address(), yet: check + "Jaeger", start: "its query port with --jaeger",
		port: "--jaeger needs the query port of Jaeger 2, 16686 by default", example: "--jaeger http://127.0.0.1:16686",
	}, nil
}

// explain returns an error of the backend with advice for the user.
func (b *backend) explain(err error) error {
	switch {
	case errors.Is(err, source.ErrAddress):
		return fmt.Errorf("show: %w: write, for example, %s", err, b.example)
	case errors.Is(err, source.ErrUnreachable):
		return fmt.Errorf("show: %w: start it, or give the address of %s", err, b.start)
	case errors.Is(err, source.ErrNotAPI):
		return fmt.Errorf("show: %w: %s", err, b.port)
	case errors.Is(err, source.ErrTooLarge):
		return fmt.Errorf("show: %w: ask for one trace with --trace", err)
	case errors.Is(err, source.ErrNoTrace):
		return fmt.Errorf("show: %w: leave out --trace to list the latest", err)
	}
	return fmt.Errorf("show: %w", err)
}

// noTraces returns the error of a search without traces: nothing was sent yet, or the run or the service of the options has none.
func (b *backend) noTraces(ctx context.Context, opt options) error {
	services, err := b.Services(ctx)
	switch {
	case err != nil:
		return b.explain(err)
	case len(services) == 0:
		return fmt.Errorf("show: %w in %s yet: %s", source.ErrNoTrace, b, b.yet)
	case opt.run != "":
		return fmt.Errorf("show: %w of run %q: --list has the runs that there are", source.ErrNoTrace, opt.run)
	}
	return fmt.Errorf("show: %w of service %q: choose with --service among %s", source.ErrNoTrace, opt.service, strings.Join(services, ", "))
}
