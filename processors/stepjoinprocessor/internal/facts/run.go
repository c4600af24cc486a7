// Package facts keeps what step_join needs of the spans that pass: small facts about leaves (stages, calls, collectives, parts of steps), and the groups that
// they may belong to. A group is a trace that has a window: a training step, a batch or a function of TransferQueue, an RPC pass. Which leaf of another trace
// belongs to which group is decided by [Run.Resolve], by containment in time.
package facts

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/pulse"
)

// Run is what is known of one run.
type Run struct {
	ID     string
	Groups map[pcommon.TraceID]*Group

	shares  map[pcommon.SpanID]Shares
	texts   map[string]uint32
	names   []string
	recent  [4]uint32 // texts that were asked for last
	turn    int
	fine    []bool // by the number of a name: its times have more than whole seconds
	sources map[string]*source
	wide    list     // groups that others may lie in by their time
	batches list     // batches of TransferQueue, and nothing else: none lies in another
	narrow  list     // groups of one process's time: a call of TransferQueue without an id
	fresh   []*Group // in none of the lists yet, or in one by an older time
	sorted  bool
	// sortings is how often its groups were put in order
	sortings int64
	done     []*Group                    // closed, in the order of closing
	Late     []*Group                    // closed, and what is unplaced came since
	bytes    int64                       // about
	plain    []plain                     // steps, while nothing else is known of the run
	mixed    bool                        // something else is
	known    map[pcommon.SpanID]struct{} // of leaves, while Careful
	leaves   []Leaf                      // of traces without a window, the first of them by start

	ordered int       // so many of the leaves are in order
	arrived []arrival // of leaves, in order of coming
	// Lost is the end of the latest leaf that was forgotten before its time: a window that begins before it may lack leaves. It is 0 where none was.
	// LostBy says why, as Group.Partial does.
	Lost   int64
	LostBy string
	// Sampled says that some of the run's collectives stand for several, and RecordOnly that those left out came all the same, only not to be drawn.
	Sampled, RecordOnly bool

	Ranks int64 // the most that a collective had; RanksAt: how many there were at a time
	// Trainer is whose log tells the steps, as spans.AttrSource, and World how many ranks it says there are; 0: it does not.
	Trainer string
	World   int64
	// Apart is by how many ns the clocks of its hosts differ, where its collectives say that they do.
	Apart int64
	// Parted says that parts of a step are known: all of its steps are broken down from then on.
	Parted bool
	Used   time.Time
	Since  time.Time // when it was first heard of
	// Partition is where in Kafka it comes from; empty: it comes from elsewhere. Gateways join its collectives, and say how far they have come.
	Partition string
	// Told is the end of the latest step that was told, of a run without steps of any window. What ended until Gone is not stored any more, and Entry is the
	// number of the entry of the journal that is being made.
	Told, Gone, Entry int64
	Fresh             bool // windows were closed that were not reported yet
	Pulse             pulse.Pulse

	processes map[Process]period
	marks     map[string]mark // by source of collectives
	takenOver bool            // it began before this process read of it, or another has read of it meanwhile
	unsettled bool            // and of its sources nothing was heard since

	communicator  map[uint32]int // in communicators, by the number of its id
	communicators []communicator
	together      map[int64]int64 // ranks of communicators of one size
}

// NewRun returns a run of which nothing is known.
func NewRun(id string) *Run {
	return &Run{
		ID: id, Groups: map[pcommon.TraceID]*Group{}, texts: map[string]uint32{"": 0}, names: []string{""}, sources: map[string]*source{},
		sorted: true,
	}
}
