package trainperfprocessor

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/trainbridge/trainbridge/spans"
)

func TestLoadConfig(t *testing.T) {
	file, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for id, want := range map[string]*Config{
		"train_perf": createDefaultConfig().(*Config),
		"train_perf/all": {
			VerdictStatus: true, TQ: TQConfig{
				ComputeShareGood: 0.9, OverheadElevated: 0.1, OverheadHigh: 0.2, ThroughputGood: 1000, ThroughputLow: 50,
				Fluctuation: FluctuationConfig{Threshold: 0.3, Window: 50, MinSamples: 10},
			}, Train: TrainConfig{
				Model: ModelConfig{HFConfig: "model/config.json", Model: spans.Model{
					Type: "deepseek", NumLayers: 61, HiddenSize: 7168, AttentionHeads: 128, QueryGroups: 128, KVChannels: 128, FFNHiddenSize: 18432, SeqLength: 4096, PaddedVocabSize: 129280, VocabSize: 129279,
					GlobalBatchSize: 512, WorldSize: 64, DataParallelSize: 8, SwiGLU: true, MTPLayers: 1, OutputGate: true,
					NumExperts: 256, RouterTopK: 8, MoEFFN: 2048, SharedExpertFFN: 2048, MoELayerFreq: 1, FirstDense: 3,
					MLA: true, QLoRARank: 1536, KVLoRARank: 512, QKHeadDim: 128, QKPosDim: 64, VHeadDim: 128, Recompute: "full",
				}},
				Formula: "flagscale", Attention: "full", Recompute: "selective", Device: "NVIDIA H800", PeakFlops: 989e12, WorldSize: 128,
				FlopsDisagreement: 0.1, MFULow: 0.4, Window: 200, MinSamples: 50, ThroughputDrop: 0.3, Slowdown: 0.2, LossSpike: 8,
			}, ZMQ: ZMQConfig{SerializeHigh: 0.2, TransportHigh: 0.5, CallsHigh: 10, ExpectedTransport: "tcp"},
			NCCL: NCCLConfig{LateTransfers: 2.5, LateMin: 300 * time.Microsecond, BandwidthDisagreement: 0.1},
		},
		"train_perf/never": {TQ: defaultTQConfig(), Train: defaultTrainConfig()},
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

func TestValidate(t *testing.T) {
	nan := math.NaN()
	for name, tt := range map[string]struct {
		change func(*TQConfig)
		want   error
	}{
		"percent instead of share": {func(c *TQConfig) { c.ComputeShareGood = 80 }, errComputeShare},
		"share NaN":                {func(c *TQConfig) { c.ComputeShareGood = nan }, errComputeShare},
		"overhead zero":            {func(c *TQConfig) { c.OverheadHigh = 0 }, errOverhead},
		"elevated NaN":             {func(c *TQConfig) { c.OverheadElevated = nan }, errOverhead},
		"elevated above high":      {func(c *TQConfig) { c.OverheadElevated = 0.5 }, errOverheadOrder},
		"throughput negative":      {func(c *TQConfig) { c.ThroughputLow = -1 }, errThroughput},
		"throughput swapped":       {func(c *TQConfig) { c.ThroughputLow = 600 }, errThroughput},
		"throughput NaN":           {func(c *TQConfig) { c.ThroughputGood = nan }, errThroughput},
		"fluctuation NaN":          {func(c *TQConfig) { c.Fluctuation.Threshold = nan }, errFluctuation},
		"window too large":         {func(c *TQConfig) { c.Fluctuation.Window = maxWindow + 1 }, errFluctuationCount},
		"more samples than window": {func(c *TQConfig) { c.Fluctuation.MinSamples = 101 }, errFluctuationCount},
		"one sample":               {func(c *TQConfig) { c.Fluctuation.MinSamples = 1 }, errFluctuationCount},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			tt.change(&cfg.TQ)
			assert.ErrorIs(t, cfg.Validate(), tt.want)
		})
	}
	t.Run("all at once", func(t *testing.T) {
		err := (&Config{}).Validate()
		for _, want := range []error{
			errComputeShare, errOverhead, errThroughput, errFluctuation, errFluctuationCount,
			errFormula, errAttention, errDisagreement, errTrainWindow, errDrop, errSlowdown, errLossSpike,
		} {
			require.ErrorIs(t, err, want)
		}
	})
}

