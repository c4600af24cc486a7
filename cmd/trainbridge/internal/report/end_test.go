package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
)

// Each kind of error end is told in Chinese too.
func TestChineseEnds(t *testing.T) {
	kinds := []string{postmortem.KindSIGKILL, postmortem.KindSIGTERM, postmortem.KindNotUnderstood, postmortem.KindStuck}
	for _, c := range events.Claims {
		switch c.Class {
		case events.ClassDisk, events.ClassSummary, events.ClassTeardown, events.ClassFatal: // told as another kind
			continue
		}
		if c.Class.Fatal() {
			kinds = append(kinds, string(c.Class))
		}
	}
	for _, kind := range kinds {
		assert.NotEmpty(t, chineseEnds[kind].what, kind)
	}
	assert.Equal(t, "显存耗尽（rank 7）（主机 node-3）。GPU memory ran out on rank 7.", chineseEnd(&postmortem.End{
		Kind: string(events.ClassCUDAOOM), Ranks: []int64{7}, Hosts: []string{"node-3"}, Sentence: "GPU memory ran out on rank 7.",
	}))
}
