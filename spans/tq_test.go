package spans

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestTQStage(t *testing.T) {
	seen := map[string]bool{}
	for s := range TQStages {
		assert.Equal(t, s, TQStageOf(pcommon.NewValueStr(s.String())))
		seen[s.String()] = true
	}
	assert.Len(t, seen, int(TQStages))
	assert.Equal(t, TQNone, TQStageOf(pcommon.NewValueStr("rollout")))
	assert.Equal(t, TQNone, TQStageOf(pcommon.NewValueInt(1)))
	assert.Empty(t, TQNone.String())
}
