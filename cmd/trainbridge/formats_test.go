package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver"
	"github.com/trainbridge/trainbridge/test/gen/commands"
)

// proof says where a format is proven. Empty fields follow from the format's name.
type proof struct {
	fixture string   // a file or folder of the receiver's testdata; <format>.*, <format> or trainers/<format>.*
	parser  string   // the package below receivers; <receiver>/internal/<format>
	fuzz    string   // the fuzz target; any of the package
	gen     []string // the arguments of bin/gen; <format>
	script  string   // of tools/record-trainers, which has the trainer itself write the log, in place of gen
}

const (
	megatron   = "internal/megatron"
	vccl       = "ncclreceiver/internal/vccl"
	tqLines    = "tqtracereceiver/internal/tqline"
	perfTables = "flagscalereceiver/internal/perfmonitor"
	patterns   = "FuzzBuiltinPatterns"
)

// readers are the receivers of logs, the formats of each, and the proofs that do not follow from a format's name.
var readers = []struct {
	dir     string
	formats []string
	proofs  map[string]proof
}{
	{"tqtracereceiver", tqtracereceiver.Formats(), map[string]proof{
		"tq_trace":      {fixture: "seed.log", parser: tqLines, gen: []string{"tq"}},
		"tq_neighbours": {fixture: "neighbours.log", parser: tqLines, gen: []string{"tq", "--costs"}},
	}},
	{"flagscalereceiver", flagscalereceiver.Formats(), map[string]proof{
		"perf_monitor": {fixture: "merged", parser: perfTables, fuzz: "FuzzLine", gen: []string{"flagscale"}},
		"perf_summary": {fixture: "json_only", parser: perfTables, fuzz: "FuzzSummary", gen: []string{"flagscale"}},
		"megatron":     {parser: megatron},
	}},
	{"trainlogreceiver", trainlogreceiver.Formats(), map[string]proof{
		"megatron":  {parser: megatron},
		"openrlhf":  {fixture: "trainers/openrlhf_ppo.log"},
		"nanogpt":   {parser: "trainlogreceiver", fuzz: patterns, script: "nanogpt.sh"},
		"nanochat":  {parser: "trainlogreceiver", fuzz: patterns},
		"litgpt":    {parser: "trainlogreceiver", fuzz: patterns, script: "litgpt_pretrain.py"},
		"torchtune": {parser: "trainlogreceiver", fuzz: patterns, script: "torchtune_loggers.py"},
		"block":     {gen: []string{"nemorl"}},
		"composer":  {script: "composer_console.py"},
		"pattern":   {fixture: "trainers/xgboost.log", script: "boosters.py"},
		"keras":     {script: "keras_bar.py"},
		"tqdm":      {fixture: "trainers/lightning.log", script: "lightning_bar.py"},
		"csv":       {fixture: "trainers/lightning_metrics.csv", parser: "trainlogreceiver/internal/table", script: "lightning_bar.py"},
		"keyvalue":  {fixture: "trainers/others.log", parser: "trainlogreceiver/internal/pairs", gen: []string{"maxtext"}},
	}},
	{"zmqrpcreceiver", zmqrpcreceiver.Formats(), map[string]proof{
		"zmq_rpc": {fixture: "v1.log", parser: "zmqrpcreceiver/internal/rpclog", gen: []string{"zmq"}},
	}},
	{"ncclreceiver", ncclreceiver.Formats(), map[string]proof{
		"nccl_inspector":  {fixture: "inspector-v4.0", parser: "ncclreceiver/internal/inspector", gen: []string{"nccl", "--format", "nccl_inspector"}},
		"nccl_profiler":   {fixture: "profiler", parser: "ncclreceiver/internal/profiler", gen: []string{"nccl", "--format", "nccl_profiler"}},
		"flight_recorder": {parser: "ncclreceiver/internal/flightrecorder", gen: []string{"nccl", "--format", "flight_recorder"}},
		"vccl_json":       {parser: vccl, fuzz: "FuzzJSON", gen: []string{"nccl", "--format", "vccl_json"}},
		"vccl_csv":        {parser: vccl, fuzz: "FuzzCSV", gen: []string{"nccl", "--format", "vccl_csv"}},
		"vccl_flow":       {parser: vccl, fuzz: "FuzzFlow", gen: []string{"nccl", "--format", "vccl_flow"}},
		"vccl_packed":     {parser: vccl, fuzz: "FuzzPacked", gen: []string{"nccl", "--format", "vccl_packed"}},
		"vccl_mean":       {parser: vccl, fuzz: "FuzzMean", gen: []string{"nccl", "--format", "vccl_mean"}},
		"vccl_text":       {parser: vccl, fuzz: "FuzzText", gen: []string{"nccl", "--format", "vccl_text"}},
	}},
}

