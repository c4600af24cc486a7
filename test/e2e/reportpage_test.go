//go:build e2e

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pageChart is a chart of the report's page, by its data.
type pageChart struct {
	Kind, Title, Unit string
	Xs                []float64
	Series            []struct {
		Name   string
		Values []*float64
	}
	Items []struct {
		Name   string
		Count  int64
		P50    float64
		P95    float64
		Values []*float64
	}
	Rows    []json.RawMessage
	Columns []string
	Cells   [][]string
	Values  []*float64
	Names   []string
	Marks   []struct{ X float64 }
}

// line is the values of a series by name.
func (c *pageChart) line(t *testing.T, name string) []*float64 {
	t.Helper()
	for _, s := range c.Series {
		if s.Name == name {
			return s.Values
		}
	}
	require.FailNow(t, "no series", "%s of %s", name, c.Title)
	return nil
}

// charts are all of a page's charts, by title.
func (b *browser) charts() map[string]*pageChart {
	b.t.Helper()
	var data struct {
		Jobs []struct {
			Sections []struct{ Charts []*pageChart }
		}
	}
	b.eval(`JSON.parse(document.getElementById("data").textContent)`, &data)
	out := map[string]*pageChart{}
	for _, j := range data.Jobs {
		for _, s := range j.Sections {
			for _, c := range s.Charts {
				out[c.Title] = c
			}
		}
	}
	return out
}

// drawn has the page draw all charts, as before printing, and measures each: the non-empty pixels of its canvases, or its shapes or rows.
const drawn = `(async () => {
  const out = {};
  for (const box of document.querySelectorAll(".chart")) {
    box.scrollIntoView();
    for (let i = 0; !box.chart.drawn && i < 100; i++) await new Promise((done) => setTimeout(done, 20));
    let n = box.querySelectorAll("svg.figure rect, .row").length;
    for (const canvas of box.querySelectorAll("canvas")) {
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      for (let i = 3; i < pixels.length; i += 4) if (pixels[i] > 0) n++;
    }
    out[box.chart.spec.title] = n;
  }
  return out;
})()`

// silent requires that only the page itself was requested, that no script failed, and that the policy was not violated.
func (b *browser) silent(address string) {
	b.t.Helper()
	requests, errors := b.said()
	assert.Empty(b.t, errors)
	for _, r := range requests {
		assert.True(b.t, r == address || strings.HasPrefix(r, "data:"), r)
	}
}

// reportPage makes the page of logs, and opens it.
func reportPage(t *testing.T, args ...string) (b *browser, address string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	run(t, nil, trainbridgeBin(t), append([]string{"report", "-o", file}, args...)...)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(5_000_000))
	b = openBrowser(t)
	address = "file://" + file
	b.open(address)
	return b, address
}

// trainLine are fields of a line of the job's training log.
type trainLine struct {
	Step, Loss, Throughput, LR float64
	Seconds                    float64   `json:"step_time_s"`
	Utilization                []float64 `json:"gpu_util"`
}

func trainLines(t *testing.T, file string) (out []trainLine) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		var l trainLine
		require.NoError(t, json.Unmarshal(line, &l))
		out = append(out, l)
	}
	return out
}

// The page of a job with all kinds of logs: every chart is drawn, has the numbers of the logs, can be searched and zoomed, by mouse and by keyboard, in light,
// dark and on paper; and nothing leaves the page.
func TestReportPage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "job")
	run(t, nil, trainbridgeBin(t), "gen", "run", dir, "--steps", "60", "--faults", "straggler,data_loading,get")
	require.NoError(t, os.Remove(filepath.Join(dir, "truth.json")))
	b, address := reportPage(t, dir)
	charts := b.charts()
	b.run(t, "drawn", func() { pageDrawn(b.t, b, charts) })
	b.run(t, "numbers", func() { pageNumbers(b.t, dir, charts) })
	b.run(t, "document", func() { pageDocument(b.t, b, dir, charts) })
	b.run(t, "chart", func() { pageOneChart(b.t, b) })
	b.run(t, "waterfall", func() { pageWaterfall(b.t, b) })
	b.run(t, "colours", func() { pageColours(b.t, b) })
	b.run(t, "paper", func() { pagePaper(b.t, b) })
	b.run(t, "narrow", func() { pageNarrow(b.t, b, address) })
	b.silent(address)
}

