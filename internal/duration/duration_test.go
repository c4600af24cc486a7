package duration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/duration"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type Common struct {
	PollInterval time.Duration `mapstructure:"poll_interval"`
}

type config struct {
	Common  `mapstructure:",squash"`
	Nested  Common                          `mapstructure:"nested"`
	Buckets []time.Duration                 `mapstructure:"buckets"`
	By      map[string]time.Duration        `mapstructure:"by"`
	Timeout *time.Duration                  `mapstructure:"timeout"`
	Maybe   configoptional.Optional[Common] `mapstructure:"maybe"`
	Size    int                             `mapstructure:"size"`
	Name    string                          `mapstructure:"name"`
}

func (c *config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

func TestUnmarshal(t *testing.T) {
	for _, tt := range []struct {
		yaml string
		want string // the error, "" for none
	}{
		{`poll_interval: 200ms`, ""},
		{`poll_interval: 0`, ""},
		{`poll_interval: "0"`, ""},
		{`poll_interval:`, ""},
		{`{size: 200, name: "200"}`, ""},
		{`poll_interval: 200`, "'poll_interval': 200 has no unit: write 200ms, 200s or 200m"},
		{`poll_interval: "200"`, "'poll_interval': 200 has no unit"},
		{`poll_interval: -1`, "'poll_interval': -1 has no unit"},
		{`poll_interval: 1.5`, "'poll_interval': 1.5 has no unit"},
		{`timeout: 30`, "'timeout': 30 has no unit"},
		{`nested: {poll_interval: 5}`, "'nested::poll_interval': 5 has no unit"},
		{`maybe: {poll_interval: 5}`, "'maybe::poll_interval': 5 has no unit"},
		{`maybe: {poll_interval: 5s}`, ""},
		{`buckets: [20us, 5]`, "'buckets::1': 5 has no unit"},
		{`by: {a: 5}`, "'by::a': 5 has no unit"},
		{`poll_interval: soon`, "poll_interval"}, // the decoder's own error
		{`unknown: 5`, "unknown"},
	} {
		t.Run(tt.yaml, func(t *testing.T) {
			raw, err := confmap.NewRetrievedFromYAML([]byte(tt.yaml))
			require.NoError(t, err)
			conf, err := raw.AsConf()
			require.NoError(t, err)
			cfg := new(config)
			err = conf.Unmarshal(cfg)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
	conf := confmap.NewFromStringMap(map[string]any{"poll_interval": "200ms", "buckets": []any{"20us"}})
	cfg := new(config)
	require.NoError(t, conf.Unmarshal(cfg))
	assert.Equal(t, config{Common: Common{200 * time.Millisecond}, Buckets: []time.Duration{20 * time.Microsecond}}, *cfg)
}
