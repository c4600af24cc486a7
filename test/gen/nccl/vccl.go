package nccl

import (
	"strconv"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// vcclLog writes records by the document of VCCL (leoda1/VCCL_DOC @f8878b1, docs/features/flow-telemetry.md): an object per operation and rank, rank_N.json.
// The CSV has the same fields.
type vcclLog struct {
	*log
	files []*logfile.Log
	slow  int // rank whose link is slow
}

var vcclKeys = []string{
	"timestamp", "rank", "operation", "algorithm", "message_size", "duration_us", "bandwidth_gbps", "src_rank", "dst_rank", "channel_id", "stream_id",
	"error_count", "retry_count",
}

const vcclStream = 7

// vcclNames are the operations in the document's spelling.
var vcclNames = map[string]string{"AllReduce": "allreduce", "AllGather": "allgather", "ReduceScatter": "reducescatter", "Broadcast": "broadcast"}

func (p *vcclLog) open() error {
	p.slow, _ = p.opt.slowLink()
	ext := ".json"
	if p.opt.Format == FormatVCCLCSV {
		ext = ".csv"
	}
	for rank := range p.opt.Ranks {
		f, err := p.file("rank_"+strconv.Itoa(rank)+ext, p.host(rank), p.opt.Ranks)
		if err != nil {
			return err
		}
		p.files = append(p.files, f)
		if p.opt.Format == FormatVCCLCSV {
			b := p.Buf[:0]
			for i, key := range vcclKeys {
				if i > 0 {
					b = append(b, ',')
				}
				b = append(b, key...)
			}
			p.Line(f, b, logfile.Ignored)
		}
	}
	return p.Err
}

// faults draws how often a fault of some probability happened to an operation.
func (p *vcclLog) faults(probability float64) int64 {
	if probability == 0 || p.rng.Float64() >= probability {
		return 0
	}
	return 1 + p.rng.Int64N(3)
}

// collective takes message_size for S; the document does not say.
func (p *vcclLog) collective(c *ncclCollective) {
	p.rec.MessageSize = c.data
	p.ranks(c, func(rank int) int64 {
		h := p.host(rank)
		start := h.Local(c.arrive[rank])
		took := float64(h.Local(c.leave[rank]) - start)
		if rank == p.slow {
			took *= p.opt.SlowLinkBy
		}
		ns := int64(took/100+0.5) * 100 // as printed
		gbps := float64(c.data) * 8 / float64(ns)
		k := &p.links[rank]
		k.Records++
		k.Bytes += c.data
		k.sum += gbps * 1e9
		if p.opt.Gigabytes {
			gbps /= 8
		}
		failed, retried := p.faults(p.opt.Errors), p.faults(p.opt.Retries)
		p.rec.Errors += failed
		p.rec.Retries += retried
		f := p.files[rank]
		f.Operations++
		p.write(f, func(b []byte, key int) []byte {
			switch key {
			case 0:
				return logfile.AppendSeconds(b, start/1000)
			case 1, 7:
				return strconv.AppendInt(b, int64(rank), 10)
			case 2:
				return p.quoted(b, vcclNames[c.name])
			case 3:
				return p.quoted(b, "ring")
			case 4:
				return strconv.AppendInt(b, c.data, 10)
			case 5:
				return strconv.AppendFloat(b, float64(ns/100)/10, 'f', 1, 64)
			case 6:
				return strconv.AppendFloat(b, gbps, 'f', 1, 64)
			case 8:
				return strconv.AppendInt(b, int64(k.To), 10)
			case 9:
				return strconv.AppendInt(b, int64(c.index%p.opt.Channels), 10)
			case 10:
				return strconv.AppendInt(b, vcclStream, 10)
			case 11:
				return strconv.AppendInt(b, failed, 10)
			}
			return strconv.AppendInt(b, retried, 10)
		})
		return ns
	})
}

func (p *vcclLog) quoted(b []byte, s string) []byte {
	if p.opt.Format == FormatVCCLCSV {
		return append(b, s...)
	}
	return append(append(append(b, '"'), s...), '"')
}

// write writes a record: as Python's json.dumps, with indent=2 in the forms over several lines.
func (p *vcclLog) write(f *logfile.Log, value func(b []byte, key int) []byte) {
	b := p.Buf[:0]
	open, before, between, end := "{", "", ", ", "}\n"
	switch p.opt.Format {
	case FormatVCCLPretty:
		open, before, between, end = "{\n", "  ", ",\n", "\n}\n"
	case FormatVCCLArray:
		open, before, between, end = "[\n  {\n", "    ", ",\n", "\n  }"
		if f.Operations > 1 {
			open = ",\n  {\n"
		}
	case FormatVCCLCSV:
		open, between, end = "", ",", "\n"
	}
	b = append(b, open...)
	for i, key := range vcclKeys {
		if i > 0 {
			b = append(b, between...)
		}
		b = append(b, before...)
		if p.opt.Format != FormatVCCLCSV {
			b = append(append(append(b, '"'), key...), `": `...)
		}
		b = value(b, i)
	}
	p.raw(f, append(b, end...))
}

func (p *vcclLog) close() {
	if p.opt.Format != FormatVCCLArray {
		return
	}
	for _, f := range p.files {
		end := "\n]\n"
		if f.Operations == 0 {
			end = "[]\n"
		}
		p.raw(f, append(p.Buf[:0], end...))
	}
}
