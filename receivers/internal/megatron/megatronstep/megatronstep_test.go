package megatronstep

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// out keeps the output of a parser.
type out struct {
	rec             record.Record
	models          []spans.Model
	records, begins int
}

func (o *out) Record() *record.Record { o.rec.Reset(); return &o.rec }
func (o *out) Emit(*record.Record)    { o.records++ }
func (o *out) Model(m *spans.Model)   { o.models = append(o.models, *m) }
func (*out) Prefix() *line.Prefix     { return &line.Prefix{} }
func (o *out) Restarted()             { o.begins++ }
func (*out) Retold()                  {}

const log = `  hidden_size ..................................... 1
------------------------ arguments ------------------------
  hidden_size ..................................... 4096
  moe_layer_freq .................................. [0, 0, 1, 1]
  group_query_attention ........................... False
  hybrid_attention_ratio .......................... 0.0
  hybrid_layer_pattern ............................ M-M*|-E/*E
  hybrid_override_pattern ......................... M-M*-E
  mamba_num_heads ................................. None
  mamba_state_dim ................................. 128
  moe_latent_size ................................. 1024
  mtp_hybrid_override_pattern ..................... None
  num_experts ..................................... None
  num_query_groups ................................ 1
  spec ............................................ None
  swiglu .......................................... True
-------------------- end of arguments ---------------------
 > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)
iteration 1/ 9 | lm loss: 2 |
 > padded vocab (size: 1) with 1 dummy tokens (new size: 2)
iteration 2/ 9 |
------------------------------------------
something else`

// The model is the dump's, also when the collector restarts anywhere within the dump.
func TestModel(t *testing.T) {
	var o out
	var state []byte
	verdicts := map[string]int{}
	for text := range strings.SplitSeq(log, "\n") {
		var p Parser
		if state != nil {
			p.Restore(state)
		}
		verdict, reason, mine := p.Line([]byte(text), &o)
		switch {
		case !mine:
			reason = "not mine"
		case verdict == tail.Record:
			reason = "record"
		case verdict == tail.Rejected:
			reason = "rejected " + reason
		}
		verdicts[reason]++
		state = p.Save()
	}
	m := spans.Model{HiddenSize: 4096, MoEPattern: "0011", SwiGLU: true, NoGroups: true, HybridPattern: "M-M*|-E/*E", MambaStateDim: 128, MoELatentSize: 1024}
	padded := m
	padded.PaddedVocabSize = 50304
	assert.Equal(t, []spans.Model{m, padded}, o.models)
	assert.Equal(t, 1, o.begins)
	assert.Equal(t, 1, o.records)
	assert.Equal(t, map[string]int{"not mine": 2, "arguments": 18, "record": 1, "rejected no_fields": 1, "rule": 1}, verdicts)
	assert.Nil(t, state, "nothing to keep once the job trains")
	var p Parser
	p.Restore([]byte("no json"))
	assert.Nil(t, p.Save())
}
