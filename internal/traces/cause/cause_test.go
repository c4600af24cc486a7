package cause

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/spans"
)

func TestAppend(t *testing.T) {
	late := Who{Rank: 9, HasRank: true, Host: "node-1", Operation: "AllReduce", Comm: "DP Group 0"}
	for _, tt := range []struct {
		part             string
		who              Who
		english, chinese string
	}{
		{spans.PartWait, late, "waiting for rank 9 on node-1 in AllReduce of DP Group 0", "等待 rank 9（node-1），于 AllReduce（DP Group 0）"},
		{spans.PartWait, Who{}, "waiting for late ranks", "等待迟到的 rank"},
		{spans.PartCollective, Who{Operation: "AllGather"}, "transferring in AllGather", "传输，于 AllGather"},
		{spans.PartCollective, Who{}, "transferring in collectives", "集合通信传输"},
		{spans.PartDataLoading, Who{}, "loading data", "加载数据"},
		{"something new", Who{}, "in something new", "something new"},
	} {
		assert.Equal(t, tt.english, string(Append(nil, tt.part, tt.who, false)))
		assert.Equal(t, tt.chinese, string(Append(nil, tt.part, tt.who, true)))
	}
}
