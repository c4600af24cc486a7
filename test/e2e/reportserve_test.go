//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serveReport starts `report --serve` of logs and returns the printed address.
func serveReport(t *testing.T, args ...string) (p *process, address string) {
	t.Helper()
	p = start(t, "report", trainbridgeBin(t), nil, append([]string{"report", "--serve"}, args...)...)
	eventually(t, func() error {
		if !p.running() {
			return fatal(errors.New(p.tail(5)))
		}
		address, _, _ = strings.Cut(p.output(t), "\n")
		if !strings.HasPrefix(address, "http://127.0.0.1:") {
			return fmt.Errorf("it says %q", address)
		}
		return nil
	})
	return p, address
}

// says waits until an expression of the page is true.
func (b *browser) says(expression string) {
	b.t.Helper()
	eventually(b.t, func() error {
		var is bool
		if b.eval("Boolean("+expression+")", &is); is {
			return nil
		}
		var state string
		b.eval(`document.body.innerText.slice(0, 500)`, &state)
		return fmt.Errorf("not so: %s; the page says %s", expression, state)
	})
}

// is asserts that an expression of the page is true.
func (b *browser) is(expression string) {
	b.t.Helper()
	var is bool
	b.eval("Boolean("+expression+")", &is)
	assert.True(b.t, is, expression)
}

// A served page grows with its logs, and keeps the reader's open sections, zoom, search and scroll position; it has addresses for steps and traces, reports
// missing logs or a stopped server, and requires the token.
func TestReportServe(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "job")
	run(t, nil, trainbridgeBin(t), "gen", "run", dir, "--steps", "60", "--faults", "straggler,data_loading,get")
	require.NoError(t, os.Remove(filepath.Join(dir, "truth.json")))
	log := filepath.Join(dir, "train", "train.jsonl")
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	require.NoError(t, os.WriteFile(log, bytes.Join(lines[:50], nil), 0o600))
	p, address := serveReport(t, dir, "--jaeger", "http://127.0.0.1:16686")
	b := openBrowser(t)
	b.open(address)
	b.says(`document.querySelector("article") && !document.querySelector(".state.busy")`)
	b.is(`location.search === ""`)

	b.run(t, "grows", func() { serveGrows(b, log, bytes.Join(lines[50:], nil)) })
	b.run(t, "the page that is written", func() { serveSame(b, address, dir) })
	b.run(t, "addresses", func() { serveAddresses(b) })
	b.run(t, "logs that are gone", func() {
		require.NoError(b.t, os.Rename(dir, dir+"-away"))
		b.says(`document.querySelector(".state.bad")?.textContent.includes("job")`)
		b.is(`document.querySelectorAll("article").length === 1`)
		require.NoError(b.t, os.Rename(dir+"-away", dir))
		b.says(`!document.querySelector(".state.bad")`)
	})
	b.run(t, "pictures", func() { servePictures(b) })
	_, errs := b.said()
	assert.Empty(t, errs)
	b.run(t, "other origin", func() { serveOther(b, address) })
	b.run(t, "clients", func() { serveClients(b.t, address) })
	requests, _ := b.said()
	served, _, _ := strings.Cut(address, "?")
	for _, r := range requests {
		own := strings.HasPrefix(r, served) || strings.HasPrefix(r, "data:")
		assert.True(t, own || strings.HasPrefix(r, "http://127.0.0.1:") && !strings.Contains(r, "16686"), r) // the page of another origin is here too
	}

	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	code, out := p.end(t)
	assert.Zero(t, code)
	assert.Equal(t, 2, strings.Count(out, "\n"), "the address, and that logs were gone: %s", out)
	b.says(`document.querySelector(".state.bad")?.textContent.includes("does not answer")`)
}

