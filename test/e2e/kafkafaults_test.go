//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/porttest"
	"github.com/trainbridge/trainbridge/spans"
)

// The agent and the gateway are killed together, again and again while the logs grow: nothing is lost, repeats are identical, and no span's parent is missing.
// RPC logs are left out: without a clock, their times differ when read again.
func TestKafkaKilled(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "8", "--steps", "50", "--seed", "3", "--fault-every", "4", "--faults", "data_loading,get,put")
	require.NoError(t, os.RemoveAll(filepath.Join(tr.dir, "zmq")))
	bed := tr.through(t, startKafka(t, 4))
	bed.gateway.up(t)
	bed.agent.up(t)
	const parts = 5
	for part := range parts {
		bed.grow(part, parts)
		lasts(time.Duration(part) * 300 * time.Millisecond)
		if part > 0 && part < parts-1 {
			bed.agent.kill()
			bed.gateway.kill()
			bed.agent.up(t)
			bed.gateway.up(t)
		}
	}
	bed.check()
}

// Agent and gateway may start before the broker and its topics exist, and exit on request while it is down.
func TestKafkaLate(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "8", "--steps", "20", "--seed", "5")
	require.NoError(t, os.RemoveAll(filepath.Join(tr.dir, "zmq")))
	bed := tr.through(t, newKafka(t, freeAddr(t), 4))
	bed.forgets = true
	restart := func() {
		began := time.Now()
		bed.agent.stop(t)
		t.Logf("the agent ends within %v", time.Since(began))
		bed.gateway.stop(t)
		t.Logf("agent and gateway end within %v", time.Since(began))
		bed.agent.up(t)
		bed.gateway.up(t)
	}
	bed.gateway.up(t)
	bed.agent.up(t)
	bed.grow(0, 4)
	bed.agent.waits(t, 1)
	restart()
	bed.agent.waits(t, 1)
	bed.broker.up(t)
	bed.grow(1, 4)
	// If the broker is killed in its first seconds, franz-go does not abort requests in flight, and the agent exits by lastStop of main.go.
	lasts(3 * time.Second)
	bed.grow(2, 4)
	bed.broker.kill()
	bed.grow(3, 4)
	lasts(3 * time.Second)
	restart()
	bed.broker.up(t)
	bed.check()
}

// cable is a process's connection to the broker, until cut.
type cable struct {
	island string // the network namespace of the process; "": none of its own
	proxy  *proxy // instead
}

// cabled starts a broker and lays a cable for each process, in network namespaces of their own. Without permission for namespaces, only the first has a cable,
// a proxy.
func cabled(tb testing.TB, partitions, processes int) (*broker, []cable) {
	tb.Helper()
	cables := make([]cable, processes)
	net := fmt.Sprintf("198.%d.%d", 18+os.Getpid()>>8&1, os.Getpid()&255) // for tests of networks (RFC 2544)
	host := net + ".1"
	err := ip("addr", "add", host+"/32", "dev", "lo")
	if err == nil {
		tb.Cleanup(func() { _ = ip("addr", "del", host+"/32", "dev", "lo") })
	}
	for i := range cables {
		if err == nil {
			cables[i].island = fmt.Sprintf("tb%d-%d", os.Getpid(), i)
			tb.Cleanup(func() { _ = ip("netns", "del", cables[i].island) })
			err = lay(cables[i].island, fmt.Sprintf("%s.%d", net, 2*i+2), fmt.Sprintf("%s.%d", net, 2*i+3))
		}
	}
	if err == nil {
		b := newKafka(tb, fmt.Sprintf("%s:%d", host, porttest.On(tb, host)), partitions)
		b.up(tb)
		return b, cables
	}
	tb.Logf("no networks of their own here, so that what is cut is a proxy: %v", err)
	behind := freeAddr(tb)
	cables = make([]cable, processes)
	cables[0].proxy = startProxy(tb, behind)
	b := newKafka(tb, freeAddr(tb), partitions, behind, cables[0].proxy.addr)
	b.up(tb)
	return b, cables
}

