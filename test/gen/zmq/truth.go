package zmq

import "github.com/trainbridge/trainbridge/internal/logfile"

// Sums are sums over calls, as printed: times in ns of the printed ms, sizes in By of the printed KB (1024 By each), every call's size
// rounded to an integer. Values without a column in the layout are 0.
type Sums struct {
	Calls         int64 `json:"calls"`
	SerializeNS   int64 `json:"serialize_ns"`
	SendNS        int64 `json:"send_ns"`
	ReceiveNS     int64 `json:"receive_ns"`
	DeserializeNS int64 `json:"deserialize_ns"`
	TotalNS       int64 `json:"total_ns"`
	// UnattributedNS is the part of TotalNS outside of stages, ServerNS is a part of ReceiveNS, OfflineNS is no part of TotalNS.
	UnattributedNS int64 `json:"unattributed_ns"`
	ServerNS       int64 `json:"server_ns"`
	OfflineNS      int64 `json:"offline_ns"`
	RequestBytes   int64 `json:"request_bytes"`
	ResponseBytes  int64 `json:"response_bytes"`
}

func (s *Sums) add(c *zmqCall) {
	var ns [times]int64
	for i := range ns {
		ns[i] = logfile.Micros(c.ns[i]) * 1000
	}
	s.Calls++
	s.SerializeNS += ns[serialize]
	s.SendNS += ns[send]
	s.ReceiveNS += ns[receive]
	s.DeserializeNS += ns[deserialize]
	s.TotalNS += ns[zmqTotal]
	s.UnattributedNS += ns[zmqTotal] - ns[serialize] - ns[send] - ns[receive] - ns[deserialize]
	s.ServerNS += ns[server]
	s.OfflineNS += ns[zmqOffline]
	s.RequestBytes += printedBytes(c.sent)
	s.ResponseBytes += printedBytes(c.recv)
}

// printedBytes is the value of a size printed in KB with two decimals.
func printedBytes(n int64) int64 { return (kilobyteHundredths(n)*1024 + 50) / 100 }

// Pass is a pass, or the calls before the first one.
type Pass struct {
	Kind  string `json:"kind"`  // rpc.pass or rpc.session
	File  string `json:"file"`  // base name
	Block int    `json:"block"` // from 1; ids restart with each
	// Pass is its ordinal in the log, from 1, warm-up included; 0 for a session.
	Pass    int   `json:"pass,omitempty"`
	FirstID int64 `json:"first_id"`
	LastID  int64 `json:"last_id"`
	// Complete is false for a pass without its last call.
	Complete bool `json:"complete"`
	// SerializeHigh: serialization takes 40 to 50 % of the time, else less than 20 %.
	SerializeHigh bool `json:"serialize_high"`
	Sums
	// Slowest is the call with the longest printed time, the first of equals.
	Slowest Slowest `json:"slowest"`
	// StartUnixNano and EndUnixNano are true times; with --rate, rows were written at the true ends of their calls.
	StartUnixNano int64 `json:"start_unix_nano"` // of the first call; its offline time is before
	EndUnixNano   int64 `json:"end_unix_nano"`
}

// Slowest is a call.
type Slowest struct {
	ID      int64  `json:"id"`
	Method  string `json:"method"`
	TotalNS int64  `json:"total_ns"`
}

func (p *Pass) add(c *zmqCall, start, end int64) {
	if p.Calls == 0 {
		p.FirstID, p.StartUnixNano = c.id, start
	}
	p.LastID, p.EndUnixNano = c.id, end
	p.Sums.add(c)
	if total := logfile.Micros(c.ns[zmqTotal]) * 1000; p.Calls == 1 || total > p.Slowest.TotalNS {
		p.Slowest = Slowest{c.id, c.method, total}
	}
}

// Run sums up a run of `gen zmq`: the last line of its truth file, {"run": Run}, written when the generator stops. The lines before are a Pass each, in the
// order of the log.
type Run struct {
	Layout    string         `json:"layout"`
	Transport string         `json:"transport"`
	Seed      uint64         `json:"seed"`
	Layers    int            `json:"layers"`
	Files     []logfile.File `json:"files"`
	// Lines are physical lines: Records (one per call) + Sides (of the footer, with values) + Ignored.
	Lines int64 `json:"lines"`
	logfile.LineCounts
	Blocks int   `json:"blocks"`
	Passes int64 `json:"passes"` // the last may be incomplete
	// Footer sums up the calls of the footer, from the last restart of ids on; nil without a footer.
	Footer        *Sums `json:"footer,omitempty"`
	StartUnixNano int64 `json:"start_unix_nano"`
	EndUnixNano   int64 `json:"end_unix_nano"`
}
