package trainperfprocessor

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/collectives"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/rpc"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/steps"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/tq"
	"github.com/trainbridge/trainbridge/spans"
)

func TestLoadConfig(t *testing.T) {
	file, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for id, want := range map[string]*Config{
		"train_perf": createDefaultConfig().(*Config),
		"train_perf/all": {
			VerdictStatus: true, TQ: tq.Config{
				OverheadElevated: 0.1, OverheadHigh: 0.2, ThroughputLow: 50,
				Fluctuation: tq.FluctuationConfig{Threshold: 0.3, Window: 50, MinSamples: 10},
			}, Train: steps.Config{
				Model: steps.ModelConfig{HFConfig: "model/config.json", Model: spans.Model{
					Type: "deepseek", NumLayers: 61, HiddenSize: 7168, AttentionHeads: 128, QueryGroups: 128, KVChannels: 128, FFNHiddenSize: 18432,
					SeqLength: 4096, PaddedVocabSize: 129280, VocabSize: 129279,
					GlobalBatchSize: 512, WorldSize: 64, DataParallelSize: 8, SwiGLU: true, MTPLayers: 1, OutputGate: true,
					NumExperts: 256, RouterTopK: 8, MoEFFN: 2048, SharedExpertFFN: 2048, MoELayerFreq: 1, FirstDense: 3,
					MLA: true, QLoRARank: 1536, KVLoRARank: 512, QKHeadDim: 128, QKPosDim: 64, VHeadDim: 128, Recompute: "full",
				}},
				Formula: "flagscale", Attention: "full", Recompute: "selective", Device: "NVIDIA H800", PeakFlops: 989e12, WorldSize: 128,
				FlopsDisagreement: 0.1, MFULow: 0.4, Window: 200, MinSamples: 50, ThroughputDrop: 0.3, Slowdown: 0.2, LossSpike: 8,
			}, ZMQ: rpc.Config{SerializeHigh: 0.2, TransportHigh: 0.5, CallsHigh: 10, ExpectedTransport: "tcp"},
			NCCL: collectives.Config{LateTransfers: 2.5, LateMin: 300 * time.Microsecond, BandwidthDisagreement: 0.1},
		},
		"train_perf/never": {TQ: tq.DefaultConfig(), Train: steps.DefaultConfig()},
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

// TestReadmeNamesEveryKey.
func TestReadmeNamesEveryKey(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var check func(prefix string, of reflect.Type)
	check = func(prefix string, of reflect.Type) {
		for f := range of.Fields() {
			tag, _, squash := strings.Cut(f.Tag.Get("mapstructure"), ",")
			switch {
			case !f.IsExported():
			case squash: // by their own names, in a table of their own
				for key := range f.Type.Fields() {
					if name := key.Tag.Get("mapstructure"); name != "" && name != "-" {
						assert.Contains(t, string(readme), "`"+name+"`")
					}
				}
			case f.Type.Kind() == reflect.Struct:
				check(prefix+tag+"::", f.Type)
			default:
				assert.Contains(t, string(readme), "| `"+prefix+tag+"` |")
			}
		}
	}
	check("", reflect.TypeFor[Config]())
}