// Each format of a receiver has everything that docs/reference/contributing.md asks for: a fixture with its golden files, a row in the README or in
// docs/reference/trainers.md, a fuzz target, a benchmark, and logs with known truth.
func TestFormats(t *testing.T) {
	root := filepath.Join("..", "..")
	trainers, err := os.ReadFile(filepath.Join(root, "docs", "reference", "trainers.md"))
	require.NoError(t, err)
	for _, r := range readers {
		home := filepath.Join(root, "receivers", r.dir)
		readme, err := os.ReadFile(filepath.Join(home, "README.md"))
		require.NoError(t, err)
		for name := range r.proofs {
			assert.Contains(t, r.formats, name, "a proof of what %s does not list", r.dir)
		}
		for _, format := range r.formats {
			t.Run(r.dir+"/"+format, func(t *testing.T) {
				p := r.proofs[format]
				checkFixture(t, filepath.Join(home, "testdata"), format, p.fixture)
				row := regexp.MustCompile(`(?m)^\|.*` + "`" + format + "`")
				assert.True(t, row.Match(readme) || row.Match(trainers), "a row of the README, or of docs/reference/trainers.md, names `%s`", format)
				parser := filepath.Join(root, "receivers", p.parser)
				if p.parser == "" {
					parser = filepath.Join(home, "internal", format)
				}
				tests := testFiles(t, parser)
				assert.Regexp(t, `(?m)^func `+orAny(p.fuzz, "Fuzz"), tests, "a fuzz target")
				assert.Regexp(t, `(?m)^func Benchmark`, tests, "a benchmark")
				checkTruth(t, root, format, p)
			})
		}
	}
}

func orAny(name, kind string) string {
	if name == "" {
		return kind
	}
	return name + `\(`
}

// checkFixture requires a log of the format, with its golden files.
func checkFixture(t *testing.T, testdata, format, fixture string) {
	t.Helper()
	patterns := []string{fixture}
	if fixture == "" {
		patterns = []string{format + ".log", format, filepath.Join("trainers", format+".log"), filepath.Join("trainers", format+".txt")}
	}
	for _, pattern := range patterns {
		path := filepath.Join(testdata, pattern)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		golden := strings.TrimSuffix(path, filepath.Ext(path))
		if filepath.Ext(path) != "" && !strings.HasPrefix(filepath.Ext(path), ".log") && isDir(path) {
			golden = path // the dot of inspector-v4.0 is no extension
		}
		info, err := os.Stat(golden + ".traces.yaml")
		require.NoError(t, err, "the golden traces of %s", path)
		points, err := os.Stat(golden + ".metrics.yaml")
		require.NoError(t, err, "the golden metrics of %s", path)
		assert.Greater(t, max(info.Size(), points.Size()), int64(100), "spans or points of %s", path)
		return
	}
	assert.Fail(t, "no fixture", "%s in %s", patterns, testdata)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// testFiles is the text of a package's tests.
func testFiles(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	names, err := fs.Glob(os.DirFS(dir), "*_test.go")
	require.NoError(t, err)
	require.NotEmpty(t, names, "the tests of a parser, in %s", dir)
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		text.Write(b)
	}
	return text.String()
}

// checkTruth requires a generator that writes logs and truth, or a script that records the trainer.
func checkTruth(t *testing.T, root, format string, p proof) {
	t.Helper()
	if p.script != "" {
		assert.FileExists(t, filepath.Join(root, "tools", "record-trainers", p.script))
		return
	}
	args := p.gen
	if args == nil {
		args = []string{format}
	}
	logs := filepath.Join(t.TempDir(), "logs")
	var out strings.Builder
	cmd := commands.New()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(slices.Concat(args, []string{"--out", logs}))
	require.NoError(t, cmd.ExecuteContext(t.Context()), out.String())
	truths, err := fs.Glob(os.DirFS(logs), "truth*.json*")
	require.NoError(t, err)
	assert.NotEmpty(t, truths, "the ground truth beside the log")
}