// pageDrawn: every chart is drawn.
func pageDrawn(t *testing.T, b *browser, charts map[string]*pageChart) {
	t.Helper()
	var ink map[string]int
	b.eval(drawn, &ink)
	for _, title := range []string{
		"Time of steps and its parts", "Step time", "Loss and learning rate", "Throughput", "Mean time of a call: get, compute, put", "Time of calls",
		"Stages of calls", "Calls by method", "Passes: time of their calls", "Latency by operation", "Latency", "Messages by size", "How late each rank came",
		"Bandwidth between ranks", "Traffic between ranks", "Utilization by card",
	} {
		require.Contains(t, charts, title)
		assert.Positive(t, ink[title], title)
	}
	waterfalls := 0
	for title, c := range charts {
		if c.Kind == "waterfall" {
			waterfalls++
			assert.Positive(t, ink[title], title)
			assert.NotEmpty(t, c.Rows, title)
		}
	}
	assert.GreaterOrEqual(t, waterfalls, 3)
}

// pageNumbers: the charts have the numbers of the logs.
func pageNumbers(t *testing.T, dir string, charts map[string]*pageChart) {
	t.Helper()
	lines := trainLines(t, filepath.Join(dir, "train", "train.jsonl"))
	require.Len(t, lines, 60)
	loss, rate := charts["Loss and learning rate"].line(t, "loss"), charts["Loss and learning rate"].line(t, "learning rate")
	speed, took := charts["Throughput"].line(t, "samples/s"), charts["Step time"].line(t, "step time")
	average := 0.0
	for i, l := range lines {
		assert.InDelta(t, l.Step, charts["Step time"].Xs[i], 0)
		assert.InEpsilon(t, l.Loss, *loss[i], 1e-6)
		assert.InEpsilon(t, l.LR, *rate[i], 1e-6)
		assert.InEpsilon(t, l.Throughput, *speed[i], 1e-6)
		assert.InEpsilon(t, l.Seconds, *took[i], 1e-6)
		average += l.Loss
		if i >= 20 {
			average -= lines[i-20].Loss
		}
		assert.InEpsilon(t, average/math.Min(20, float64(i+1)), *charts["Loss and learning rate"].line(t, "mean of 20")[i], 1e-6)
	}
	// The parts of a step add up to its time.
	parts := charts["Time of steps and its parts"]
	for i, x := range parts.Xs {
		sum := 0.0
		for _, s := range parts.Series {
			if v := s.Values[i]; v != nil {
				sum += *v
			}
		}
		assert.InEpsilon(t, lines[int(x)-1].Seconds, sum, 0.1, "step %v", x)
	}
	// As many calls of each function as the log has ends of.
	tq, err := os.ReadFile(filepath.Join(dir, "tq", "driver.log"))
	require.NoError(t, err)
	for _, f := range charts["Time of calls"].Items {
		assert.Equal(t, int64(len(regexp.MustCompile(`func=`+f.Name+` [^\n]*stage=FUNCTION_END`).FindAll(tq, -1))), f.Count, f.Name)
	}
	rpc, err := os.ReadFile(filepath.Join(dir, "zmq", "zmq_performance.log"))
	require.NoError(t, err)
	for _, m := range charts["Calls by method"].Items {
		assert.Equal(t, int64(len(regexp.MustCompile(`(?m)^\d+\s+`+m.Name+`\s`).FindAll(rpc, -1))), m.Count, m.Name)
	}
	// The samples of each card; the card's number is its index in the list.
	var utilization [8]float64
	for _, l := range lines {
		for i, v := range l.Utilization {
			utilization[i] += v / 100 / float64(len(lines))
		}
	}
	cards := charts["Utilization by card"].Items
	require.Len(t, cards, len(utilization))
	for i, g := range cards {
		assert.Equal(t, int64(len(lines)), g.Count)
		assert.InDelta(t, utilization[i], g.P50, 0.01, g.Name)
	}
	links := charts["Bandwidth between ranks"]
	assert.Len(t, links.Rows, 16)
	assert.Len(t, links.Columns, 16)
	late := charts["How late each rank came"]
	assert.Len(t, late.Rows, 16)
	assert.Len(t, late.Values, len(late.Rows)*len(late.Columns))
}

// distribution is a distribution in the JSON document.
type distribution struct {
	Count         int64
	Sum, P50, P95 float64
}