func TestValidateTrain(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, tt := range map[string]struct {
		change func(*TrainConfig)
		want   error
		key    string
	}{
		"formula":              {func(c *TrainConfig) { c.Formula = "palm" }, errFormula, "'train::formula'"},
		"attention":            {func(c *TrainConfig) { c.Attention = "half" }, errAttention, "'train::attention'"},
		"recompute":            {func(c *TrainConfig) { c.Recompute = "some" }, errRecompute, "'train::recompute'"},
		"peak in TFLOP/s":      {func(c *TrainConfig) { c.PeakFlops = 989 }, errPeakFlops, "'train::peak_flops'"},
		"peak negative":        {func(c *TrainConfig) { c.PeakFlops = -1 }, errPeakFlops, "'train::peak_flops'"},
		"peak NaN":             {func(c *TrainConfig) { c.PeakFlops = nan }, errPeakFlops, "'train::peak_flops'"},
		"peak infinite":        {func(c *TrainConfig) { c.PeakFlops = inf }, errPeakFlops, "'train::peak_flops'"},
		"world size":           {func(c *TrainConfig) { c.WorldSize = -8 }, errWorldSize, "'train::world_size'"},
		"disagreement":         {func(c *TrainConfig) { c.FlopsDisagreement = nan }, errDisagreement, "'train::flops_disagreement'"},
		"MFU in percent":       {func(c *TrainConfig) { c.MFULow = 30 }, errMFULow, "'train::mfu_low'"},
		"MFU NaN":              {func(c *TrainConfig) { c.MFULow = nan }, errMFULow, "'train::mfu_low'"},
		"window too large":     {func(c *TrainConfig) { c.Window = maxWindow + 1 }, errTrainWindow, "'train::window'"},
		"window too small":     {func(c *TrainConfig) { c.Window = 9 }, errTrainWindow, "'train::window'"},
		"more samples":         {func(c *TrainConfig) { c.MinSamples = 101 }, errTrainWindow, "'train::min_samples'"},
		"drop":                 {func(c *TrainConfig) { c.ThroughputDrop = 1 }, errDrop, "'train::throughput_drop'"},
		"slowdown":             {func(c *TrainConfig) { c.Slowdown = 0 }, errSlowdown, "'train::slowdown'"},
		"loss":                 {func(c *TrainConfig) { c.LossSpike = inf }, errLossSpike, "'train::loss_spike'"},
		"model negative":       {func(c *TrainConfig) { c.Model.RouterTopK = -1 }, errModelNegative, "'train::model::moe_router_topk'"},
		"model without layers": {func(c *TrainConfig) { c.Model.HiddenSize = 4096 }, errModelMissing, "'train::model::num_layers'"},
		"model not counted":    {func(c *TrainConfig) { c.Model.Model = aquila; c.Model.HybridPattern = "MD" }, errModelUncounted, "(hybrid_layer_pattern MD)"},
		"model recompute":      {func(c *TrainConfig) { c.Model.Recompute = "all" }, errModelRecompute, "'train::model::recompute_granularity'"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			tt.change(&cfg.Train)
			err := cfg.Validate()
			require.ErrorIs(t, err, tt.want)
			assert.ErrorContains(t, err, tt.key)
		})
	}
	// Facts of the run alone describe no model: that may come with the log.
	cfg := createDefaultConfig().(*Config)
	cfg.Train.Model.GlobalBatchSize, cfg.Train.Model.Type = 512, "aquila"
	require.NoError(t, cfg.Validate())
	// With a config.json, what is missing is known at the start only.
	cfg.Train.Model.HiddenSize, cfg.Train.Model.HFConfig = 4096, "config.json"
	assert.NoError(t, cfg.Validate())
}

func TestValidateZMQ(t *testing.T) {
	nan := math.NaN()
	for name, tt := range map[string]struct {
		change func(*ZMQConfig)
		want   error
		key    string
	}{
		"serialize in percent": {func(c *ZMQConfig) { c.SerializeHigh = 30 }, errZMQShare, "'zmq::serialize_high'"},
		"serialize negative":   {func(c *ZMQConfig) { c.SerializeHigh = -0.1 }, errZMQShare, "'zmq::serialize_high'"},
		"serialize NaN":        {func(c *ZMQConfig) { c.SerializeHigh = nan }, errZMQShare, "'zmq::serialize_high'"},
		"transport in percent": {func(c *ZMQConfig) { c.TransportHigh = 1.01 }, errZMQShare, "'zmq::transport_high'"},
		"transport NaN":        {func(c *ZMQConfig) { c.TransportHigh = nan }, errZMQShare, "'zmq::transport_high'"},
		"calls":                {func(c *ZMQConfig) { c.CallsHigh = -1 }, errZMQCalls, "'zmq::calls_high'"},
		"expected transport":   {func(c *ZMQConfig) { c.ExpectedTransport = "IPC" }, errZMQTransport, "'zmq::expected_transport'"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			tt.change(&cfg.ZMQ)
			err := cfg.Validate()
			require.ErrorIs(t, err, tt.want)
			assert.ErrorContains(t, err, tt.key)
		})
	}
	cfg := createDefaultConfig().(*Config)
	cfg.ZMQ = ZMQConfig{SerializeHigh: 1, TransportHigh: 1}
	assert.NoError(t, cfg.Validate())
}

func TestValidateNCCL(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, tt := range map[string]struct {
		change func(*NCCLConfig)
		want   error
		key    string
	}{
		"transfers negative":    {func(c *NCCLConfig) { c.LateTransfers = -1 }, errNCCLTransfers, "'nccl::late_transfers'"},
		"transfers NaN":         {func(c *NCCLConfig) { c.LateTransfers = nan }, errNCCLTransfers, "'nccl::late_transfers'"},
		"transfers infinite":    {func(c *NCCLConfig) { c.LateTransfers = inf }, errNCCLTransfers, "'nccl::late_transfers'"},
		"minimum negative":      {func(c *NCCLConfig) { c.LateMin = -1 }, errNCCLLateMin, "'nccl::late_min'"},
		"disagreement negative": {func(c *NCCLConfig) { c.BandwidthDisagreement = -0.1 }, errNCCLDisagreement, "'nccl::bandwidth_disagreement'"},
		"disagreement NaN":      {func(c *NCCLConfig) { c.BandwidthDisagreement = nan }, errNCCLDisagreement, "'nccl::bandwidth_disagreement'"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			tt.change(&cfg.NCCL)
			err := cfg.Validate()
			require.ErrorIs(t, err, tt.want)
			assert.ErrorContains(t, err, tt.key)
		})
	}
	cfg := createDefaultConfig().(*Config)
	cfg.NCCL = NCCLConfig{}
	assert.NoError(t, cfg.Validate())
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
