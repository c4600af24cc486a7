//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/porttest"
)

// makeRun starts the script of `make run`, once everything is built and its ports are free.
func makeRun(t *testing.T, env ...string) *process {
	t.Helper()
	requireFree(t, runPorts...)
	return startRun(t, env...)
}

var runPorts = slices.Concat(collectorPorts, jaegerPorts, []int{prometheusPort})

// startRun starts the script in a process group of its own, to count processes left behind.
func startRun(t *testing.T, env ...string) *process {
	t.Helper()
	for path, fix := range map[string]string{"bin/trainbridge": "make build", "bin/tools/jaeger": "make jaeger"} {
		binary(t, "", path, fix) // the script knows no other place
	}
	prometheusBin(t)
	script, err := filepath.Abs(filepath.Join(repoRoot, "tools/run.sh"))
	require.NoError(t, err)
	p := startGroup(t, "run.sh", script, env)
	t.Cleanup(func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	return p
}

// ended waits for the end of the script, and checks its success and that none of its processes is left.
func ended(t *testing.T, p *process) string {
	t.Helper()
	code, out := p.end(t)
	require.Zero(t, code, "exit code of tools/run.sh")
	eventually(t, func() error { // orphans are reaped after a delay
		if err := syscall.Kill(-p.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("processes are left behind: %w", err)
		}
		return nil
	})
	requireFree(t, runPorts...)
	return out
}

var (
	linesRead = regexp.MustCompile(`(?m)^ +(\d+) lines read, (\d+) not for us(?:, \d+ wait for what belongs to them)?$`)
	lineGen   = regexp.MustCompile(`(?m)^wrote (\d+) lines to \d+ file`)
	tableRow  = regexp.MustCompile(`(?m)^(\w+) +(\d+) +\S+ \S+ .*%\) +[\d.]+%`)
	runURL    = regexp.MustCompile(`(?m)^(Jaeger(?:'s API)?|Prometheus|Metrics page|Page of logs) +(http://\S+)`)
	runPage   = regexp.MustCompile(`(?m)^A page of these logs, in a browser of this host: (http://127\.0\.0\.1:\d+/\?token=[0-9a-f]+)$`)
	stepRow   = regexp.MustCompile(`(?m)^megatron +\d+ +\S+ m?s +\S+ m?s +\S+ → \S+ +[\d.,]+ +[\d.]+ TFLOP/s +[\d.]+ TFLOP/s +[\d.]+%`)
	passRow   = regexp.MustCompile(`(?m)^\d\d-\d\d \d\d:\d\d:\d\d +\d+ +98 +[\d.]+ m?s +[\d.]+% +[\d.]+%( +-)? +[\d.]+ [KMG]iB/s`)
	verdict   = regexp.MustCompile(`(?m)^[ │]*! tq_overhead [\d.]+% > 30%$`)
)

// checkDrawing checks table, waterfall and verdicts; it returns the calls by function.
func checkDrawing(t *testing.T, text string) map[string]int {
	t.Helper()
	calls := make(map[string]int)
	for _, m := range tableRow.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		calls[m[1]] = n
	}
	assert.NotEmpty(t, calls, "no table")
	assert.Regexp(t, `(?m)^function +calls .*mean +get +compute +put +TQ overhead\b`, text)
	assert.Regexp(t, `(?m)^all: \d+ calls, .* overhead [\d.]+%`, text)
	for _, name := range []string{"├─tq.get", "├─tq.compute", "└─tq.put"} {
		assert.Regexp(t, `(?m)^[ │]*`+name+` +\d+\.?\d* m?s ▕[ █▌▐]*[█▌▐][ █▌▐]*▏ [\d.]+%`, text)
	}
	assert.Regexp(t, verdict, text)
	assert.Regexp(t, `(?m)^What the verdicts mean\n(.*\n)*\d+× tq_overhead`, text)
	return calls
}

// The output of `make run`: the waterfall of a batch that waits for its data, and the addresses to open. A single test, to wait for the shipped ports once.
func TestMakeRun(t *testing.T) {
	t.Parallel()
	takeShippedPorts(t)
	t.Run("a generated log", checkRunOnce)
	t.Run("logs of mine until Ctrl-C", checkRunUntilStopped)
	t.Run("nothing to read", checkRunOnNothing)
	t.Run("twice", checkRunTwice)
}