// pageTruth has the compared parts of the JSON document.
type pageTruth struct {
	Jobs []struct {
		Conclusion, Severity string
		Claims               []struct{ Text string }
		Untold               []string
		Windows              []struct {
			Slow  int
			Parts []struct {
				Part     string
				Duration distribution `json:"duration_s"`
			}
		}
		RPC struct {
			All struct {
				Stages map[string]distribution `json:"stages_s"`
			}
		}
		TransferQueue struct {
			Functions []struct {
				Function string
				Calls    float64
				Get      float64 `json:"get_s"`
				Compute  float64 `json:"compute_s"`
				Put      float64 `json:"put_s"`
			}
		}
		Collectives struct {
			Operations []struct {
				Operation string
				Duration  distribution `json:"duration_s"`
			}
		}
	}
}

// pageDocument: the page agrees with the JSON document of the same logs.
func pageDocument(t *testing.T, b *browser, dir string, charts map[string]*pageChart) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	run(t, nil, trainbridgeBin(t), "report", "-o", file, dir)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var document pageTruth
	require.NoError(t, json.Unmarshal(text, &document))
	require.Len(t, document.Jobs, 1)
	want := document.Jobs[0]

	var page struct {
		Conclusion, Severity string
		Causes               []struct{ Text string }
		Missing              []string
	}
	b.eval(`JSON.parse(document.getElementById("data").textContent).jobs[0]`, &page)
	assert.Equal(t, want.Conclusion, page.Conclusion)
	assert.Equal(t, want.Severity, page.Severity)
	assert.NotEmpty(t, page.Causes)
	for i, c := range page.Causes {
		assert.Equal(t, want.Claims[i].Text, c.Text)
	}
	assert.Equal(t, want.Untold, page.Missing)

	documentWindows(t, &document, charts)
	documentCalls(t, &document, charts)
}

func documentWindows(t *testing.T, document *pageTruth, charts map[string]*pageChart) {
	t.Helper()
	want := document.Jobs[0]
	parts := charts["Time of steps and its parts"]
	assert.Len(t, parts.Marks, want.Windows[0].Slow)
	drawn := 0
	for _, p := range want.Windows[0].Parts {
		for _, s := range parts.Series {
			if s.Name == p.Part {
				drawn++
				assert.InEpsilon(t, p.Duration.Sum, sumOf(s.Values), 1e-6, p.Part)
			}
		}
	}
	assert.Equal(t, len(parts.Series)-1, drawn, "all but the other parts together")
}

func documentCalls(t *testing.T, document *pageTruth, charts map[string]*pageChart) {
	t.Helper()
	want := document.Jobs[0]
	for _, box := range charts["Stages of calls"].Items[1:] { // the first is the whole call
		stage, ok := want.RPC.All.Stages[box.Name]
		require.True(t, ok, box.Name)
		assert.Equal(t, stage.Count, box.Count)
		assert.InDelta(t, stage.P50, box.P50, 1e-9+1e-6*stage.P50)
		assert.InDelta(t, stage.P95, box.P95, 1e-9+1e-6*stage.P95)
	}
	for i, f := range want.TransferQueue.Functions {
		item := charts["Mean time of a call: get, compute, put"].Items[i]
		assert.Equal(t, f.Function, item.Name)
		for k, total := range []float64{f.Get, f.Compute, f.Put} {
			assert.InEpsilon(t, total/f.Calls, *item.Values[k], 1e-6, f.Function)
		}
	}
	for i, o := range want.Collectives.Operations {
		box := charts["Latency by operation"].Items[i]
		assert.Equal(t, o.Operation, box.Name)
		assert.Equal(t, o.Duration.Count, box.Count)
		assert.InEpsilon(t, o.Duration.P50, box.P50, 1e-6)
	}
}

func sumOf(values []*float64) (sum float64) {
	for _, v := range values {
		if v != nil {
			sum += *v
		}
	}
	return sum
}

