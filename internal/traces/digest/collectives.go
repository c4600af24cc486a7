package digest

import (
	"cmp"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// Collective sums up the collectives of an operation, in a communicator or in all. Times and bandwidths are of the completed ones.
type Collective struct {
	ID           string // of the communicator, "": not known, or all
	Communicator string // its name, else its id, else "-"; name and id if several share a name; "": all
	Operation    string

	Count, Incomplete int
	Took              Values       // s, from the first arrival on
	Algorithm, Bus    Values       // By/s, recomputed
	BusOver           Series       // By/s, by start in ms since 1970
	Late              Values       // s, of the last rank behind the first
	Cost              Total        // s x ranks waiting for the last rank
	Last              map[Who]int  // how often each was last
	Sizes             map[int]Size // by the power of two: Sizes[i] are the messages of at least 2^i and less than 2^(i+1) By
	Errors, Retries   float64
	Hangs             int
	Slowest           Top[Instance] // by duration
	Latest            Top[Instance] // by the lateness of the last rank
	// Records are the ranks' records, one by one: each rank's duration, and the bandwidth in its log. A script that reads the log line by line has the same
	// values.
	Records struct{ Took, Bandwidth Values } // s; By/s
	Verdicts
}

// Size are the messages of at least From and less than twice as many By.
type Size struct {
	From      int64
	Count     int64
	Bytes     float64
	Took, Bus Total // s, By/s
}

// Instance is a collective.
type Instance struct {
	Communicator, Operation string
	Sequence                view.Int
	Size, Took, Bus         float64 // By, s, By/s
	Last                    view.LateRank
}

// Communicator is a communicator with its number of collectives.
type Communicator struct {
	ID, Name    string // Name: else the id, else "-"
	Size        int64  // largest number of ranks logged
	Collectives int64
}

// Rank sums up the records of a rank of a communicator.
type Rank struct {
	Communicator    string // its id, else its name
	Rank            int64
	Host            string
	Records         int64
	Last            int64       // number of collectives with the rank last
	Late            Total       // s behind the first, of all records with a lateness
	Cost            Total       // s x ranks waiting for the rank
	Waited          Total       // s x ranks, from the first arrival on, of the collectives with the rank last
	Straggler       int64       // number of collectives with the rank as a straggler
	Latest          Top[string] // its records, by lateness; the operation of each
	Errors, Retries float64
	Over            Lateness
	Until           int64 // ns, of its last record
	Missed          int64 // collectives without a record of the rank since then
}

// Host sums up the lateness of a host's ranks.
type Host struct {
	Name   string
	Waited Total // s x ranks of other hosts that waited for a rank of the host, from the first arrival on; Waited.Count is the number of ranks' records
	Others int64 // number of records of its ranks that waited for a rank of another host
}

// Link connects two ranks, or two hosts.
type Link struct {
	Source, Destination string
	Bytes               float64 // By, as the logs' records add up; NaN: not said
	Bandwidth           float64 // By/s, the latest; NaN: not said
	Hot, Slow           int64   // number of collectives with the link as hot, as slow
	at                  pcommon.Timestamp
}

// Collectives are the collectives.
type Collectives struct {
	by            table[collectiveKey, Collective]
	operations    table[string, Collective]
	communicators table[[2]string, Communicator]
	ranks         table[rankKey, Rank]
	hosts         table[string, Host]
	links, nodes  table[[2]string, Link]
	clock         timeAxis
	recent        recentCollectives
	orphans       []orphan // of the current message
	v             view.Collective
	rankView      view.Rank
}

// collectiveKey identifies the collectives summed up together.
type collectiveKey struct{ id, communicator, operation string }

// rankKey identifies a rank: communicators number their ranks apart.
type rankKey struct {
	communicator string
	rank         int64
}

// addCollective adds the root span of a collective: to the sums of its communicator and operation, and of its operation in all communicators, to the
// communicator, to the ranks that were late or have no record, and to the links. A collective that was not joined is also the record of its only rank.
func (d *Digest) addCollective(s ptrace.Span, res *resource) {
	cs := &d.Collectives
	v := &cs.v
	v.Read(s)
	k := collectiveKey{v.CommID, CommunicatorName(v), v.Operation}
	g := cs.by.findOrMake(k, collectiveKey{"", Other, Other}, mostDistributed, func(k collectiveKey) (collectiveKey, *Collective) {
		k = collectiveKey{shortText(k.id), shortText(k.communicator), shortText(k.operation)}
		return k, &Collective{ID: k.id, Communicator: k.communicator, Operation: k.operation}
	})
	all := cs.operations.findOrMake(v.Operation, Other, mostDistributed, func(name string) (string, *Collective) {
		return g.Operation, &Collective{Operation: g.Operation}
	})
	c := cs.communicators.findOrMake([2]string{v.CommID, k.communicator}, [2]string{"", Other}, mostDistributed, func([2]string) ([2]string, *Communicator) {
		return [2]string{g.ID, g.Communicator}, &Communicator{ID: g.ID, Name: g.Communicator}
	})
	c.Collectives++
	c.Size = max(c.Size, v.CommSize.N)
	d.countVerdicts(s, &v.Head, res, &g.Verdicts, &all.Verdicts)
	last := v.Last.Rank
	for _, of := range [...]*Collective{g, all} {
		of.add(s, v, res, g)
	}
	// For the records of the ranks, which come next.
	comm := cmp.Or(g.ID, g.Communicator)
	of := recentCollective{communicator: comm, g: g, all: all, transfer: v.TransferDuration, late: math.NaN()}
	if last.OK && !v.Incomplete && !v.Mismatch {
		of.late, of.last, of.host = v.Last.Late, last.N, shortText(v.Last.Host)
	}
	cs.recent.put(s.SpanID(), of)
	// Ranks and links that the collective names.
	if last.OK && !v.Incomplete {
		r := cs.rankOf(comm, last.N)
		r.Last++
		r.Cost.Add(v.Last.Cost)
	}
	for i := range v.Stragglers.Len() {
		if n := v.Stragglers.Int(i); n.OK {
			cs.rankOf(comm, n.N).Straggler++
		}
	}
	for i := range v.Missing.Len() {
		if n := v.Missing.Int(i); n.OK {
			cs.rankOf(comm, n.N).Missed++
		}
	}
	for i := range v.LinksHot.Len() {
		if l := cs.linkNamed(v.LinksHot.Text(i)); l != nil {
			l.Hot++
		}
	}
	for i := range v.LinksSlow.Len() {
		if l := cs.linkNamed(v.LinksSlow.Text(i)); l != nil {
			l.Slow++
		}
	}
	if v.Rank.OK { // not joined: its own record
		cs.addRecord(s, &recentCollective{communicator: comm, g: g, all: all, transfer: math.NaN(), late: math.NaN()}, v.Rank.N, res, &view.Rank{
			Late: math.NaN(), Errors: v.Errors, Retries: v.Retries, BandwidthReported: v.BandwidthReported,
		})
	}
}

// add adds a collective. named has the names to show, of the communicator and operation, also when g sums over all communicators.
func (g *Collective) add(s ptrace.Span, v *view.Collective, res *resource, named *Collective) {
	g.Count++
	g.Errors += orZero(v.Errors)
	g.Retries += orZero(v.Retries)
	if v.Hang {
		g.Hangs++
	}
	if v.Incomplete {
		g.Incomplete++
		return
	}
	took := CollectiveDuration(s, v)
	g.Took.Add(took)
	g.Algorithm.Add(v.BandwidthAlgorithm)
	g.Bus.Add(v.BandwidthBus)
	g.BusOver.Add(int64(s.StartTimestamp())/1e6, v.BandwidthBus)
	g.Late.Add(v.Last.Late)
	g.Cost.Add(v.Last.Cost)
	if v.MessageSize >= 0 && v.MessageSize < 1<<62 {
		power := bits.Len64(max(1, uint64(v.MessageSize))) - 1 // of the highest bit
		size := g.Sizes[power]
		size.Count++
		size.Bytes += v.MessageSize
		size.Took.Add(took)
		size.Bus.Add(v.BandwidthBus)
		if g.Sizes == nil {
			g.Sizes = map[int]Size{}
		}
		g.Sizes[power] = size
	}
	if v.Last.Rank.OK {
		g.countLast(&v.Last)
	}
	for _, of := range [...]*Instance{g.Slowest.add(mostShown, took, s, res), g.Latest.add(mostShown, v.Last.Late, s, res)} {
		if of != nil {
			*of = Instance{named.Communicator, named.Operation, v.Sequence, v.MessageSize, took, v.BandwidthBus, v.Last}
			of.Last.Host = shortText(of.Last.Host)
		}
	}
}

// countLast counts the rank that came last. Beyond Most ranks, further ones count as Other.
func (g *Collective) countLast(v *view.LateRank) {
	who := Who{v.Rank.N, v.Host}
	if n, ok := g.Last[who]; ok {
		g.Last[who] = n + 1
		return
	}
	who.Host = shortText(who.Host)
	if len(g.Last) >= Most {
		who = Who{-1, Other}
	}
	if g.Last == nil {
		g.Last = map[Who]int{}
	}
	g.Last[who]++
}

// LastMostOften returns the rank that was last most often (of several the lowest, then by host), and how often; "": unknown.
func (g *Collective) LastMostOften() (who string, times int) {
	var most Who
	for w, n := range g.Last {
		if n > times || n == times && cmp.Or(cmp.Compare(w.Rank, most.Rank), cmp.Compare(w.Host, most.Host)) < 0 {
			most, times = w, n
		}
	}
	if times == 0 {
		return "", 0
	}
	return most.String(), times
}

// Who is a rank.
type Who struct {
	Rank int64
	Host string // "": not known
}

// String returns for example "rank 3 on gpu-node-0".
func (w Who) String() string {
	text := "rank " + strconv.FormatInt(w.Rank, 10)
	if w.Host != "" {
		text += " on " + w.Host
	}
	return text
}

// rankRecord adds the record of a rank, s, to the sums of the rank and of the collective, the parent of s. It returns false, and adds nothing, if the
// collective is not among the recent ones: the caller may try again when the collective has come. A record that does not tell its rank is left out: then the
// result is true, too, as another try would not help.
func (d *Collectives) rankRecord(s ptrace.Span, res *resource) (found bool) {
	col, found := d.recent.get(s.ParentSpanID())
	if !found {
		return false
	}
	v := &d.rankView
	v.Read(s)
	if v.Rank.OK {
		d.addRecord(s, &col, v.Rank.N, res, v)
	}
	return true
}

// orphan is a rank's record whose collective has not come yet: in a message the rank's resource may stand before the collective's.
type orphan struct {
	span ptrace.Span
	res  resource
}

// adoptOrphans adds the records whose collectives came later in the same message, and drops all others. Jobs.Batch calls it at the end of each message.
func (d *Collectives) adoptOrphans() {
	for i := range d.orphans {
		d.rankRecord(d.orphans[i].span, &d.orphans[i].res)
	}
	clear(d.orphans)
	d.orphans = d.orphans[:0]
}

// addRecord adds the record of rank n of a collective to the sums that col points at. It only reads col itself, which may be a copy.
func (d *Collectives) addRecord(s ptrace.Span, col *recentCollective, n int64, res *resource, v *view.Rank) {
	r := d.rankOf(col.communicator, n)
	if r.Host == "" {
		r.Host = shortText(cmp.Or(v.Host, res.Host))
	}
	r.Records++
	r.Until, r.Missed = max(r.Until, int64(s.EndTimestamp())), 0 // Missed counts from here on
	r.Errors += orZero(v.Errors)
	r.Retries += orZero(v.Retries)
	if !v.Incomplete && v.State == "" { // completed: only the other states are written
		took := spanSeconds(s)
		if v.Last && !math.IsNaN(col.transfer) { // the span of the last rank is drawn from the first arrival on
			took = col.transfer
		}
		for _, c := range [...]*Collective{col.g, col.all} {
			if took > 1e-9 { // spans.Batch makes a record without duration 1 ns long
				c.Records.Took.Add(took)
			}
			c.Records.Bandwidth.Add(v.BandwidthReported)
		}
	}
	if !math.IsNaN(v.Late) {
		d.addWait(col, cmp.Or(v.Host, res.Host), col.late-v.Late)
		r.Late.Add(v.Late)
		if operation := r.Latest.add(mostShown, v.Late, s, res); operation != nil {
			*operation = col.g.Operation
		}
		d.clock.addLate(d, &r.Over, int64(s.StartTimestamp()), v.Late)
	}
}

// addWait adds the time that a rank on a host waited, s, to the rank that came last and, if that rank is on another host, to its host. NaN or negative:
// unknown.
func (d *Collectives) addWait(c *recentCollective, host string, waited float64) {
	if !(waited >= 0) { // or NaN: not known
		return
	}
	d.rankOf(c.communicator, c.last).Waited.Add(waited)
	if c.host == "" || host == "" {
		return
	}
	if host != c.host {
		d.hostOf(c.host).Waited.Add(waited)
		d.hostOf(host).Others++
	}
}

// hostOf returns a host by name, made if absent.
func (d *Collectives) hostOf(name string) *Host {
	return d.hosts.findOrMake(name, Other, Most, func(k string) (string, *Host) {
		k = shortText(k)
		return k, &Host{Name: k}
	})
}

// Hosts returns the hosts by name.
func (d *Collectives) Hosts() []*Host {
	return d.hosts.rows(func(a, b *Host) int { return cmp.Compare(a.Name, b.Name) })
}

// rankOf returns a rank of a communicator, made if absent.
func (d *Collectives) rankOf(communicator string, n int64) *Rank {
	return d.ranks.findOrMake(rankKey{communicator, n}, rankKey{Other, -1}, Most, func(k rankKey) (rankKey, *Rank) {
		return k, &Rank{Communicator: k.communicator, Rank: k.rank}
	})
}

// linkNamed returns the link with a name like "0→8", made if absent; nil: another form of text.
func (d *Collectives) linkNamed(name string) *Link {
	from, to, ok := strings.Cut(name, "→")
	if !ok {
		return nil
	}
	return linkOf(&d.links, from, to)
}

// linkOf returns a link between ranks or hosts, made if absent.
func linkOf(in *table[[2]string, Link], from, to string) *Link {
	return in.findOrMake([2]string{from, to}, [2]string{Other, Other}, Most, func(k [2]string) ([2]string, *Link) {
		k = [2]string{shortText(k[0]), shortText(k[1])}
		return k, &Link{Source: k[0], Destination: k[1], Bytes: math.NaN(), Bandwidth: math.NaN()}
	})
}

// Rows returns the collectives by communicator and operation. If several communicators share a name, the id is added to the name.
func (d *Collectives) Rows() []*Collective {
	ids := map[string]map[string]bool{} // by the communicator's name
	for k := range d.by.by {
		if ids[k.communicator] == nil {
			ids[k.communicator] = map[string]bool{}
		}
		ids[k.communicator][k.id] = true
	}
	for k, g := range d.by.by {
		g.Communicator = k.communicator
		if len(ids[k.communicator]) > 1 && k.id != "" {
			g.Communicator += " " + k.id
		}
	}
	return d.by.rows(func(a, b *Collective) int {
		return cmp.Or(cmp.Compare(a.Communicator, b.Communicator), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.ID, b.ID))
	})
}

