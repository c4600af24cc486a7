package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// alikeComms are communicators of a kind: "DP Group 0" and "DP Group 1", of as many ranks, with messages of about one size (a power of two).
type alikeComms struct {
	stem, operation string
	ranks           int64
	size            int
}

// slowComms adds a claim for each communicator whose bandwidth is half of that of the others of its kind, or less: their links, or their placement, differ.
func (c *conclusion) slowComms() {
	ranks := map[[2]string]int64{}
	for _, comm := range communicators(c.job) {
		ranks[[2]string{comm.ID, comm.Name}] = comm.ranks
	}
	kinds := map[alikeComms][]*digest.Collective{}
	for _, g := range c.job.Collectives.Rows() {
		stem := strings.Join(strings.FieldsFunc(g.Communicator, func(r rune) bool { return r >= '0' && r <= '9' }), "#")
		if stem == g.Communicator || strings.HasPrefix(g.Communicator, "0x") { // without a number, or a hash
			continue
		}
		for size, of := range g.Sizes {
			if of.Bus.Count() >= enough {
				k := alikeComms{stem, g.Operation, ranks[[2]string{g.ID, g.Communicator}], size}
				kinds[k] = append(kinds[k], g)
			}
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(kinds), func(a, b alikeComms) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		of := kinds[k]
		if len(of) < 3 {
			continue
		}
		for i, g := range of {
			var others []float64
			for n, o := range of {
				if s := o.Sizes[k.size]; n != i {
					others = append(others, s.Bus.Mean())
				}
			}
			own, usual := g.Sizes[k.size], stat.MedianInPlace(others)
			if own.Bus.Mean() > usual/2 {
				continue
			}
			cl := claim{
				kind: "slow_communicator", cost: math.NaN(), grade: remark, advice: c.in(
					"Look for a slow link or NIC between its ranks, and at how they are placed.", "检查其 rank 之间是否有慢链路或慢网卡，以及 rank 的放置。"),
				what: c.sf("%s runs %s of %s to %s at %s GB/s (bus), the %d others like it at %s GB/s", "%s 的 %s（%s 至 %s）总线带宽为 %s GB/s，同类的其他 %d 个通信域为 %s GB/s",
					name(g.Communicator), name(g.Operation), human.Binary(k.size), human.Binary(k.size+1), human.Digits(own.Bus.Mean()/1e9), len(others),
					human.Digits(usual/1e9)),
			}
			for _, s := range g.Slowest[:min(len(g.Slowest), evidences)] {
				cl.proof = append(cl.proof, proof{human.Seconds(s.Weight), s.At})
			}
			c.claims = append(c.claims, cl)
		}
	}
}

// slowTransfers adds to a claim of low bandwidth what that cost: of the communicators with the verdict, the most by which all collectives of one took longer
// than the fastest tenth of them, without waiting for late ranks, where the log has one size of messages. A network link that went down meanwhile is named.
func (c *conclusion) slowTransfers(cl *claim, f *digest.Finding) {
	lost, called := 0.0, ""
	for _, g := range c.job.Collectives.Rows() {
		n := float64(g.Took.Count())
		fast := g.Took.Quantile(0.1)
		if g.Verdicts[f.Title()] == 0 || len(g.Sizes) != 1 || n < enough || g.Took.Quantile(0.9) < 1.5*fast {
			continue
		}
		waited := 0.0 // s, of a collective
		if g.Late.Count() > 0 {
			waited = g.Late.Mean()
		}
		if more := g.Took.Sum() - n*(max(fast, waited)); more > lost {
			lost, called = more, c.sf("%s of %s", "%[2]s 的 %[1]s", name(g.Operation), name(g.Communicator))
		}
	}
	if !c.worth(lost) {
		return
	}
	cl.cost = lost
	cl.what += c.sf(". The %s took %s longer in all than the fastest tenth of them would", "。%s 比其中最快的十分之一共多用 %s", called, human.Seconds(lost))
	d := &disturbances[0]
	var down []*digest.Event
	for i := range c.job.Events {
		if e := &c.job.Events[i]; slices.Contains(d.forms, e.Form) && e.Time > c.job.First && e.Time < c.job.Last {
			down = append(down, e)
		}
	}
	if len(down) > 0 {
		cl.what += c.sf("; a network link went down then%s", "；其间网络链路断开%s", c.whoHeld(d, down))
		cl.proof = append(cl.proof[:min(1, len(cl.proof))], proof{name(down[0].Text), down[0].At})
	}
}
