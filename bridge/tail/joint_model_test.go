package tail

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

var (
	jointSeed  = flag.Uint64("tail.jointseed", 0, "run the model test of joint records with this seed only")
	jointSeeds = flag.Uint64("tail.jointseeds", 1500, "number of seeds of the model test of joint records")
)

// jointModel is the model of files, with ranks that speak of records in files of their own.
type jointModel struct {
	*model
	r       *jointRig
	ranks   int
	said    []int // the next record of each rank, by file
	skip    []map[int]bool
	crashes int
	copies  bool // files are truncated by copying, or written again
	shared  bool // lines are of several records
	whole   map[string][]string // texts of all lines of each record
	left    map[string]int      // how often each left, whole
}

// speak is the next line of a rank: mostly of the next record, sometimes of one that it left out before.
func (m *jointModel) speak(name string) string {
	rank := int(name[0] - 'a')
	m.ids++
	next := func() string {
		for k := range m.skip[rank] {
			if m.rnd.IntN(2) == 0 {
				delete(m.skip[rank], k)
				return fmt.Sprintf("k%05d", k)
			}
		}
		for m.rnd.IntN(5) == 0 {
			m.skip[rank][m.said[rank]] = true
			m.said[rank]++
		}
		m.said[rank]++
		return fmt.Sprintf("k%05d", m.said[rank]-1)
	}
	var keys []string
	switch n := m.rnd.IntN(20); {
	case n == 0:
		return fmt.Sprintf("# %05d", m.ids)
	case n == 1:
		return fmt.Sprintf("! %05d", m.ids)
	case n == 2:
		return fmt.Sprintf("= %05d", m.ids)
	case n < 6 && m.shared:
		keys = []string{next(), next()}
	default:
		keys = []string{next()}
	}
	text := fmt.Sprintf("%s %d %05d %s;", strings.Join(keys, ","), rank, m.ids, strings.Repeat("x", m.rnd.IntN(600)))
	for _, k := range keys {
		m.whole[k] = append(m.whole[k], text)
	}
	return text
}
