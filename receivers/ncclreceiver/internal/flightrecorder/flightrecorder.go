package flightrecorder

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// Why a line is no record.
const (
	reasonBlank     = "blank"
	reasonNoEntries = "no_entries"
	reasonPickle    = "pickle"
	reasonNotJSON   = "not_json"
	reasonNotDump   = "not_flight_recorder"
)

// Parser reads dumps; each is one line. It is not safe for concurrent use.
type Parser struct {
	rank int32 // global, of the file; op.Unknown
}

// New makes a parser of the dump in file, whose name ends with the rank: nccl_trace_rank_3, …_3.json.
func New(file string) *Parser { return &Parser{rank: rankOf(file)} }

// maxRankDigits tells a rank from a date.
const maxRankDigits = 6

func rankOf(file string) int32 {
	name := filepath.Base(file)
	for _, ext := range []string{".gz", ".zst", ".json", ".txt", ".log"} {
		name = strings.TrimSuffix(name, ext)
	}
	before := strings.TrimRight(name, "0123456789")
	digits := name[len(before):]
	if len(digits) > maxRankDigits || !strings.HasSuffix(before, "_") && !strings.HasSuffix(before, "rank") {
		return op.Unknown
	}
	rank, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return op.Unknown
	}
	return int32(rank)
}

// IsPickle says whether text begins as a Python pickle does, of any protocol.
func IsPickle(text []byte) bool {
	if len(text) >= 2 && text[0] == 0x80 {
		return text[1] >= 2 && text[1] <= 5
	}
	for _, start := range []string{"(dp", "(lp", "}q", "]q"} { // protocols 0 and 1
		if bytes.HasPrefix(text, []byte(start)) {
			return true
		}
	}
	return false
}

// Sniff says whether a document is a dump of the Flight Recorder in JSON.
func Sniff(text []byte) bool {
	text = bytes.TrimSpace(text)
	return bytes.HasPrefix(text, []byte("{")) && (has(text, "pg_config") && has(text, "pg_status") || has(text, "entries") && has(text, "profiling_name"))
}

func has(text []byte, key string) bool { return bytes.Contains(text, []byte(`"`+key+`"`)) }

// Line implements parse.Parser.
func (p *Parser) Line(text []byte, _ bool, _ uint64, out *parse.Out) (parse.Verdict, string) {
	if IsPickle(text) {
		return parse.Rejected, reasonPickle
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return parse.Ignored, reasonBlank
	}
	var d dump
	if !decode(text, &d) {
		return parse.Rejected, reasonNotJSON
	}
	if len(d.Entries) == 0 {
		if d.PGConfig == nil && d.PGStatus == nil {
			return parse.Rejected, reasonNotDump
		}
		return parse.Ignored, reasonNoEntries
	}
	p.entries(&d, out)
	if len(out.Ops) == 0 {
		return parse.Rejected, reasonNotDump
	}
	return parse.Record, ""
}

// End implements parse.Parser.
func (p *Parser) End(*parse.Out) {}

// Save implements parse.Parser.
func (p *Parser) Save() []byte { return nil }

// Restore implements parse.Parser.
func (p *Parser) Restore([]byte) {}