// lay makes a network namespace with a cable to ours, with these addresses at its ends.
func lay(island, ours, theirs string) error {
	for _, args := range [][]string{
		{"netns", "add", island},
		{"link", "add", island, "type", "veth", "peer", "name", "eth0", "netns", island},
		{"addr", "add", ours + "/31", "dev", island},
		{"link", "set", island, "up"},
		{"-n", island, "link", "set", "lo", "up"},
		{"-n", island, "addr", "add", theirs + "/31", "dev", "eth0"},
		{"-n", island, "link", "set", "eth0", "up"},
		{"-n", island, "route", "add", "default", "via", ours},
		{"netns", "exec", island, "true"},
	} {
		if err := ip(args...); err != nil {
			return err
		}
	}
	return nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// up starts a process at the end of the cable. Its ports are reachable only from its namespace.
func (c *cable) up(tb testing.TB, a *collector) {
	tb.Helper()
	if c.proxy != nil {
		a.env = append(a.env, "TRAINBRIDGE_KAFKA="+c.proxy.addr)
	}
	if c.island != "" {
		a.bin, a.args = "ip", slices.Concat([]string{"netns", "exec", c.island, a.bin}, a.args)
	}
	a.launch(tb)
	eventually(tb, func() error {
		if !a.logged("Everything is ready") {
			return fmt.Errorf("the agent is not ready:\n%s", a.tail(5))
		}
		return nil
	})
}

// cut cuts the cable: packets are dropped silently. (A proxy breaks connections.)
func (c *cable) cut(tb testing.TB) {
	tb.Helper()
	if c.island == "" {
		c.proxy.cut()
		return
	}
	require.NoError(tb, ip("link", "set", c.island, "down"))
}

func (c *cable) mend(tb testing.TB) {
	tb.Helper()
	if c.island == "" {
		require.NoError(tb, c.proxy.restore())
		return
	}
	require.NoError(tb, ip("link", "set", c.island, "up"))
}

// The time for which the first agent is cut off, and the room of the small gateway.
const (
	cutOff = time.Minute
	room   = 1 << 20
)

// Of four agents in network namespaces of their own one is cut off for a minute, while all logs grow. A gateway with a longer wait sends the same as one
// receiver. A gateway with a shorter wait names the silent ranks, and accuses none. A gateway without room for waiting collectives drops the oldest wait. In
// the end each collective has one root, and each rank a span.
func TestFleetCut(t *testing.T) {
	t.Parallel()
	dir, direct := t.TempDir(), startSpanSink(t)
	var logs []*ncclLog
	for i := range 3 {
		name := fmt.Sprint("comm-", i)
		logs = append(logs, generateNCCLInto(t, filepath.Join(dir, name), name, "--ranks", "16", "--nodes", "8", "--ranks-per-file", "2", "--steps", "60",
			"--seed", strconv.Itoa(90+i)))
	}
	b, cables := cabled(t, 1, agentsOfFleet)
	f := newFleet(t, b, "cut", "", logs...)
	patient, hasty := f.cutGateway("patient", "hang_timeout: 5m"), f.cutGateway("hasty", "hang_timeout: 20s")
	small := f.cutGateway("small", fmt.Sprint("max_state_bytes: ", room))
	gateways := []*cutGateway{patient, hasty, small}
	for i, a := range f.agents {
		cables[i].up(t, a)
	}
	c := f.direct(direct.addr)
	f.growCut(&cables[0], gateways)
	eventually(t, func() error { return patient.unlike(direct, patient.sink) })
	for _, g := range gateways {
		eventually(t, func() error { return g.all(direct) })
		g.accusesNobody()
		n, err := g.gateways[0].status("VmHWM")
		require.NoError(t, err)
		t.Logf("%s: at most %d KiB of collectives that waited, %d MiB in all", g.name, g.peak>>10, n>>20)
	}
	assert.Greater(t, patient.peak, int64(room), "else there would have been room")
	assert.LessOrEqual(t, small.peak, int64(room))
	assert.Equal(t, map[string]bool{"": true, spans.NCCLIncompleteEvicted: true}, small.have(spans.AttrIncompleteReason))
	assert.Subset(t, []string{"", spans.NCCLIncompleteUnheard, spans.NCCLIncompleteGone, spans.NCCLIncompleteGap},
		slices.Collect(maps.Keys(hasty.have(spans.AttrIncompleteReason))))
	assert.Contains(t, hasty.have(spans.AttrNCCLRanksUnheard), "[0,1,2,3]", "the ranks of the agent that was cut off")
	for _, g := range gateways {
		g.stop()
	}
	f.stop()
	c.stop(t)
}

// growCut has the logs grow while an agent is cut off.
func (f *fleet) growCut(c *cable, gateways []*cutGateway) {
	f.Helper()
	rnd := rand.New(rand.NewPCG(1, 19))
	f.grow(rnd, 0.2)
	eventually(f, func() error {
		for _, g := range gateways {
			if n := len(g.have(spans.AttrNCCLCommID)); n < len(f.logs) { // all ranks are known of these
				return fmt.Errorf("%s has sent collectives of %d communicators", g.name, n)
			}
		}
		return nil
	})
	// Cut off soon after its logs have grown, the agent has said nothing since that they have no more: heartbeats would make its ranks hang.
	before := len(gateways[0].sink.roots())
	f.grow(rnd, 0.3)
	eventually(f, func() error {
		if n := len(gateways[0].sink.roots()); n < before+before/10 {
			return fmt.Errorf("%d collectives, %d before", n, before)
		}
		return nil
	})
	c.cut(f)
	for began := time.Now(); time.Since(began) < cutOff; lasts(time.Second) {
		f.grow(rnd, 0.3+0.5*float64(time.Since(began))/float64(cutOff))
		for _, g := range gateways {
			g.look()
		}
	}
	c.mend(f)
	f.grow(rnd, 1)
}

// cutGateway is a gateway with a topic of spans and a backend of its own.
type cutGateway struct {
	fleet

	sink *spanSink
	peak int64 // bytes of waiting collectives
}

// cutGateway starts a gateway with settings of its receiver.
func (f *fleet) cutGateway(name, settings string) *cutGateway {
	f.Helper()
	g := &cutGateway{sink: startSpanSink(f), fleet: *f}
	g.name, g.backend, g.agents = name, g.sink.addr, nil
	g.more = fmt.Sprintf("{receivers: {nccl: {%s, kafka: {topic: nccl-%s}}}}", settings, f.name)
	g.gateway(f)
	return g
}

// look looks how much waits.
func (g *cutGateway) look() {
	g.Helper()
	list, err := g.gateways[0].ownMetrics()
	require.NoError(g, err)
	for _, m := range list {
		if strings.HasPrefix(m.name, "otelcol_trainbridge_nccl_state") {
			g.peak = max(g.peak, int64(m.value))
		}
	}
}

// all says whether every root and rank's span of one receiver is present, each once or with the same content.
func (g *cutGateway) all(direct *spanSink) error {
	want, got := direct.parts(), g.sink.parts()
	missing := 0
	for ids := range want {
		if _, ok := got[ids]; !ok {
			missing++
		}
	}
	g.sink.mu.Lock()
	defer g.sink.mu.Unlock()
	if len(g.sink.differ) > 0 {
		return fatal(fmt.Errorf("%s: %d spans came again with another content, such as\n%s", g.name, len(g.sink.differ), g.sink.differ[0]))
	}
	if missing > 0 || len(got) != len(want) {
		return fmt.Errorf("%s: %d roots and ranks of %d are missing, %d are there", g.name, missing, len(want), len(got))
	}
	return nil
}

// accusesNobody checks that only ranks of the cut agent are reported missing, and none hanging.
func (g *cutGateway) accusesNobody() {
	g.Helper()
	for _, text := range g.sink.roots() {
		assert.NotContains(g, text, spans.AttrNCCLHang+"=")
		assert.NotContains(g, text, spans.VerdictNCCLHang)
		for _, name := range []string{spans.AttrNCCLRanksUnheard, spans.AttrNCCLRanksMissing} {
			assert.Regexp(g, `^(|\[[0-3](,[0-3])*\])$`, listed(text, name), name)
		}
	}
}

// have is the roots' values of an attribute.
func (g *cutGateway) have(name string) map[string]bool {
	all := map[string]bool{}
	for _, text := range g.sink.roots() {
		all[listed(text, name)] = true
	}
	return all
}

// listed is the value of an attribute in the text of a span; "": absent.
func listed(text, name string) string {
	_, value, _ := strings.Cut(text, " "+name+"=")
	value, _, _ = strings.Cut(value, " ")
	return value
}

// parts are the roots of collectives and the spans of their ranks.
func (s *spanSink) parts() map[[2]string]string {
	return s.with(func(text string) bool { return strings.HasPrefix(text, "rank ") || isRoot(text) })
}

// roots are the roots of collectives.
func (s *spanSink) roots() map[[2]string]string { return s.with(isRoot) }

func (s *spanSink) with(keep func(text string) bool) map[[2]string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	some := map[[2]string]string{}
	for ids, text := range s.spans {
		if keep(text) {
			some[ids] = text
		}
	}
	return some
}

func isRoot(text string) bool {
	return strings.Contains(text, " "+spans.AttrNCCLRanks+"=") && !strings.Contains(text, " "+spans.AttrNCCLCommRank+"=")
}