// serveGrows: new lines of the log appear on the page, which keeps the reader's state.
func serveGrows(b *browser, log string, more []byte) {
	const chart = `[...document.querySelectorAll(".chart.series")].find((c) => c.chart.spec.title === "Loss and learning rate")`
	const trace = `document.querySelector(".chart.waterfall")`
	b.eval(drawn, nil)
	b.eval(`(() => {
		window.kept = [document.querySelector("h1"), `+trace+`];
		document.querySelector(".causes details").open = true;
		const c = `+chart+`;
		c.parentElement.querySelector("details").open = true;
		c.querySelectorAll(".legend button")[1].click();
		c.chart.drawn.zoomTo(10, 20);
		const w = `+trace+`, search = w.querySelector("input");
		search.value = "update_actor";
		search.dispatchEvent(new Event("input"));
		search.focus();
		w.querySelectorAll(".tools button")[2].click();
		window.scrolled = [...document.querySelectorAll(".scroll")].at(-1);
		c.scrollIntoView({ block: "start" });
		scrollBy(0, -40);
	})()`, nil)
	const state = `(() => {
		const c = ` + chart + `, w = ` + trace + `, range = c.chart.drawn.shown();
		return { top: Math.round(c.getBoundingClientRect().top), open: document.querySelector(".causes details").open,
			numbers: c.parentElement.querySelector("details").open,
			off: c.querySelectorAll(".legend button")[1].getAttribute("aria-pressed"), min: range.min, max: range.max, search: w.querySelector("input").value,
			count: w.querySelector(".count").textContent, window: w.chart.drawn.window(), focus: w.contains(document.activeElement) };
	})()`
	type kept struct {
		Top           int
		Open, Numbers bool
		Off           string
		Min, Max      float64
		Search, Count string
		Window        [2]float64
		Focus         bool
	}
	var before, after kept
	b.eval(state, &before)
	require.True(b.t, before.Open && before.Numbers && before.Focus, "%+v", before)
	require.Equal(b.t, "false", before.Off)
	require.InDelta(b.t, 10, before.Min, 0.01)

	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(b.t, err)
	_, err = f.Write(more)
	require.NoError(b.t, err)
	require.NoError(b.t, f.Close())
	b.says(chart + `.chart.spec.xs.length === 60`)
	b.eval(state, &after)
	assert.InDelta(b.t, before.Top, after.Top, 2, "the chart stays where it was in the window")
	after.Top = before.Top
	assert.Equal(b.t, before, after)
	b.is(`kept[0] === document.querySelector("h1")`)
	b.says(`document.querySelector(".state").textContent.startsWith("as of ")`) // the next reading may be under way
}

// serveSame: without new logs, the page has the elements of --format html.
func serveSame(b *browser, address, dir string) {
	const body = `(() => {
		const body = document.body.cloneNode(true);
		body.querySelectorAll(".state, footer, script").forEach((e) => e.remove());
		return body.innerHTML;
	})()`
	file := filepath.Join(b.t.TempDir(), "report.html")
	run(b.t, nil, trainbridgeBin(b.t), "report", dir, "-o", file, "--jaeger", "http://127.0.0.1:16686")
	other := openBrowser(b.t)
	var want, got string
	other.open("file://" + file)
	other.eval(drawn, nil)
	other.eval(body, &want)
	other.open(address)
	other.says(`document.querySelector("article")`)
	other.eval(drawn, nil)
	other.eval(body, &got)
	assert.Greater(b.t, len(want), 10_000)
	assert.Equal(b.t, want, got)
}

// serveAddresses: a step and a trace have addresses with fragments to keep; a missing target is reported.
func serveAddresses(b *browser) {
	seen := func(e string) string {
		return `(() => { const r = ` + e + `?.getBoundingClientRect(); return r && r.height && r.bottom > 0 && r.top < innerHeight; })()`
	}
	b.eval(`location.hash = "#step=12"`, nil)
	b.says(seen(`document.querySelector("tr.found")`))
	b.is(`document.querySelector("tr.found td").textContent.startsWith("12")`)
	b.eval(`document.querySelector("tr.found a").click()`, nil)
	b.is(`location.hash === "#step=12"`)
	const trace = `[...document.querySelectorAll(".chart.waterfall")].at(-1)`
	var id string
	b.eval(trace+`.chart.spec.trace`, &id)
	require.Len(b.t, id, 32)
	b.eval(`location.hash = "#trace=`+id+`"`, nil)
	b.says(seen(trace))
	b.is(`document.querySelector(".told").textContent === ""`)
	b.is(`[...` + trace + `.parentElement.querySelectorAll("a[target=_blank][rel='noopener noreferrer']")].some(
		(a) => a.href === "http://127.0.0.1:16686/trace/` + id + `")`)
	missing := strings.Repeat("f", 32)
	b.eval(`location.hash = "#trace=`+missing+`"`, nil)
	b.says(`document.querySelector(".told").textContent.includes("` + missing + `")`)
	b.is(`document.querySelector(".told a").href === "http://127.0.0.1:16686/trace/` + missing + `"`)
	b.eval(`location.hash = "#step=4012"`, nil)
	b.says(`document.querySelector(".told").textContent === "Step 4012 is not on this page, which has steps 1 to 60."`)

	// After a reload, which needs only the cookie, the address leads there again.
	b.eval(`location.hash = "#trace=`+id+`"`, nil)
	b.eval(`window.old = true`, nil)
	b.call("Page.reload", nil, nil)
	b.says(`!window.old && document.querySelector("article")`)
	b.says(seen(trace))
}

