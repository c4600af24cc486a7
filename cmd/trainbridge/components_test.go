package main

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const module = "github.com/trainbridge/trainbridge"

type manifest struct {
	Dist struct {
		Version     string `yaml:"version"`
		CgoEnabled  bool   `yaml:"cgo_enabled"`
		Description string `yaml:"description"`
	} `yaml:"dist"`
	Receivers  []manifestModule `yaml:"receivers"`
	Processors []manifestModule `yaml:"processors"`
	Exporters  []manifestModule `yaml:"exporters"`
	Connectors []manifestModule `yaml:"connectors"`
	Extensions []manifestModule `yaml:"extensions"`
	Providers  []manifestModule `yaml:"providers"`
	Replaces   []string         `yaml:"replaces"`
}

type manifestModule struct {
	GoMod  string `yaml:"gomod"`
	Import string `yaml:"import"`
}

func readManifest(t *testing.T, file string) manifest {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", file))
	require.NoError(t, err)
	var m manifest
	require.NoError(t, yaml.Unmarshal(raw, &m))
	return m
}

// imports returns the packages imported by Go files whose last path element ends in one of the suffixes.
func imports(t *testing.T, files []string, suffixes ...string) []string {
	t.Helper()
	var out []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range f.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			for _, s := range suffixes {
				if base := path.Base(p); strings.HasSuffix(base, s) && base != s {
					out = append(out, p)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestManifestEqualsComponents(t *testing.T) {
	for file, components := range map[string][]string{
		"builder-config.yaml": {"components.go"},
		"builder-full.yaml":   {"components.go", "components_full.go"},
	} {
		t.Run(file, func(t *testing.T) { compareManifest(t, file, components) })
	}
}

func compareManifest(t *testing.T, file string, components []string) {
	t.Helper()
	m := readManifest(t, file)
	goMod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	mod, err := modfile.Parse("go.mod", goMod, nil)
	require.NoError(t, err)
	required := map[string]string{module: "v" + version}
	for _, r := range mod.Require {
		required[r.Mod.Path] = r.Mod.Version
	}

	packages := func(modules []manifestModule) []string {
		var out []string
		for _, c := range modules {
			name, ver, ok := strings.Cut(c.GoMod, " ")
			require.True(t, ok, "%s: %q has no version", file, c.GoMod)
			assert.Equal(t, required[name], ver, "%s and go.mod ask for different versions of %s", file, name)
			if c.Import == "" {
				c.Import = name
			}
			out = append(out, c.Import)
		}
		slices.Sort(out)
		return out
	}
	for _, kind := range []struct {
		name     string
		manifest []manifestModule
		files    []string
		suffixes []string
	}{
		{"receivers", m.Receivers, components, []string{"receiver"}},
		{"processors", m.Processors, components, []string{"processor"}},
		{"exporters", m.Exporters, components, []string{"exporter"}},
		{"connectors", m.Connectors, components, []string{"connector"}},
		{"extensions", m.Extensions, components, []string{"extension", "storage"}},
		{"providers", m.Providers, []string{"main.go"}, []string{"provider"}},
	} {
		want := imports(t, kind.files, kind.suffixes...)
		assert.Equal(t, want, packages(kind.manifest), kind.name)
	}
	assert.Equal(t, version, m.Dist.Version)
	assert.Equal(t, settings(new(configChecker)).BuildInfo.Description, m.Dist.Description)
	assert.True(t, m.Dist.CgoEnabled, "NVML needs cgo")
	assert.Equal(t, []string{module + " => ../.."}, m.Replaces)
}

// Every imported factory must also be registered, under the type name of the README and the configs. With the build tag full, the full build's factories too.
func TestComponentTypes(t *testing.T) {
	f, err := components()
	require.NoError(t, err)
	for want, has := range map[string]func(string) bool{
		"tq_trace flagscale train_log zmq_rpc nccl run_events nvml otlp kafka":     has(f.Receivers),
		"train_perf memory_limiter redaction":                                      has(f.Processors),
		"otlp_acked otlp_grpc otlp_http debug file prometheus kafka":               has(f.Exporters),
		"train_metrics train_verdicts span_metrics forward":                        has(f.Connectors),
		"state_storage file_storage health_check basicauth bearertokenauth zpages": has(f.Extensions),
	} {
		for name := range strings.FieldsSeq(want) {
			assert.True(t, has(name), "component %s is not in the distribution", name)
		}
	}
	for kind, has := range map[string]func(string) bool{"receivers": has(f.Receivers), "processors": has(f.Processors), "exporters": has(f.Exporters)} {
		for _, name := range onlyFull[kind] {
			assert.Equal(t, full.receivers != nil, has(name), "component %s", name)
		}
	}
}

// onlyFull equals the imports of the full build: packages are named like the type and the kind of their component.
func TestOnlyFull(t *testing.T) {
	for kind, names := range onlyFull {
		suffix := strings.TrimSuffix(kind, "s")
		var want []string
		for _, name := range names {
			want = append(want, strings.ReplaceAll(name, "_", "")+suffix)
		}
		var got []string
		for _, p := range imports(t, []string{"components_full.go"}, suffix) {
			got = append(got, path.Base(p))
		}
		assert.ElementsMatch(t, want, got, kind)
	}
}

func has[T any](factories map[component.Type]T) func(string) bool {
	return func(name string) bool {
		_, ok := factories[component.MustNewType(name)]
		return ok
	}
}