// pageOneChart: a chart is read, zoomed and filtered by keyboard and by mouse.
func pageOneChart(t *testing.T, b *browser) {
	t.Helper()
	const chart = `document.querySelector(".chart.series")`
	var r struct{ Min, Max float64 }
	b.eval(chart+`.scrollIntoView(), `+chart+`.querySelector(".plot").focus(), `+chart+`.chart.drawn.shown()`, &r)
	assert.InDelta(t, 1, r.Min, 0.5)
	assert.InDelta(t, 60, r.Max, 0.5)
	b.press("ArrowRight")
	var text string
	b.eval(chart+`.querySelector(".at").textContent`, &text)
	assert.Equal(t, "step 1", text)
	b.press("+")
	b.eval(chart+`.chart.drawn.shown()`, &r)
	assert.Less(t, r.Max-r.Min, 40.0)
	b.press("0")
	b.eval(chart+`.chart.drawn.shown()`, &r)
	assert.InDelta(t, 60, r.Max, 0.5)
	// A button hides its series.
	var pressed string
	b.eval(`(() => { const e = `+chart+`.querySelector(".legend button"); e.click(); const p = e.getAttribute("aria-pressed"); e.click(); return p; })()`, &pressed)
	assert.Equal(t, "false", pressed)
	// Dragging over a part zooms to it.
	var box struct{ X, Y, Width, Height float64 }
	b.eval(`(() => { `+chart+`.scrollIntoView({block: "center"}); const r = `+chart+`.querySelector(".u-over").getBoundingClientRect();
		return {x: r.x, y: r.y, width: r.width, height: r.height}; })()`, &box)
	for _, m := range []struct {
		kind string
		at   float64
	}{{"mouseMoved", 0.25}, {"mousePressed", 0.25}, {"mouseMoved", 0.4}, {"mouseMoved", 0.5}, {"mouseReleased", 0.5}} {
		b.call("Input.dispatchMouseEvent", map[string]any{
			"type": m.kind, "x": box.X + m.at*box.Width, "y": box.Y + box.Height/2, "button": "left", "buttons": 1, "clickCount": 1,
		}, nil)
	}
	b.eval(`new Promise((done) => setTimeout(() => done(`+chart+`.chart.drawn.shown()), 100))`, &r)
	assert.InDelta(t, 1+0.25*59, r.Min, 1)
	assert.InDelta(t, 1+0.5*59, r.Max, 1)
}

// pageWaterfall: a trace is searched and zoomed.
func pageWaterfall(t *testing.T, b *browser) {
	t.Helper()
	const chart = `document.querySelector(".chart.waterfall")`
	// The evidence of a cause links to its trace.
	var there bool
	b.eval(`(() => { const a = document.querySelector(".causes a[href^='#trace-']"); a.closest("details").open = true; a.click();
		return document.querySelector(a.getAttribute("href")).getBoundingClientRect().top < innerHeight; })()`, &there)
	assert.True(t, there)
	var found struct {
		Count    string
		Marked   int
		Selected string
	}
	const state = `({count: ` + chart + `.querySelector(".count").textContent, marked: ` + chart + `.querySelectorAll(".row.found").length,
		selected: ` + chart + `.querySelector(".row.selected .label").textContent})`
	b.eval(`(() => { `+chart+`.scrollIntoView(); const e = `+chart+`.querySelector("input"); e.focus(); e.value = "Compute_Log";
		e.dispatchEvent(new Event("input")); return `+state+`; })()`, &found)
	assert.Regexp(t, `^1/\d+$`, found.Count)
	assert.Positive(t, found.Marked)
	assert.Contains(t, found.Selected, "compute_log_prob")
	b.press("Enter")
	b.eval(state, &found)
	assert.Regexp(t, `^2/\d+$`, found.Count)

	var window [2]float64
	b.eval(chart+`.chart.drawn.window()`, &window)
	length := window[1]
	assert.Positive(t, length)
	b.eval(chart+`.querySelector("[role=tree]").focus()`, nil)
	b.press("Enter") // to the row found
	b.eval(chart+`.chart.drawn.window()`, &window)
	assert.Less(t, window[1]-window[0], length/2)
	b.press("0")
	b.eval(chart+`.chart.drawn.window()`, &window)
	assert.InDelta(t, length, window[1]-window[0], 1)
	b.eval(`(() => { `+chart+`.querySelectorAll(".tools button")[2].click(); return `+chart+`.chart.drawn.window(); })()`, &window)
	assert.InDelta(t, length/2, window[1]-window[0], length*0.01)
}

// pageColours: the page is light or dark like the system, unless set otherwise.
func pageColours(t *testing.T, b *browser) {
	t.Helper()
	page := func() (colour string) {
		b.eval(`getComputedStyle(document.body).backgroundColor`, &colour)
		return colour
	}
	light := page()
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	dark := page()
	assert.NotEqual(t, light, dark)
	b.eval(`document.querySelector(".theme").click()`, nil) // light
	assert.Equal(t, light, page())
	b.eval(`document.querySelector(".theme").click()`, nil) // dark
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": "light"}}}, nil)
	assert.Equal(t, dark, page())
	b.eval(`document.querySelector(".theme").click()`, nil) // as the system
	assert.Equal(t, light, page())
}

