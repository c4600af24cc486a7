//go:build e2e

package e2e

import (
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/trainbridge/trainbridge"
)

// compose has the tested parts of deploy/compose/compose.yaml.
type compose struct {
	Services map[string]*struct {
		Command, Volumes, Ports []string
		Environment             map[string]string
	}
	Volumes map[string]any
	mounted map[string]string // our files, by service and path in the container
}

// inContainer are the ports on which each service listens in its container: the image's defaults, or the file's settings.
var inContainer = map[string][]string{
	"trainbridge": {"4317", "4318", "8889", "8888"}, "jaeger": {"4317", "16686"}, "tempo": {"4317", "3200"}, "prometheus": {"9090"}, "grafana": {"3000"},
}

var withDefault = regexp.MustCompile(`\$\{\w+:[-?]([^}]*)\}`)

func listens(t *testing.T, addr string) {
	t.Helper()
	host, port, _ := strings.Cut(addr, ":")
	assert.Contains(t, inContainer[host], port, addr)
}

// Without Docker: the file follows the Compose specification, its mounts exist, Tempo, Prometheus and trainbridge accept their files, each address in it is one
// on which a service listens, and nothing is reachable from outside the host.
func TestCompose(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(repoRoot, "deploy/compose")
	text, err := os.ReadFile(filepath.Join(dir, "compose.yaml"))
	require.NoError(t, err)
	var all any
	require.NoError(t, yaml.Unmarshal(text, &all))
	// schema/compose-spec.json of compose-spec/compose-spec @170098ba, Apache 2.0
	schema, err := jsonschema.NewCompiler().Compile("testdata/compose/compose-spec.json")
	require.NoError(t, err)
	require.NoError(t, schema.Validate(all))
	c := &compose{mounted: map[string]string{}}
	require.NoError(t, yaml.Unmarshal(text, c))
	assert.Equal(t, slices.Sorted(maps.Keys(inContainer)), slices.Sorted(maps.Keys(c.Services)))
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			from, to, _ := strings.Cut(withDefault.ReplaceAllString(v, "$1"), ":")
			to, _, _ = strings.Cut(to, ":")
			switch _, volume := c.Volumes[from]; {
			case strings.HasPrefix(from, "."):
				c.mounted[name+":"+to] = filepath.Join(dir, from)
				_, err := os.Stat(filepath.Join(dir, from))
				require.NoError(t, err)
			case !volume:
				assert.Equal(t, "/logs", to, "a directory of the host that is not ours")
			}
		}
		for _, p := range s.Ports {
			host, port, _ := strings.Cut(p, ":")
			assert.Equal(t, "127.0.0.1", host, p)
			_, to, _ := strings.Cut(port, ":")
			listens(t, name+":"+to)
		}
	}
	t.Run("trainbridge", c.checkTrainbridge)
	t.Run("tempo", c.checkTempo)
	t.Run("prometheus", c.checkPrometheus)
	t.Run("grafana", c.checkGrafana)
}

func (c *compose) checkTrainbridge(t *testing.T) {
	s := c.Services["trainbridge"]
	var env []string
	for name, value := range s.Environment {
		assert.Regexp(t, "(?m)^#   "+name+" ", strings.SplitN(trainbridge.DefaultConfig, "\nreceivers:", 2)[0], "a variable of the configuration")
		env = append(env, name+"="+strings.ReplaceAll(withDefault.ReplaceAllString(value, "$1"), "/var/lib/trainbridge", t.TempDir()))
	}
	run(t, env, trainbridgeBin(t), append([]string{"validate"}, s.Command...)...)
	listens(t, s.Environment["TRAINBRIDGE_OTLP_ENDPOINT"])
	listens(t, strings.TrimPrefix(s.Command[0], "--set=exporters.otlp_acked/tempo.endpoint="))
	for _, port := range inContainer["trainbridge"] {
		assert.Regexp(t, `0\.0\.0\.0(:|, port: )`+port, strings.Join(s.Command, "\n"))
	}
}

func (c *compose) checkTempo(t *testing.T) {
	file := c.mounted["tempo:/etc/tempo.yaml"]
	run(t, nil, tempoBin(t), "-config.file="+file, "-config.verify=true")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, port := range inContainer["tempo"] {
		assert.Regexp(t, `(0\.0\.0\.0:|http_listen_port: )`+port, string(text))
	}
}

func (c *compose) checkPrometheus(t *testing.T) {
	root := t.TempDir()
	for at, from := range c.mounted {
		if to, ok := strings.CutPrefix(at, "prometheus:/etc/prometheus/"); ok {
			file, err := os.ReadFile(from)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(root, to), file, 0o600))
		}
	}
	out, err := exec.CommandContext(t.Context(), promtoolBin(t), "check", "config", filepath.Join(root, "prometheus.yaml")).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "1 rule files found")
	var config struct {
		Scrapes []struct {
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	file, err := os.ReadFile(filepath.Join(root, "prometheus.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(file, &config))
	assert.ElementsMatch(t, []string{"trainbridge:8889", "trainbridge:8888"}, config.Scrapes[0].Static[0].Targets)
}

func (c *compose) checkGrafana(t *testing.T) {
	s := c.Services["grafana"]
	read := func(name string, into any) {
		file, err := os.ReadFile(filepath.Join(c.mounted["grafana:/etc/grafana/provisioning"], name))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(file, into))
	}
	var sources struct {
		List []struct {
			UID, Type, URL string
			JSON           struct {
				Exemplars []struct {
					Name string
					To   string `yaml:"datasourceUid"`
				} `yaml:"exemplarTraceIdDestinations"`
			} `yaml:"jsonData"`
		} `yaml:"datasources"`
	}
	read("datasources/trainbridge.yaml", &sources)
	require.Len(t, sources.List, 2)
	for _, of := range sources.List {
		at, err := url.Parse(s.Environment[strings.Trim(of.URL, "${}")])
		require.NoError(t, err)
		assert.Equal(t, of.Type, at.Hostname())
		listens(t, at.Host)
	}
	assert.Equal(t, sources.List[1].UID, sources.List[0].JSON.Exemplars[0].To)
	assert.Equal(t, "trace_id", sources.List[0].JSON.Exemplars[0].Name)
	var providers struct {
		List []struct{ Options struct{ Path string } } `yaml:"providers"`
	}
	read("dashboards/trainbridge.yaml", &providers)
	path := providers.List[0].Options.Path
	assert.FileExists(t, filepath.Join(c.mounted["grafana:"+path], "runs.json"))
	assert.Equal(t, path+"/runs.json", s.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
}
