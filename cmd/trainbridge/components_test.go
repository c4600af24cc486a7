package main

import (
	"go/parser"
	"go/token"
	"os"
	"path"
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

func readManifest(t *testing.T) manifest {
	t.Helper()
	raw, err := os.ReadFile("../../builder-config.yaml")
	require.NoError(t, err)
	var m manifest
	require.NoError(t, yaml.Unmarshal(raw, &m))
	return m
}

// imports returns the packages that a Go file imports and whose last path element ends like one of the suffixes.
func imports(t *testing.T, file string, suffixes ...string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	require.NoError(t, err)
	var out []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		for _, s := range suffixes {
			if base := path.Base(p); strings.HasSuffix(base, s) && base != s {
				out = append(out, p)
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestManifestEqualsComponents(t *testing.T) {
	m := readManifest(t)
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
			require.True(t, ok, "builder-config.yaml: %q has no version", c.GoMod)
			assert.Equal(t, required[name], ver, "builder-config.yaml and go.mod ask for different versions of %s", name)
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
		file     string
		suffixes []string
	}{
		{"receivers", m.Receivers, "components.go", []string{"receiver"}},
		{"processors", m.Processors, "components.go", []string{"processor"}},
		{"exporters", m.Exporters, "components.go", []string{"exporter"}},
		{"connectors", m.Connectors, "components.go", []string{"connector"}},
		{"extensions", m.Extensions, "components.go", []string{"extension", "storage"}},
		{"providers", m.Providers, "main.go", []string{"provider"}},
	} {
		want := imports(t, kind.file, kind.suffixes...)
		assert.Equal(t, want, packages(kind.manifest), kind.name)
	}
	assert.Equal(t, version, m.Dist.Version)
	assert.Equal(t, settings(new(checker)).BuildInfo.Description, m.Dist.Description)
	assert.True(t, m.Dist.CgoEnabled, "NVML needs cgo")
	assert.Equal(t, []string{module + " => ../.."}, m.Replaces)
}

// Every factory that is imported must also be registered, under the type name that the README and the configs use.
func TestComponentTypes(t *testing.T) {
	f, err := components()
	require.NoError(t, err)
	for want, has := range map[string]func(string) bool{
		"tq_trace flagscale train_log zmq_rpc nccl nvml otlp file_log kafka":                                has(f.Receivers),
		"train_perf memory_limiter resource_detection transform filter tail_sampling redaction":             has(f.Processors),
		"otlp_acked otlp_grpc otlp_http debug file prometheus prometheus_remote_write kafka load_balancing": has(f.Exporters),
		"train_metrics span_metrics forward":                                                                has(f.Connectors),
		"state_storage file_storage health_check basicauth bearertokenauth zpages":                          has(f.Extensions),
	} {
		for name := range strings.FieldsSeq(want) {
			assert.True(t, has(name), "component %s is not in the distribution", name)
		}
	}
}

func has[T any](factories map[component.Type]T) func(string) bool {
	return func(name string) bool {
		_, ok := factories[component.MustNewType(name)]
		return ok
	}
}