// pagePaper: the page can be printed on a few sheets, and is unchanged afterwards.
func pagePaper(t *testing.T, b *browser) {
	t.Helper()
	var pdf struct{ Data string }
	b.call("Page.printToPDF", map[string]any{"printBackground": true}, &pdf)
	paper, err := base64.StdEncoding.DecodeString(pdf.Data)
	require.NoError(t, err)
	assert.Greater(t, len(paper), 100_000)
	assert.LessOrEqual(t, len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(paper, -1)), 8)
	var theme string
	b.eval(`document.documentElement.dataset.theme`, &theme)
	assert.Equal(t, "auto", theme)
}

// pageNarrow: the page fits a telephone.
func pageNarrow(t *testing.T, b *browser, address string) {
	t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 480, "height": 900, "deviceScaleFactor": 1, "mobile": true}, nil)
	b.open(address)
	var ink map[string]int
	b.eval(drawn, &ink)
	var width int
	b.eval(`document.documentElement.scrollWidth`, &width)
	assert.LessOrEqual(t, width, 480)
	picture, err := png.Decode(bytes.NewReader(b.screenshot()))
	require.NoError(t, err)
	assert.Equal(t, 480, picture.Bounds().Dx())
}

// A page without spans says so, and a page in Chinese is in Chinese.
func TestReportPageEmpty(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "job")
	run(t, nil, trainbridgeBin(t), "gen", "run", dir, "--steps", "12")
	b, address := reportPage(t, dir, "--since", "2100-01-01", "--lang", "zh")
	var page struct{ Lang, Text string }
	b.eval(`({lang: document.documentElement.lang, text: document.body.innerText})`, &page)
	assert.Equal(t, "zh", page.Lang)
	assert.Contains(t, page.Text, "日志中没有完整的步骤、调用或集合通信。")
	assert.Contains(t, page.Text, "train.jsonl")
	b.silent(address)
}

// Any content of a log is text on the page: it ends no element, begins none, and runs nothing.
func TestReportPageHostile(t *testing.T) {
	t.Parallel()
	const name = `</script><script>window.pwned=1</script><img/src=x/onerror=window.pwned=2>`
	dir := filepath.Join(t.TempDir(), name[2:8])
	run(t, nil, trainbridgeBin(t), "gen", "run", dir, "--steps", "12")
	require.NoError(t, os.Remove(filepath.Join(dir, "truth.json")))
	for file, old := range map[string]string{"tq/driver.log": "generate_sequences", "zmq/zmq_performance.log": "Matmul"} {
		file = filepath.Join(dir, file)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte(old), []byte(name)), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "<img src=x onerror=window.pwned=3>.log"), []byte("nothing\n"), 0o600))
	b, address := reportPage(t, dir, "--service", name, "--run", name)
	var ink map[string]int
	b.eval(drawn, &ink)
	var page struct {
		Images, Scripts int
		Pwned           *int
		Text            string
	}
	b.eval(`({images: document.images.length, scripts: document.scripts.length, pwned: window.pwned, text: document.body.textContent})`, &page)
	assert.Zero(t, page.Images)
	assert.Equal(t, 1, page.Scripts, "the data: the page takes its own out when it has drawn itself")
	assert.Nil(t, page.Pwned)
	assert.GreaterOrEqual(t, strings.Count(page.Text, name), 4, "in the head, tables and waterfalls")
	b.silent(address)
}

// Several runs are a table that sorts by its columns, with rows that link to their sections, and with names as text.
func TestReportPageOfRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const hostile = `<img src=x onerror=alert(1)>`
	for name, steps := range map[string]string{"a": "14", "b": "30", hostile: "20"} {
		run(t, nil, trainbridgeBin(t), "gen", "run", filepath.Join(dir, name), "--ranks", "2", "--steps", steps)
		require.NoError(t, os.Remove(filepath.Join(dir, name, "truth.json")))
	}
	b, address := reportPage(t, dir)
	const column = `[...document.querySelectorAll("nav.runs tbody tr")].map((r) => r.cells[1].textContent)`
	const sorted = `(document.querySelectorAll("nav.runs th button")[1].click(), ` + column + `)`
	var steps []string
	b.eval(sorted, &steps)
	assert.Equal(t, []string{"30", "20", "14"}, steps)
	b.eval(sorted, &steps)
	assert.Equal(t, []string{"14", "20", "30"}, steps)
	var rows []struct{ Name, To string }
	b.eval(`[...document.querySelectorAll("nav.runs tbody a")].map((a) => ({name: a.textContent, to: document.querySelector(a.getAttribute("href")).textContent}))`, &rows)
	require.Len(t, rows, 3)
	for _, r := range rows {
		assert.Contains(t, r.To, filepath.Join(dir, r.Name))
	}
	b.silent(address)
}