// Operations returns the collectives by operation, of all communicators.
func (d *Collectives) Operations() []*Collective {
	return d.operations.rows(func(a, b *Collective) int { return cmp.Compare(a.Operation, b.Operation) })
}

// Communicators returns all communicators, the largest first.
func (d *Collectives) Communicators() []*Communicator {
	return d.communicators.rows(func(a, b *Communicator) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}

// Ranks returns the ranks by communicator and number.
func (d *Collectives) Ranks() []*Rank {
	return d.ranks.rows(func(a, b *Rank) int {
		return cmp.Or(cmp.Compare(a.Communicator, b.Communicator), cmp.Compare(a.Rank, b.Rank))
	})
}

// Links returns the links between ranks, in the order of their numbers.
func (d *Collectives) Links() []*Link { return d.links.rows(orderLinks) }

// Nodes returns the links between hosts. The bandwidth of a link is the mean over the links between ranks on the two hosts, as far as the host of each rank is
// known.
func (d *Collectives) Nodes() []*Link {
	hosts := map[string]string{} // by rank; "": not known, or several
	for k, r := range d.ranks.by {
		number := strconv.FormatInt(k.rank, 10)
		if host, ok := hosts[number]; ok && host != r.Host { // communicators count their ranks apart
			hosts[number] = ""
			continue
		}
		hosts[number] = r.Host
	}
	between := map[[2]string]*Total{} // By/s, by source and destination
	for _, l := range d.links.by {
		k := [2]string{hosts[l.Source], hosts[l.Destination]}
		if k[0] == "" || k[1] == "" || math.IsNaN(l.Bandwidth) {
			continue
		}
		if between[k] == nil {
			between[k] = new(Total)
		}
		between[k].Add(l.Bandwidth)
	}
	for k, all := range between {
		linkOf(&d.nodes, k[0], k[1]).Bandwidth = all.Mean()
	}
	return d.nodes.rows(orderLinks)
}

// orderLinks orders links by source, then by destination.
func orderLinks(a, b *Link) int {
	return cmp.Or(compareNumbers(a.Source, b.Source), compareNumbers(a.Destination, b.Destination))
}

// compareNumbers orders two numeric texts by number, other texts by their characters.
func compareNumbers(a, b string) int {
	n, errA := strconv.Atoi(a)
	m, errB := strconv.Atoi(b)
	if errA == nil && errB == nil {
		return cmp.Compare(n, m)
	}
	return cmp.Compare(a, b)
}

// CommunicatorName returns the name of a collective's communicator, else its id, else "-".
func CommunicatorName(v *view.Collective) string {
	name := v.CommName
	if name == "unknown" { // NCCL Inspector's name of an unnamed one
		name = ""
	}
	return cmp.Or(name, v.CommID, "-")
}

// CollectiveDuration returns the time of a collective from the first arrival on, s.
func CollectiveDuration(s ptrace.Span, v *view.Collective) float64 {
	if math.IsNaN(v.Duration) {
		return spanSeconds(s)
	}
	return v.Duration
}
