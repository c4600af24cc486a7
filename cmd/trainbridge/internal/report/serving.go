package report

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/serve"
)

// serving is report --serve: it prints the page's address, and serves the page until a signal comes. Wrong paths and addresses are errors before that.
func serving(cmd *cobra.Command, paths []string, address string, req format.Request) error {
	for _, path := range paths {
		if path == "-" {
			return reading.Errorf(cmd, "-: the standard input is not served: name a file")
		}
		if _, _, err := net.SplitHostPort(path); err == nil { // likely "--serve 127.0.0.1:8080", where cobra takes the address for a path
			if _, err := os.Stat(path); err != nil {
				return reading.Errorf(cmd, "%s: there is no such file; to serve at this address, write --serve=%s", path, path)
			}
		}
	}
	in, err := reading.Open(cmd, paths)
	if err != nil {
		return err
	}
	in.Close() // each reading opens new files
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	l, err := serve.Listen(ctx, address)
	if err != nil {
		return reading.Errorf(cmd, "--serve %w", err)
	}
	if l.Open() {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "Other hosts can reach this address, and nothing is encrypted: whoever sees the token can read the page.")
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), l.URL()); err != nil {
		_ = l.Close()
		return err
	}
	return l.Serve(ctx, paths, req, cmd.ErrOrStderr())
}

// links are the flags with the URLs of servers that show traces. source is the UID of Grafana's data source.
type links struct{ jaeger, tempo, grafana, source string }

// add adds the flags.
func (l *links) add(f *pflag.FlagSet) {
	f.StringVar(&l.jaeger, "jaeger", "", "of html: the `URL` of Jaeger's page, to which traces have links")
	f.StringVar(&l.tempo, "tempo", "", "of html: the `URL` of Tempo, to whose JSON traces have links")
	f.StringVar(&l.grafana, "grafana", "", "of html: the `URL` of Grafana, to whose Explore traces have links")
	f.StringVar(&l.source, "grafana-tempo", "tempo", "with --grafana: the `UID` of its data source of Tempo")
}

// of makes the links from the flags, for a report in the format to; each link has {trace} in the place of the trace id. The error is a UsageError.
func (l *links) of(cmd *cobra.Command, to *kind) (all []format.Link, err error) {
	for _, one := range []struct{ flag, url, name, path string }{
		{"jaeger", l.jaeger, "Jaeger", "/trace/{trace}"},
		{"tempo", l.tempo, "Tempo", "/api/traces/{trace}"},
		{"grafana", l.grafana, "Grafana", explore(l.source)},
	} {
		if one.url == "" {
			continue
		}
		u, err := url.Parse(one.url)
		isServer := err == nil && slices.Contains([]string{"http", "https"}, u.Scheme) && u.Host != ""
		switch {
		case !isServer || u.User != nil || u.RawQuery != "" || u.Fragment != "": // no query or fragment before one.path; no password in a page to pass on
			return nil, reading.Errorf(cmd, "--%s %q: write it as http://127.0.0.1:16686", one.flag, one.url)
		case to.name != htmlName:
			return nil, reading.Errorf(cmd, "--%s is of --format html, not of %s", one.flag, to.name)
		}
		all = append(all, format.Link{Name: one.name, URL: strings.TrimRight(u.String(), "/") + one.path})
	}
	return all, nil
}

// explore is the path of a trace in Grafana's Explore (grafana.com/docs, "Generate Explore URLs", schemaVersion 1).
func explore(source string) string {
	panes := fmt.Sprintf(`{"a":{"datasource":%[1]q,"queries":[{"refId":"A","datasource":{"type":"tempo","uid":%[1]q},"queryType":"traceql","query":"{trace}"}],`+
		`"range":{"from":"now-1h","to":"now"}}}`, source)
	return "/explore?schemaVersion=1&orgId=1&panes=" + strings.ReplaceAll(url.QueryEscape(panes), url.QueryEscape("{trace}"), "{trace}")
}