// servePictures: the page is light, dark, and fits a telephone.
func servePictures(b *browser) {
	b.eval(`scrollTo(0, 0)`, nil)
	media := func(scheme string) {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	}
	var pictures [][]byte
	for _, scheme := range []string{"light", "dark"} {
		media(scheme)
		b.eval(`new Promise((done) => setTimeout(done, 300))`, nil)
		pictures = append(pictures, picture(b, "serve-"+scheme))
	}
	assert.NotEqual(b.t, pictures[0], pictures[1])
	media("light")
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true}, nil)
	b.eval(drawn, nil)
	b.is(`document.documentElement.scrollWidth <= 390`)
	b.eval(`scrollTo(0, 0), new Promise((done) => setTimeout(done, 300))`, nil)
	shot, err := png.Decode(bytes.NewReader(picture(b, "serve-phone")))
	require.NoError(b.t, err)
	assert.Equal(b.t, 780, shot.Bounds().Dx())
	b.eval(`document.querySelector(".chart.waterfall").scrollIntoView()`, nil)
	picture(b, "serve-phone-trace")
	b.call("Emulation.clearDeviceMetricsOverride", nil, nil)
}

// picture keeps a screenshot under `go test -artifacts`.
func picture(b *browser, name string) []byte {
	b.t.Helper()
	text := b.screenshot()
	require.NoError(b.t, os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), text, 0o600))
	return text
}

// serveOther: a page on another port of this host, to which the browser sends the cookie too, gets nothing in any way; nor does a client without a token.
func serveOther(b *browser, address string) {
	served, _, _ := strings.Cut(address, "?")
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<h1>evil</h1><header></header><p class=told></p>")
	}))
	defer evil.Close()
	b.open(evil.URL)
	var got []string
	b.eval(`(async () => {
		const got = [], at = "`+served+`";
		for (const path of ["", "document.json", "state.json"]) {
			for (const mode of ["cors", "no-cors"]) {
				const text = await fetch(at + path, { mode, credentials: "include" }).then((r) => r.text(), () => "");
				if (text) got.push(mode + " " + path + text.slice(0, 50));
			}
			for (const tag of ["script", "img", "link"]) {
				await new Promise((done) => {
					const e = document.createElement(tag);
					e.onload = () => { got.push(tag + " " + path); done(); };
					e.onerror = done;
					if (tag === "link") { e.rel = "stylesheet"; e.href = at + path; } else e.src = at + path;
					document.body.append(e);
				});
			}
		}
		const frame = document.createElement("iframe");
		await new Promise((done) => { frame.onload = done; frame.onerror = done; frame.src = at; document.body.append(frame); });
		try { if (frame.contentDocument) got.push("frame " + frame.contentDocument.body.innerText); } catch {}
		return got;
	})()`, &got)
	assert.Empty(b.t, got)

	other := openBrowser(b.t) // without the cookie
	other.open(served)
	other.is(`document.body.textContent.includes("its token is needed")`)
	other.is(`!document.body.textContent.includes("steps were slow")`)
	b.open(served)
	b.says(`document.querySelector("article")`)
}

// serveClients: two hundred concurrent clients get the page and its data.
func serveClients(t *testing.T, address string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{MaxIdleConnsPerHost: 200}
	defer transport.CloseIdleConnections()
	client := &http.Client{Jar: jar, Timeout: 2 * time.Minute, Transport: transport}
	ask := func(address string) (string, error) {
		r, err := client.Get(address)
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err == nil && r.StatusCode != http.StatusOK {
			err = errors.New(r.Status)
		}
		return string(text), err
	}
	page, err := ask(address)
	require.NoError(t, err)
	data := regexp.MustCompile(`(?s)id="data"[^>]*>(.*?)</script>`).FindStringSubmatch(page)
	require.NotNil(t, data)
	u, err := url.Parse(address)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			for range 3 {
				text, err := ask("http://" + u.Host + "/document.json")
				_, failed := ask("http://" + u.Host + "/state.json")
				if assert.NoError(t, errors.Join(err, failed)) {
					assert.Len(t, text, len(data[1]))
				}
			}
		})
	}
	all.Wait()
}

