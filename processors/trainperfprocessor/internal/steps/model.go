package steps

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/devices"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/domain"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/flops"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/hfconfig"
	"github.com/trainbridge/trainbridge/spans"
)

var errHFConfig = errors.New("'train::model::hf_config' cannot be used: " +
	"give the path of a Hugging Face config.json, or describe the model under 'train::model'")

// maxHFConfig bounds the size of a config.json, By.
const maxHFConfig = 1 << 20

// Start completes the model of the config from the Hugging Face config.json that it names (keys of the config itself come first), and with SwiGLU for
// architectures that have it. An error: the file cannot be read, or FLOPs of the model cannot be counted.
func (d *Domain) Start() error {
	m := &d.cfg.Model
	if m.HFConfig != "" {
		read, err := readHFConfig(m.HFConfig)
		if err != nil {
			return err
		}
		to := reflect.ValueOf(&read).Elem() // spans.Model has one field for each key
		for i := range to.NumField() {
			if f := reflect.ValueOf(m.Model).Field(i); to.Field(i).CanSet() && !f.IsZero() {
				to.Field(i).Set(f)
			}
		}
		m.Model = read
		if key := flops.Missing(&m.Model); key != "" {
			return fmt.Errorf("%w: 'train::model::%s' %w", errHFConfig, key, errModelMissing)
		}
		if reason := flops.Unsupported(&m.Model); reason != "" {
			return fmt.Errorf("%w: %w (%s)", errHFConfig, errModelUncounted, reason)
		}
	}
	switch m.Type {
	case "llama", "qwen", "mixtral", "deepseek":
		m.SwiGLU = true // SwiGLU is part of these architectures
	}
	return nil
}

// readHFConfig reads the model in a Hugging Face config.json.
func readHFConfig(path string) (spans.Model, error) {
	file, err := os.Open(path)
	if err != nil {
		return spans.Model{}, fmt.Errorf("%w: %w", errHFConfig, err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxHFConfig))
	if err != nil {
		return spans.Model{}, fmt.Errorf("%w: %w", errHFConfig, err)
	}
	read, err := hfconfig.Parse(raw)
	if err != nil {
		return spans.Model{}, fmt.Errorf("%w: %s: %w", errHFConfig, path, err)
	}
	return read, nil
}

// resource is the state shared by the steps of one resource.
type resource struct {
	device      string          // the model of the devices, by the log
	host        string          // with models and detected, only where neither config nor log names a device
	models      *devices.Models // of the known GPUs
	detected    string          // the model of the host's GPUs
	rank, world int64           // 0: unknown (rank 0 may count as none: the rank distinguishes nothing here)
	model       spans.Model
	known       bool        // the FLOPs of a sample are counted: sample is above 0
	unsupported string      // the part of the model without a formula
	sample      flops.Count // of one sample
	other       flops.Count // of one sample, by Megatron's formula with the other convention of attention; by another formula: sample

	// The inputs and results of the last look-ups: of peakOf, and of dataParallelSizes (dps for dpsWorld ranks; −1: none yet).
	peak, dpsWorld float64
	peakDevice     string
	peakKnown      bool
	dps            []float64
}

// resource returns what the steps of a resource have in common: the device, the model (from the config, else from the log, with facts of the run from either),
// and the FLOPs of one sample by the configured formula. If a model cannot be counted, the reason is logged once.
func (d *Domain) resource(at *domain.At) resource {
	res := resource{device: at.DeviceModel, dpsWorld: -1, rank: at.Rank.N, world: at.WorldSize.N}
	if d.cfg.Device == "" && res.device == "" {
		res.host, res.models = at.Host, d.devices.Known()
		res.detected = res.models.Of(res.host)
	}
	config := &d.cfg.Model.Model
	found, ok := spans.ModelOf(at.Attributes)
	res.model = found
	if hasArchitecture(config) {
		res.model, ok = *config, true
	}
	fillRun(&res.model, config, &found)
	if !ok {
		return res // the model has facts of the run at most
	}
	m := &res.model
	if key := flops.Missing(m); key != "" {
		d.warnOnce(key, "No FLOPs are counted: the description of the model lacks a key. Set it under 'train::model'.", zap.String("key", key))
		return res
	}
	if d.cfg.Formula == formulaMegatron {
		res.unsupported = flops.Unsupported(m)
	}
	if res.unsupported != "" {
		d.warnOnce(res.unsupported, "No FLOPs are counted: the model has what Megatron's formula leaves out. What the log reports is kept.",
			zap.String("unsupported", res.unsupported))
		return res
	}
	switch d.cfg.Formula {
	case formulaFlagScale:
		res.sample = flops.FlagScale(m, flops.Merged)
		res.other = res.sample
	case formulaDouzi:
		res.sample = flops.FlagScale(m, flops.Douzi)
		res.other = res.sample
	default:
		causal := d.cfg.Attention == attentionCausal
		res.sample, res.other = flops.Megatron(m, causal), flops.Megatron(m, !causal)
	}
	res.known = positive(res.sample.Model())
	return res
}

// maxWarned bounds how many reasons are remembered as said.
const maxWarned = 100

// warnOnce logs a warning, once for each reason.
func (d *Domain) warnOnce(reason, text string, field zap.Field) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.warned[reason] && len(d.warned) < maxWarned {
		d.warned[reason] = true
		d.logger.Warn(text, field)
	}
}

// hasArchitecture reports whether a description has keys of the architecture, not only facts of the run.
func hasArchitecture(m *spans.Model) bool {
	a := *m
	a.Type, a.SeqLength, a.GlobalBatchSize, a.WorldSize, a.DataParallelSize, a.PipelineParallel, a.Recompute, a.FP8, a.FP4 = "", 0, 0, 0, 0, 0, "", "", ""
	return a != spans.Model{}
}

// fillRun sets the facts of the run in m: from the first description, or where absent from the second.
func fillRun(m, first, second *spans.Model) {
	m.Type = cmp.Or(first.Type, second.Type)
	m.SeqLength = cmp.Or(first.SeqLength, second.SeqLength)
	m.GlobalBatchSize = cmp.Or(first.GlobalBatchSize, second.GlobalBatchSize)
	m.WorldSize = cmp.Or(first.WorldSize, second.WorldSize)
	m.DataParallelSize = cmp.Or(first.DataParallelSize, second.DataParallelSize)
	m.PipelineParallel = cmp.Or(first.PipelineParallel, second.PipelineParallel)
	m.Recompute = cmp.Or(first.Recompute, second.Recompute)
	m.FP8, m.FP4 = cmp.Or(first.FP8, second.FP8), cmp.Or(first.FP4, second.FP4)
}
