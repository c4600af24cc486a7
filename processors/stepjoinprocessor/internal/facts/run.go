// Package facts keeps the facts that step_join needs of passing spans: about leaves (stages, calls, collectives, parts of steps), and about groups. A group is
// a trace with a window: a training step, a batch or a function of TransferQueue, an RPC pass. [Resolver.Resolve] assigns leaves of other traces to groups, by
// containment in time.
package facts

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/pulse"
)

// Run is the facts of one run.
type Run struct {
	ID     string
	Groups map[pcommon.TraceID]*Group

	shares  map[pcommon.SpanID]Shares // of leaves with the flag Shares
	texts   map[string]uint32         // the numbers of texts
	names   []string                  // the texts, by number
	recent  [4]uint32                 // texts requested last
	turn    int                       // number of texts put into recent
	fine    []bool                    // by the number of a name: some times have more than whole seconds
	sources map[string]*source        // by scope
	wide    list                      // groups that may contain others by time
	batches list                      // batches of TransferQueue, and nothing else: none lies in another
	narrow  list                      // groups of one process's time: a TransferQueue call without an id
	fresh   []*Group                  // in none of the lists yet
	sorted  bool
	// sortings is the number of sorts.
	sortings int64
	done     []*Group                    // closed, in the order of closing
	Late     []*Group                    // closed, with new unplaced spans since
	bytes    int64                       // about
	plain    []plain                     // steps, while nothing else is known of the run
	mixed    bool                        // something else is
	known    map[pcommon.SpanID]struct{} // of leaves, with FindRepeats
	leaves   []Leaf                      // of traces without a window, the sorted leaves first

	ordered int       // number of sorted leaves
	arrived []arrival // of leaves, in order of coming
	// Lost: facts that end up to then may be lost, and a window that begins before may lack some; 0: none are. LostBy is the reason, as in Group.Partial.
	Lost   int64
	LostBy string
	// Sampled: some collectives of the run represent several; RecordOnly: those left out came all the same, but are not drawn.
	Sampled, RecordOnly bool

	Ranks int64 // the most in a collective; RanksAt: the number at a time
	// Trainer is the writer of the steps' log, as in spans.AttrSource, and World the number of ranks in the log; 0: not logged.
	Trainer string
	World   int64
	// Apart is the clock offset between hosts in ns, if stated by collectives.
	Apart int64
	// Parted: parts of a step are known, so all later steps get a breakdown.
	Parted bool
	Used   time.Time
	Since  time.Time // time of the first fact, or of Misses
	// Partition is the Kafka partition of the run; empty: not from Kafka. Gateways join the run's collectives, and send watermarks.
	Partition string
	// Opened: the run's span has come, which a collector sends before the first step of a log; or the last process knew the run.
	Opened bool
	// Told is the end of the latest closed step, in a run without steps of the latest closed window. Facts that ended before Gone are not stored any more, and
	// Entry is the number of the journal's current entry.
	ClosedUntil, Gone, Entry int64
	Fresh                    bool // some closed windows were not reported yet
	Pulse                    pulse.Pulse

	processes map[Process]period
	marks     map[string]mark // by source of collectives
	takenOver bool            // this process did not read the partition from the run's beginning, or another has read some of it meanwhile
	unsettled bool            // and Settle has not judged that yet

	communicator  map[uint32]int // in communicators, by the number of the id
	communicators []communicator
	together      map[int64]int64 // ranks of communicators of one size
}

// NewRun returns a run without facts.
func NewRun(id string) *Run {
	return &Run{
		ID: id, Groups: map[pcommon.TraceID]*Group{}, texts: map[string]uint32{"": 0}, names: []string{""}, sources: map[string]*source{},
		sorted: true,
	}
}
