package stepjoinprocessor

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	file, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	storage := component.MustNewID("state_storage")
	for id, want := range map[string]*Config{
		"step_join": createDefaultConfig().(*Config),
		"step_join/all": {
			Wait: 30 * time.Second, WaitLimit: 5 * time.Minute, Keep: time.Hour, Tolerance: 5 * time.Millisecond, MaxBytes: 134_217_728, Slowest: 5,
			Windows: []string{"train_batch", "epoch *"}, Leaves: map[string]string{"next_batch": "data_loading", "ckpt*": "checkpoint"}, Storage: &storage,
		},
	} {
		t.Run(id, func(t *testing.T) {
			sub, err := file.Sub(id)
			require.NoError(t, err)
			cfg := createDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			require.NoError(t, cfg.(*Config).Validate())
			assert.Equal(t, want, cfg)
		})
	}
}

// Each error names the key, and a valid value.
func TestInvalidConfig(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"'wait' is 0s: set a time above 0, such as 10s":                                                  func(c *Config) { c.Wait = 0 },
		"'wait_limit' is 9s, below 'wait' (10s): set a longer time, such as 2m":                          func(c *Config) { c.WaitLimit = 9 * time.Second },
		"'keep' is 5s, below 'wait' (10s): set a time that is longer than the longest step, such as 15m": func(c *Config) { c.Keep = 5 * time.Second },
		"'tolerance' is -1ms: set 0 or more, such as 1ms":                                                func(c *Config) { c.Tolerance = -time.Millisecond },
		"'max_bytes' is 1000: set at least 1048576 (1 MiB)":                                              func(c *Config) { c.MaxBytes = 1000 },
		"'slowest' is -1: set 0 to 100":                                                                  func(c *Config) { c.Slowest = -1 },
		"'slowest' is 101: set 0 to 100":                                                                 func(c *Config) { c.Slowest = 101 },
		`'windows' has "": name spans, with * for any text`:                                              func(c *Config) { c.Windows = []string{""} },
		`'windows' has "[": name spans, with * for any text`:                                             func(c *Config) { c.Windows = []string{"["} },
		`'leaves' has "[": name spans, with * for any text`:                                              func(c *Config) { c.Leaves = map[string]string{"[": "get"} },
		`'leaves' says that "x" is "y": take one of [checkpoint evaluation collective.wait collective rpc.serialize rpc.send rpc.receive rpc.server ` +
			`rpc.deserialize rpc.unattributed compute get put data_loading]`: func(c *Config) { c.Leaves = map[string]string{"x": "y"} },
	} {
		cfg := createDefaultConfig().(*Config)
		change(cfg)
		require.EqualError(t, cfg.Validate(), want)
	}
	cfg := createDefaultConfig().(*Config)
	cfg.Wait, cfg.MaxBytes = -1, 0
	assert.Len(t, cfg.Validate().(interface{ Unwrap() []error }).Unwrap(), 2, "all errors are said at once")
	require.ErrorContains(t, confmap.NewFromStringMap(map[string]any{"wait": 10}).Unmarshal(createDefaultConfig()), "wait")
}

func TestReadmeSaysEveryDefault(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	defaults := reflect.ValueOf(createDefaultConfig()).Elem()
	for f := range defaults.Type().Fields() {
		row := "| `" + f.Tag.Get("mapstructure") + "` | "
		switch v := defaults.FieldByIndex(f.Index).Interface().(type) {
		case time.Duration:
			row += strings.Replace(v.String(), "m0s", "m", 1)
		case int, int64:
			row += fmt.Sprint(v)
		default:
			row += "none"
		}
		assert.Contains(t, string(readme), row+" |")
	}
}