// Ten thousand names that try to be markup, a script, an end, or another direction of writing are text on the page, and updates work as usual.
func TestReportServeHostile(t *testing.T) {
	t.Parallel()
	kinds := []string{
		`</script><script>window.pwned=%d</script>`, `<img/src=x/onerror=window.pwned=%d>`, "\u202e\u2066%d<svg/onload=window.pwned=1>",
		`__proto__%d`, `constructor%d`,
		`"'%d&lt;b&gt;`, `javascript:window.pwned=%d`, "\x1b[31m%d\x07", `$&{trace}%%s%d`, `]]>--><!--%d`,
	}
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("ZeroMQ Performance Log - Transport: IPC\n" +
		"ID    Method  Serialize(ms)  Send(ms)  Recv(ms)  Deserialize(ms)  Total(ms)  Sent(KB)  Recv(KB)  Throughput(MB/s)\n")
	rows := func(from, to int) {
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "%d     %s   0.123          0.045     0.234     0.089            0.491      0.15      125.34    255.23\n",
				i, fmt.Sprintf(kinds[i%len(kinds)], i))
		}
	}
	rows(1, 10_000)
	log := filepath.Join(dir, "zmq_performance.log")
	require.NoError(t, os.WriteFile(log, []byte(b.String()), 0o600))
	for i, kind := range kinds {
		name := strings.ReplaceAll(fmt.Sprintf(kind, i), "/", "\u2215")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".log"), []byte("nothing\n"), 0o600))
	}
	_, address := serveReport(t, dir, "--service", fmt.Sprintf(kinds[0], 1), "--run", fmt.Sprintf(kinds[2], 1))
	page := openBrowser(t)
	page.open(address)
	page.says(`document.querySelector("article") && !document.querySelector(".state.busy")`)
	page.eval(drawn, nil)
	page.eval(`window.kept = 1`, nil)
	b.Reset()
	rows(10_001, 10_100)
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(b.String())
	require.NoError(t, err)
	require.NoError(t, f.Close())
	page.says(`document.querySelector(".about").textContent.includes("10,100 records")`)
	page.eval(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil)
	var has struct {
		Images, Scripts, Kept int
		Pwned                 *int
		Text                  string
	}
	page.eval(`({images: document.images.length, scripts: document.scripts.length, pwned: window.pwned, kept: window.kept,
		text: document.body.innerText})`, &has)
	assert.Zero(t, has.Images)
	assert.Equal(t, 1, has.Scripts)
	assert.Equal(t, 1, has.Kept)
	assert.Nil(t, has.Pwned)
	assert.Contains(t, has.Text, "<script>window.pwned=")
	assert.NotRegexp(t, `[\x{202a}-\x{202e}\x{2066}-\x{2069}\x00-\x08\x1b]`, has.Text)
	picture(page, "serve-hostile")
	_, errs := page.said()
	assert.Empty(t, errs)
}

// A server of 10,000 steps that has read them repeatedly takes at most 64 MiB more than a written report takes. It runs alone.
func TestReportServeMemory(t *testing.T) {
	var b strings.Builder
	line := func(i int) {
		fmt.Fprintf(&b, `{"step": %d, "timestamp": %q, "loss": %g, "lr": 0.001, "step_time_s": %g, "timing_s/gen": 1.5, "timing_s/update": 0.25}`+"\n",
			i, time.Date(2026, 11, 23, 2, 0, 2*i, 0, time.UTC).Format(time.RFC3339), 1+10/float64(i), 2+float64(i%7)/8)
	}
	for i := range 10_000 {
		line(i + 1)
	}
	log := write(t, "train.jsonl", b.String())
	written := start(t, "written", trainbridgeBin(t), nil, "report", log, "-o", filepath.Join(t.TempDir(), "report.html"))
	code, _ := written.end(t)
	require.Zero(t, code)
	most := written.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10

	p, address := serveReport(t, log)
	page := openBrowser(t)
	page.open(address)
	for i := range 4 {
		page.says(fmt.Sprintf(`document.querySelector(".about")?.textContent.includes("10,00%d records")`, i))
		b.Reset()
		line(10_001 + i)
		f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(b.String())
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	peak, err := p.status("VmHWM")
	require.NoError(t, err)
	rest, err := p.status("VmRSS")
	require.NoError(t, err)
	t.Logf("written %d MiB, served %d MiB at most, %d MiB between readings", most>>20, peak>>20, rest>>20)
	assert.Less(t, peak-most, int64(64<<20))
}
