package perfetto

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	// maxLanes bounds the remembered lanes of a track. If no lane has room, the least recently used is forgotten for a new lane.
	maxLanes = 32
	// maxDepth bounds the nesting of slices of a lane.
	maxDepth = 16
)

// track is a visible track with its lanes.
type track struct {
	parent uint64 // the uuid of its process
	name   string
	peers  string // of a communicator: its name, shared by the tracks of its ranks
	lanes  []lane
	clock  clock // of a rank without a host, as written last
}

// lane is a track of Perfetto. Perfetto pairs the begin and end events of a lane by time, then by order in the file. So a slice is begun on a lane only if no
// earlier written slice of the lane begins later or ends within the slice.
type lane struct {
	uuid uint64
	used uint64 // when, counted in slices
	last int64  // no slice may begin before: ns since the Unix epoch
	open []slice
}

// slice is an open slice of a lane.
type slice struct {
	end int64
	id  pcommon.SpanID
}

// place puts a slice on a lane where it has room: the lane on which its parent is the innermost open slice, else an idle lane; nil: no lane has room.
func (t *track) place(id, parent pcommon.SpanID, start, end int64) *lane {
	free := -1 // the first idle lane
	for i := range t.lanes {
		l := &t.lanes[i]
		if start < l.last { // a slice written before begins later, or ended later
			continue
		}
		l.pop(start)
		n := len(l.open)
		if n == 0 {
			if free < 0 {
				free = i
			}
			continue
		}
		if top := &l.open[n-1]; n < maxDepth && !parent.IsEmpty() && top.id == parent && end <= top.end {
			l.push(id, start, end)
			return l
		}
	}
	if free < 0 {
		return nil
	}
	l := &t.lanes[free]
	l.push(id, start, end)
	return l
}

// pop takes out the slices that end before a time. No slice may begin before their ends, because the lane forgets them.
func (l *lane) pop(until int64) {
	n := len(l.open)
	for n > 0 && l.open[n-1].end <= until {
		n--
		l.last = max(l.last, l.open[n].end)
	}
	l.open = l.open[:n]
}

// push opens a slice, the innermost of the lane.
func (l *lane) push(id pcommon.SpanID, start, end int64) {
	l.last = start
	l.open = append(l.open, slice{end, id})
}

// add adds a lane with its first slice. A track with maxLanes forgets the lane that was not used for the longest.
func (t *track) add(uuid uint64, id pcommon.SpanID, start, end int64) *lane {
	var l *lane
	if len(t.lanes) < maxLanes {
		t.lanes = append(t.lanes, lane{uuid: uuid})
		l = &t.lanes[len(t.lanes)-1]
	} else {
		l = &t.lanes[0]
		for i := range t.lanes {
			if t.lanes[i].used < l.used {
				l = &t.lanes[i]
			}
		}
		*l = lane{uuid: uuid, open: l.open[:0]}
	}
	l.push(id, start, end)
	return l
}