func checkRunOnce(t *testing.T) {
	t.Helper()
	text := ended(t, makeRun(t, "RUN_ONCE=1", "SEED=42"))
	// First the report on the logs of one job in all formats.
	report, served, found := strings.Cut(text, "\n== reading")
	assert.Less(t, strings.Index(report, "A page of these logs"), strings.Index(report, " steps were slow"), "the page's address comes first")
	assert.Regexp(t, runPage, report)
	assert.Regexp(t, `(?m)^\d\s+of\s+37\s+steps\s+were\s+slow\s+\([\d.]+\s+m?s\s+of\s+[\d.]+\s+s,\s+[\d.]+\s+GPU-seconds\)`, report)
	assert.Regexp(t, `(?m)^ 1\. \S`, report)
	for _, title := range []string{"Why, what it cost, and what to do", "Where the time went", "Not known from these logs"} {
		assert.Contains(t, report, "\n"+title+"\n")
	}
	require.True(t, found, text)
	// Then, from Jaeger: the causes of slow steps, their breakdown, and the slowest step with the spans of all logs.
	job, others, found := strings.Cut(served, "\n== reading")
	require.True(t, found, text)
	assert.Regexp(t, `^.*\n.* lines read, .*\n\nAll 75 traces of service demo .*\n\nStep \d+ took [\d.]+ s, [\d.]+ m?s more than usual \([\d.]+ s\): [\d.]+ m?s `, job)
	assert.Regexp(t, `(?m)^37 steps, \d slow +[\d.]+ s +- +[\d.]+ m?s `, job)
	assert.Regexp(t, `(?m)^tq\.batch +[\d.]+ m?s ▕█+▏\n├─train\.step `, job)
	for _, name := range []string{"generate_sequences", "compute_log_prob", "update_actor", "AllReduce", "AllGather", "ReduceScatter", "rpc.pass"} {
		assert.Regexp(t, `(?m)^[├└]─`+name+` `, job)
	}
	checkDrawing(t, others)
	read, wrote := linesRead.FindStringSubmatch(others), 0
	require.NotNil(t, read, text)
	for _, m := range lineGen.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		wrote += n
	}
	assert.Equal(t, strconv.Itoa(wrote), read[1], "lines read")
	assert.NotEqual(t, "0", read[2], "the generated logs have lines of others")
	assert.Regexp(t, stepRow, text)
	assert.Regexp(t, `(?m)^train\.step \[megatron\] +[\d.]+ m?s ▕█+.*▏ loss [\d.]+ · MFU [\d.]+%`, text)
	assert.Regexp(t, `(?m)^├─forward-backward +[\d.]+ m?s ▕█+`, text)
	assert.Regexp(t, `(?m)^\d+× train_\w+: `, text)
	assert.Len(t, passRow.FindAllString(text, -1), 6, "a warm-up and 5 passes")
	assert.Regexp(t, `(?m)^all 589 calls( +-)? +589 +[\d.]+ m?s +[\d.]+% +[\d.]+%( +-)? +[\d.]+ [KMG]iB/s$`, text)
	assert.Regexp(t, `(?m)^all: 720 calls, .*; \d+ calls above 30%$`, text)
	assert.Regexp(t, `(?m)^rpc\.pass +[\d.]+ m?s ▕█+▏ serialize [\d.]+% · transport [\d.]+%`, text)
	assert.Regexp(t, `(?m)^│ ├─rpc\.serialize +[\d.]+ m?s ▕[ █▌▐]+▏ [\d.]+%`, text)
	assert.Regexp(t, `(?m)^1× zeromq_serialize_high: `, text)
	assert.Regexp(t, `(?m)^\d+× nccl_straggler: `, text)
	assert.Len(t, runURL.FindAllString(text, -1), 4, "addresses")
	assert.LessOrEqual(t, strings.Count(text, "\n"), 625, "fits twelve screens and a half")
	assert.True(t, strings.HasSuffix(text, "\n"))
}

func checkRunUntilStopped(t *testing.T) {
	t.Helper()
	logs := t.TempDir()
	tr := generate(t, logs, "--workers", "3", "--batches", "30", "--seed", "3", "--overhead-high", "0.3", "--crash", "0.02")
	page := pageDir(t)
	p := makeRun(t, "LOGS="+logs, "JAEGER_UI_DIR="+page) // a directory, as report takes
	eventually(t, func() error {
		switch {
		case !p.running():
			return fatal(errors.New("tools/run.sh ended by itself"))
		case !p.logged("Running until Ctrl-C"):
			return errors.New("tools/run.sh has not printed all")
		}
		return nil
	})
	text := p.output(t)
	// The addresses answer, with this job.
	for _, m := range runURL.FindAllStringSubmatch(text, -1) {
		checkAddress(t, m[2])
	}
	checkPageLinks(t, text)
	if page != "" {
		body, err := get("http://127.0.0.1:16686/search", "")
		require.NoError(t, err)
		assert.Contains(t, string(body), "<title>Jaeger UI</title>")
	}
	require.NoError(t, syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT)) // as a terminal sends the signal
	text = ended(t, p)
	calls := checkDrawing(t, text)
	want := make(map[string]int)
	for _, f := range tr.functions {
		if f.Outcome == complete {
			want[f.Func]++
		}
	}
	assert.Equal(t, want, calls, "calls in the table")
	read := linesRead.FindStringSubmatch(text)
	require.NotNil(t, read, text)
	assert.Equal(t, []string{strconv.FormatInt(tr.run.Lines, 10), strconv.FormatInt(tr.run.Neighbours, 10)}, read[1:], "lines read, and not for us")
}

