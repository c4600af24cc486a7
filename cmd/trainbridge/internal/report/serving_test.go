package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
)

// --serve prints the address of the page and nothing else, and the page has the data of --format html.
func TestServe(t *testing.T) {
	log := write1(t, "train.jsonl", strings.Repeat(`{"step": 1, "loss": 2.5, "step_time_s": 0.5}`+"\n", 3))
	flags := []string{
		log, "--jaeger", "http://jaeger.example/ui/", "--tempo", "https://tempo.example", "--grafana", "http://grafana.example:3000", "--lang", "zh",
	}
	want, err := report(t, "", append(flags, "--format", "html")...)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := NewCommand()
	from, to := io.Pipe()
	var errs bytes.Buffer
	cmd.SetOut(to)
	cmd.SetErr(&errs)
	cmd.SetArgs(append(flags, "--serve"))
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	address, err := bufio.NewReader(from).ReadString('\n')
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	get := func(address string) string {
		r, err := client.Get(address)
		require.NoError(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return string(text)
	}
	assert.Contains(t, get(strings.TrimSpace(address)), "connect-src 'self'")
	u, err := url.Parse(strings.TrimSpace(address))
	require.NoError(t, err)
	data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(want)[1]
	assert.Eventually(t, func() bool { return get("http://"+u.Host+"/document.json") == data }, time.Minute, 50*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	assert.Empty(t, errs.String())

	var page struct{ Links []struct{ Name, URL string } }
	require.NoError(t, json.Unmarshal([]byte(data), &page))
	require.Len(t, page.Links, 3)
	assert.Equal(t, "http://jaeger.example/ui/trace/{trace}", page.Links[0].URL)
	assert.Equal(t, "https://tempo.example/api/traces/{trace}", page.Links[1].URL)
	// As Grafana reads it: grafana.com/docs/grafana/latest/explore/get-started-with-explore, "Generate Explore URLs from external tools".
	grafana, err := url.Parse(page.Links[2].URL)
	require.NoError(t, err)
	var panes map[string]struct {
		Datasource string
		Queries    []struct {
			RefID, QueryType, Query string
			Datasource              struct{ Type, UID string }
		}
		Range map[string]string
	}
	assert.Equal(t, "grafana.example:3000/explore", grafana.Host+grafana.Path)
	require.NoError(t, json.Unmarshal([]byte(grafana.Query().Get("panes")), &panes))
	require.Len(t, panes, 1)
	assert.Equal(t, "tempo", panes["a"].Queries[0].Datasource.UID)
	assert.Equal(t, "{trace}", panes["a"].Queries[0].Query)
}

func TestServeErrors(t *testing.T) {
	log := write1(t, "train.jsonl", `{"step": 1, "loss": 2.5}`+"\n")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{log, "--serve", "-o", "report.html"}, "report: --serve serves the page: -o, --table and other formats are of reports that are written"},
		{[]string{log, "--serve", "--format", "json"}, "report: --serve serves the page: "},
		{[]string{log, "--serve=8080"}, `report: --serve "8080": write it as 127.0.0.1:8080: `},
		{[]string{log, "--serve=192.0.2.1:80"}, "report: --serve listen tcp 192.0.2.1:80: "},
		{[]string{log, "--serve", "127.0.0.1:8080"}, "127.0.0.1:8080: there is no such file; to serve at this address, write --serve=127.0.0.1:8080"},
		{[]string{"-", "--serve"}, "-: the standard input is not served: name a file"},
		{[]string{"/nothing/here", "--serve"}, "/nothing/here"},
		{[]string{log, "--serve", "--jaeger", "jaeger:16686"}, `--jaeger "jaeger:16686": write it as http://127.0.0.1:16686`},
		{[]string{log, "--serve", "--grafana", "javascript://x/%0aalert(1)"}, `--grafana "javascript://x/%0aalert(1)": write it as `},
		{[]string{log, "--serve", "--tempo", "http://me:secret@tempo"}, `--tempo "http://me:secret@tempo": write it as `},
		{[]string{log, "--jaeger", "http://jaeger"}, "--jaeger is of --format html, not of text"},
	} {
		stdout, err := report(t, "", tt.args...)
		require.ErrorContains(t, err, tt.want, tt.args)
		require.ErrorAs(t, err, new(*reading.UsageError))
		assert.Empty(t, stdout)
	}
}
