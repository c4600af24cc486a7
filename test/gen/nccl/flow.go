package nccl

import (
	"os"
	"strconv"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// flowLog writes VCCL's logs: sii-research/VCCL @af1ca510 src/transport/timer_log.cc, a pair of files per network card: a full file is followed by the second
// one, written anew. The forms: 13 columns (NCCL_TELEMETRY_OBSERVE=1, and v0.3.x), packed words (since PR #27), six columns (commit b62e3e5), and the oldest
// text. Every rank has its own card, which sends to the card of the same number on the next node.
type flowLog struct {
	*log
	cards []*flowCard
	slow  int // rank whose link is slow
	stamp [14]byte
	sec   int64
}

// flowCard is a network card.
type flowCard struct {
	rank, device int
	files        [2]*logfile.Log
	kept         [2]int64 // lines of each file that are not overwritten
	current      int
	size         int64 // bytes in the current file
	base         int64 // zero of the packed words' times, by the host's clock
	last         int64 // time of the last row, of the host's clock
	second       int64 // the second that functions sums up
	functions    [8]flowSum
}

type flowSum struct {
	n, sum, most int64
	usual        int64 // the highest mean of the seconds before
}

const (
	flowSends   = 4       // of a card in a collective
	flowChunk   = 524_288 // By of a send
	flowGbits   = 186
	flowGbitsSD = 0.02
)

var flowHeaders = map[string]string{
	FormatVCCLFlow:   "Time,Group,FromRank,ToRank,DevIndex,Func,FuncTimes,SrcIP,DstIP,Bandwidth,SendWrCounter,RemainWrDataSize,Timestamp",
	FormatVCCLPacked: "64 bits data: status(63) | bandwidth(62 - 54) | timestamp(53 - 0) ",
	FormatVCCLMean:   "Time,DevIndex,Func,MaxBandwidth,MeanBandwidth,Status",
}

func (p *flowLog) open() error {
	p.slow, _ = p.opt.slowLink()
	sep := "-"
	if p.opt.Format == FormatVCCLText {
		sep = "_" // as up to v0.3.x
	}
	for rank := range p.opt.Ranks {
		h := p.host(rank)
		c := &flowCard{rank: rank, device: rank % p.opt.perNode(), base: h.Local(h.Start) - 1e9 - p.rng.Int64N(1e9)}
		name := h.name + sep + "mlx5_" + strconv.Itoa(c.device) + sep + "Port" + strconv.Itoa(c.device) + sep
		for i, which := range []string{"A", "B"} {
			f, err := p.file(name+which+".log", h, 2*p.opt.Ranks)
			if err != nil {
				return err
			}
			c.files[i] = f
			c.current = i
			p.header(c)
		}
		c.current, c.size = 0, int64(len(flowHeaders[p.opt.Format]))
		p.cards = append(p.cards, c)
	}
	return p.Err
}

func (p *flowLog) header(c *flowCard) {
	if h := flowHeaders[p.opt.Format]; h != "" {
		p.Line(c.files[c.current], p.Text(h), logfile.Ignored)
		c.kept[c.current]++
	}
}

// row writes a row at a time of the host's clock.
func (p *flowLog) row(c *flowCard, b []byte, at int64) {
	if c.size >= p.opt.FlipAt && p.Err == nil {
		p.flip(c)
	}
	c.last = max(c.last, at)
	c.size += int64(len(b)) + 1
	f := c.files[c.current]
	f.Operations++
	c.kept[c.current]++
	p.Line(f, b, logfile.Record)
}

// flip goes on in the second file, written anew.
func (p *flowLog) flip(c *flowCard) {
	p.Err = c.files[c.current].W.Flush()
	c.current ^= 1
	f := c.files[c.current]
	if p.Err == nil {
		p.Err = f.W.Flush()
	}
	if p.Err == nil {
		p.Err = f.F.Truncate(0)
	}
	if p.Err == nil {
		_, p.Err = f.F.Seek(0, 0)
	}
	f.Overwritten += c.kept[c.current]
	c.kept[c.current], c.size = 0, 0
	row := p.Buf
	p.Buf = nil // holds the row to be written next
	p.header(c)
	c.size = int64(len(flowHeaders[p.opt.Format]))
	p.Buf = row
}

// collective writes the sends. Of the collective itself the log only has a number, FuncTimes.
func (p *flowLog) collective(c *ncclCollective) {
	p.rec.Sequence, p.rec.MessageSize = uint64(c.index), 0
	for _, card := range p.cards {
		h := p.host(card.rank)
		for i := range flowSends {
			gbits := float64(flowGbits) * (1 + flowGbitsSD*logfile.Noise(p.rng))
			abnormal := false
			if card.rank == p.slow {
				gbits /= p.opt.SlowLinkBy
				abnormal = p.opt.SlowLinkBy >= 2
			}
			if c.slow {
				gbits /= slowedBy
				abnormal = true
			}
			at := h.Local(c.begun + c.transfer*int64(i+1)/flowSends)
			p.send(c, card, at, gbits, abnormal)
		}
	}
}

func (p *flowLog) send(c *ncclCollective, card *flowCard, at int64, gbits float64, abnormal bool) {
	link := &p.links[card.rank]
	switch p.opt.Format {
	case FormatVCCLPacked:
		if abnormal {
			p.word(card, int64(gbits), at, 1)
			return
		}
	case FormatVCCLFlow:
		link.Records++
		link.sum += float64(int64(gbits)) * 1e9
		p.rec.Records++
		p.row(card, p.flow(c, card, at, int64(gbits)), at)
		return
	case FormatVCCLText:
		ns := int64(flowChunk * 8 * 0.93 / gbits)
		link.Records++
		link.Bytes += flowChunk
		link.sum += flowChunk * 8 / float64(ns) * 1e9
		p.rec.Records++
		p.row(card, p.old(c, card, at, ns), at)
		return
	}
	if second := at / 1e9; second != card.second {
		p.sums(card)
		card.second = second
	}
	s := &card.functions[c.function]
	s.n++
	s.sum += int64(gbits)
	s.most = max(s.most, int64(gbits))
}

// flow is a row of 13 columns.
func (p *flowLog) flow(c *ncclCollective, card *flowCard, at, gbits int64) []byte {
	b := append(p.time(p.Buf[:0], at), ',')
	b = append(strconv.AppendUint(b, p.hash, 10), ',')
	for _, v := range []int64{int64(card.rank), int64(p.links[card.rank].To), int64(card.device), int64(c.function), int64(c.index)} {
		b = append(strconv.AppendInt(b, v, 10), ',')
	}
	b = append(append(b, p.host(card.rank).ip...), ',')
	b = append(append(b, p.host(p.links[card.rank].To).ip...), ',')
	b = append(strconv.AppendInt(b, gbits, 10), ',')
	b = append(strconv.AppendInt(b, 1+p.rng.Int64N(13), 10), ',')
	b = append(strconv.AppendInt(b, flowChunk*p.rng.Int64N(8), 10), ',')
	return strconv.AppendInt(b, at, 10)
}

// old is a row of the oldest form.
func (p *flowLog) old(c *ncclCollective, card *flowCard, at, ns int64) []byte {
	b := append(p.time(p.Buf[:0], at), ": Group:"...)
	b = strconv.AppendUint(b, p.hash, 10)
	b = strconv.AppendInt(append(b, ", from rank "...), int64(card.rank), 10)
	b = strconv.AppendInt(append(b, " to rank "...), int64(p.links[card.rank].To), 10)
	b = strconv.AppendInt(append(b, ", channel_id:"...), int64(c.index%p.opt.Channels), 10)
	b = strconv.AppendInt(append(b, ", func:"...), int64(c.function), 10)
	b = strconv.AppendInt(append(b, ",FuncTimes:"...), int64(c.index), 10)
	b = append(append(b, ", "...), p.host(card.rank).ip...)
	b = append(append(b, "->"...), p.host(p.links[card.rank].To).ip...)
	b = strconv.AppendInt(append(b, " send "...), flowChunk, 10)
	b = strconv.AppendInt(append(b, " Bytes used "...), ns, 10)
	b = strconv.AppendInt(append(b, " nsec, devIndex:"...), int64(card.device), 10)
	return strconv.AppendInt(append(b, ", sendWrCounter:"...), 1+p.rng.Int64N(13), 10)
}

// word is a packed row.
func (p *flowLog) word(card *flowCard, gbits, at int64, status uint64) {
	v := status<<63 | uint64(gbits)&511<<54 | uint64(at-card.base)&(1<<54-1)
	p.row(card, strconv.AppendUint(p.Buf[:0], v, 10), at)
}

// sums writes the means of a second, and begins the next.
func (p *flowLog) sums(card *flowCard) {
	at := (card.second+1)*1e9 - 1
	var n, sum int64
	for f := range card.functions {
		s := &card.functions[f]
		if s.n == 0 {
			continue
		}
		n += s.n
		sum += s.sum
		if p.opt.Format == FormatVCCLMean {
			mean, status := s.sum/s.n, int64(0)
			if mean < s.usual/2 {
				status = 1
			}
			s.usual = max(s.usual, mean)
			b := p.time(p.Buf[:0], at)
			for _, v := range []int64{int64(card.device), int64(f), s.most, mean, status} {
				b = strconv.AppendInt(append(b, ','), v, 10)
			}
			p.row(card, b, at)
		}
		s.n, s.sum, s.most = 0, 0, 0
	}
	if n > 0 && p.opt.Format == FormatVCCLPacked {
		p.word(card, sum/n, at, 0)
	}
}

// time prints a local time as "%Y%m%d%H%M%S".
func (p *flowLog) time(b []byte, at int64) []byte {
	if sec := at / 1e9; sec != p.sec {
		p.sec = sec
		time.Unix(sec, 0).In(p.opt.Timezone).AppendFormat(p.stamp[:0], "20060102150405")
	}
	return append(b, p.stamp[:]...)
}

func (p *flowLog) close() {
	for _, card := range p.cards {
		p.sums(card)
		if p.opt.Live || card.last == 0 {
			continue
		}
		// The zero of the times in a packed log follows only from the file's modification time, which is the last of them.
		for _, f := range card.files {
			if p.Err == nil {
				p.Err = f.W.Flush()
			}
			if p.Err == nil {
				p.Err = os.Chtimes(f.Path, time.Time{}, time.Unix(0, card.last))
			}
		}
	}
}