// checkPageLinks: the traces of the page are in Jaeger.
func checkPageLinks(t *testing.T, text string) {
	t.Helper()
	address := runPage.FindStringSubmatch(text)
	require.NotNil(t, address, text)
	body, err := get(address[1], "")
	require.NoError(t, err)
	traces := regexp.MustCompile(`"trace":"([0-9a-f]{32})"`).FindAllSubmatch(body, -1)
	assert.NotEmpty(t, traces)
	for _, m := range traces {
		eventually(t, func() error {
			_, err := get("http://127.0.0.1:16686/api/v3/traces/"+string(m[1]), "")
			return err
		})
	}
}

// Unknown or missing logs end `make run` before it starts a server, with the reason.
func checkRunOnNothing(t *testing.T) {
	t.Helper()
	unknown := write(t, "x.log", strings.Repeat("some text\n", 300))
	for name, tt := range map[string]struct{ env, want string }{
		"not understood": {"LOGS=" + unknown, `(?m)^Error: report: nothing to read: the file is text in no format that is known`},
		"not there":      {"TRAIN_LOGS=/nothing/*", `(?m)^Error: report: /nothing/\*: no file to read$`},
	} {
		t.Run(name, func(t *testing.T) {
			p := makeRun(t, tt.env, "RUN_ONCE=1")
			code, out := p.end(t)
			assert.Equal(t, 2, code)
			assert.Regexp(t, tt.want, out)
		})
	}
}

// A second `make run`, or another server at any of the ports, is named instead of being taken for a server of this run.
func checkRunTwice(t *testing.T) {
	t.Helper()
	logs := t.TempDir()
	generate(t, logs, "--workers", "1", "--batches", "2", "--seed", "1")
	for _, port := range runPorts {
		l, err := porttest.Listen(fmt.Sprintf("127.0.0.1:%d", port))
		require.NoError(t, err)
		p := startRun(t, "RUN_ONCE=1", "LOGS="+globOf(logs))
		code, out := p.end(t)
		require.NoError(t, l.Close())
		assert.Equal(t, 1, code)
		assert.Regexp(t, fmt.Sprintf(`(?m)^Port %d of 127\.0\.0\.1 is taken, `, port), out)
	}
}

// checkAddress requests an address printed by the script for the job.
func checkAddress(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	path, has := address, "tq_stage_duration_seconds_bucket{"
	if u.Query().Has("token") {
		has = "generate_sequences"
	}
	switch u.Port() {
	case "16686":
		path, has = address+"/api/v3/services", `"verl"`
	case strconv.Itoa(prometheusPort):
		promQL := u.Query().Get("g0.expr")
		require.NotEmpty(t, promQL)
		path, has = "http://"+u.Host+"/api/v1/query?"+url.Values{"query": {promQL}}.Encode(), `"tq_stage":"compute"`
	}
	eventually(t, func() error { // Prometheus scrapes now and then
		body, err := get(path, "")
		if err == nil && !bytes.Contains(body, []byte(has)) {
			err = fmt.Errorf("%s: no %s in %.300s", path, has, body)
		}
		return err
	})
}

// The commands of README.md and of the waterfalls' page work as stated: the binary's commands run here, other commands in the tests named here.
func TestReadme(t *testing.T) {
	t.Parallel()
	takeShippedPorts(t)
	elsewhere := map[string]func(*testing.T){
		"pip install trainbridge-*-manylinux*_x86_64.whl": TestWheel,
		"trainbridge report job-logs":                     TestWheel,

		"make run":   TestMakeRun,
		"make test":  TestReadme, // runs this test
		"make build": TestReadme, // the built binary is run here
		"bin/trainbridge show --tempo http://127.0.0.1:3200": TestShowSources,
		"bin/trainbridge show --file spans.json":             TestShowSources,
		"TRAINBRIDGE_LOGS='/data/job/logs/*' TRAINBRIDGE_SERVICE=llama3-8b TRAINBRIDGE_OTLP_ENDPOINT=127.0.0.1:14317 bin/trainbridge": TestLogsOfAnyKind,
	}
	commands := commandsOfReadme(t, elsewhere)

	// A checkout with the files named by the commands, and a Jaeger at the default address with a job.
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	require.NoError(t, os.Symlink(trainbridgeBin(t), filepath.Join(dir, "bin", "trainbridge")))
	require.NoError(t, os.Symlink(shippedConfig(t), filepath.Join(dir, "otelcol-config.yaml")))
	requireFree(t, jaegerPorts...)
	config, err := filepath.Abs(filepath.Join(repoRoot, "tools/run/jaeger.yaml"))
	require.NoError(t, err)
	j := &jaeger{ui: "http://127.0.0.1:16686"}
	j.process = start(t, "jaeger", jaegerBin(t), []string{"OTEL_TRACES_SAMPLER=always_off"}, "--config", config)
	j.ready(t, "http://127.0.0.1:13134/status")
	logs := t.TempDir()
	tr := generate(t, logs, "--workers", "2", "--batches", "8", "--seed", "9", "--overhead-high", "0.5")
	otlp := freeAddr(t)
	c := newCollector(t, trainbridgeBin(t), globOf(logs), "127.0.0.1:14317", fmt.Sprintf("receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}", otlp))
	c.up(t)
	tr.await(t, j.verl)

	for _, line := range commands {
		t.Run(line, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "bash", "-c", line)
			cmd.Dir = dir
			if strings.HasPrefix(line, "go run ") {
				cmd.Dir = repoRoot
			}
			cmd.Env = append(os.Environ(), "NO_PROXY=*", "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+otlp)
			out, err := cmd.CombinedOutput()
			require.NoErrorf(t, err, "%s", out)
			checkCommand(t, dir, line, string(out))
		})
	}
}

