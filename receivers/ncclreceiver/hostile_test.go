package ncclreceiver

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
)

// keeping makes parts as newParts does, and sets *joiner to their joiner.
func keeping(joiner **collectives.Joiner[tail.Lent]) filereceiver.Make {
	return func(base *filereceiver.Receiver, c component.Config) (filereceiver.Parts, error) {
		parts, err := newParts(base, c)
		inner := parts.NewHandler
		parts.NewHandler = func(s *tail.Stream) tail.Handler {
			h := inner(s)
			*joiner = h.(*handler).r.joiner
			return h
		}
		return parts, err
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Logs that never repeat a name or number: their memory stays within bounds.
func TestHostile(t *testing.T) {
	for name, line := range map[string]func(i int) record{
		"communicators": func(i int) record {
			return record{comm: fmt.Sprintf("0x%x", i+1), rank: i % 4, of: 4, sn: 1, size: 4096, us: 9}
		},
		"communicators of one": func(i int) record { return record{comm: fmt.Sprintf("0x%x", i+1), of: 1, sn: 1, size: 4096, us: 9} },
		"ranks": func(i int) record {
			return record{rank: i % (collectives.MaxRank + 3), of: 1 << 20, sn: i, size: 4096, us: 9}
		},
		"large ranks": func(i int) record {
			return record{comm: fmt.Sprintf("0x%x", i+1), rank: collectives.MaxRank, of: 1 << 20, sn: 1, size: 4096, us: 9}
		},
		"hosts": func(i int) record {
			return record{host: fmt.Sprintf("host-%d", i), rank: i % 4, of: 4, sn: i / 4, size: 4096, us: 9}
		},
		"operations": func(i int) record {
			return record{coll: fmt.Sprintf("Op%d", i), rank: i % 4, of: 4, sn: 1, size: 4096, us: 9}
		},
		"sequences": func(i int) record { return record{rank: 0, of: 2, sn: i * 1_000_003, size: 4096, us: 9} },
	} {
		t.Run(name, func(t *testing.T) {
			n := 20_000
			if name == "large ranks" {
				n = 2_000 // each collective takes a megabyte
			}
			if testing.Short() {
				n /= 40
			}
			var b strings.Builder
			for i := range n {
				r := line(i)
				r.start = int64(i)*100 + 1
				b.WriteString(r.String() + "\n")
			}
			cfg := config(filereceivertest.Put(t, t.TempDir(), "all.log", b.String()))
			cfg.MaxStateBytes = collectives.MinState
			b.Reset()
			before := heap()
			var joiner *collectives.Joiner[tail.Lent]
			set, to := receivertest.NewNopSettings(metadata.Type), consumertest.NewNop()
			counts, err := filereceiver.ReadAll(t.Context(), set, cfg, keeping(&joiner), nil, to, to)
			require.NoError(t, err)
			assert.EqualValues(t, n, counts.Sent)
			after := heap()
			assert.Less(t, int64(after)-int64(before), int64(32<<20))
			runtime.KeepAlive(joiner)
		})
	}
}