// commandsOfReadme returns the pages' commands for TestReadme. Any other command is in elsewhere, with the test that runs it.
func commandsOfReadme(t *testing.T, elsewhere map[string]func(*testing.T)) []string {
	t.Helper()
	var text []byte
	for _, page := range []string{"README.md", "docs/reference/waterfalls.md"} {
		more, err := os.ReadFile(filepath.Join(repoRoot, page))
		require.NoError(t, err)
		text = append(append(text, more...), '\n')
	}
	var commands []string
	for _, line := range shellLines(string(text)) {
		_, named := elsewhere[line]
		if !named && (strings.HasPrefix(line, "bin/trainbridge ") || strings.HasPrefix(line, "go run ")) {
			commands = append(commands, line)
			continue
		}
		assert.Containsf(t, elsewhere, line, "there is a command that no test runs; run it here or name its test")
		delete(elsewhere, line)
	}
	assert.Empty(t, elsewhere, "not there any more")
	require.NotEmpty(t, commands)
	return commands
}

// checkCommand compares the output of a command of README.md, printed or written below dir, with the page.
func checkCommand(t *testing.T, dir, line, out string) {
	t.Helper()
	switch args := strings.Fields(line)[1:]; args[0] {
	case "gen":
		truth, err := os.ReadFile(filepath.Join(dir, args[len(args)-1], "truth.json"))
		require.NoError(t, err)
		assert.Contains(t, string(truth), `"run_id":`)
	case "report":
		if i := slices.Index(args, "-o"); i >= 0 {
			page, err := os.ReadFile(filepath.Join(dir, args[i+1]))
			require.NoError(t, err)
			out = string(page)
		}
		assert.Regexp(t, `\b8\s+of\s+50\s+steps\s+were\s+slow`, out)
	case "check":
		assert.Regexp(t, `(?m)^Read as it should be: check found nothing of what it looks for\.$`, out)
	case "run": // the example sent its spans into the trace drawn by the next command
		assert.Contains(t, out, "9fddca35a6b44a70848589eaab933522")
	case "show":
		if strings.Contains(line, "--trace") { // TestGoService has the log's spans in it too
			assert.Regexp(t, `(?m)^trace 9fddca35a6b44a70848589eaab933522 +services data-loader, data-server\b`, out)
			assert.Regexp(t, `(?m)^prefetch_batch \[\d+\] +[\d.]+ m?s ▕█`, out)
			assert.Regexp(t, `(?m)goservice\.Data/Fetch .* data-server$`, out)
			return
		}
		checkDrawing(t, out)
	case "validate":
		assert.Empty(t, out)
	default:
		assert.Fail(t, "no check for this command")
	}
}

// shellLines returns the commands of the ```sh blocks of a Markdown text: no comments, continued lines joined.
func shellLines(text string) []string {
	var out []string
	inside, open := false, false
	for line := range strings.SplitSeq(text, "\n") {
		if fence, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			inside, open = !inside && (fence == "sh" || fence == "bash" || fence == "console"), false
			continue
		}
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimSpace(line)
		if !inside || line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line, more := strings.CutSuffix(line, "\\")
		line = strings.TrimSpace(line)
		if open {
			out[len(out)-1] += " " + line
		} else {
			out = append(out, line)
		}
		open = more
	}
	return out
}

func TestShellLines(t *testing.T) {
	text := "```\nnot\n```\n```sh\na \\\n  b # c\n\n# d\ne\n```\nf\n  ```bash\n  g\n  ```\n"
	assert.Equal(t, []string{"a b", "e", "g"}, shellLines(text))
}
