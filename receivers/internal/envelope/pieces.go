package envelope

import (
	"bytes"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/receivers/internal/jsonlike"
)

// Pieces joins the pieces of long lines that container runtimes split, 16 KiB each: CRI marks all pieces but the last with P (kubelet's log format, CRI-O's
// conmon, containerd), and docker's json-file leaves the line's end to the last. The zero value is ready. Fields are exported for checkpoints.
type Pieces struct {
	Out []byte `json:"out,omitempty"` // of standard output: the whole line as far as read, from CRI's time or docker's {"log":"
	Err []byte `json:"err,omitempty"`
}

const (
	maxPieces   = 256 << 10 // bytes of a line before the last piece: more is cut off
	dockerPiece = 16 << 10  // bytes of text in a piece of docker's
)

var (
	dockerLog = []byte(`{"log":"`)
	partial   = []byte("P ")
	full      = []byte("F ")
)

// Join returns the whole line that ends with b: b itself, if b is no piece. more says that b is a piece with more to follow: the caller waits for the next
// line. A line of under 30 bytes is no piece: time, stream and mark alone take 30.
func (p *Pieces) Join(b []byte) (whole []byte, more bool) {
	switch {
	case len(b) < 30:
		return b, false
	case ascii.IsDigit(b[0]):
		return p.cri(b)
	case b[0] == '{' && (len(b) >= dockerPiece || len(p.Out) > 0 || len(p.Err) > 0):
		return p.docker(b)
	}
	return b, false
}

// of is the pieces so far of a stream: standard error or standard output.
func (p *Pieces) of(stderr bool) *[]byte {
	if stderr {
		return &p.Err
	}
	return &p.Out
}

// cri joins lines of the form "2026-02-11T16:40:00.1Z stdout P text", where P marks a piece, and F the last one. The whole line has the time of the first
// piece.
func (p *Pieces) cri(b []byte) (whole []byte, more bool) {
	n := bytes.IndexByte(b[:min(len(b), 40)], ' ') // the end of the time
	// Cheap, as most lines are no CRI: the T in the time, and " stdout " or " stderr " behind the time.
	if n < 20 || len(b) < n+10 || b[n+7] != ' ' || b[n+1] != 's' || b[10] != 'T' {
		return b, false
	}
	name, text := b[n+1:n+7], b[n+8:]
	stderr := string(name) == "stderr"
	if !stderr && string(name) != "stdout" {
		return b, false
	}
	own := p.of(stderr)
	switch {
	case bytes.HasPrefix(text, partial) && line.StampLen(b) == n:
		if len(*own) == 0 { // the whole line begins as one with F
			*own = append(append((*own)[:0], b[:n+8]...), full...)
		}
		*own = fill(*own, text[len(partial):])
		return nil, true
	case len(*own) > 0 && bytes.HasPrefix(text, full):
		whole = append(*own, text[2:]...)
		*own = nil
		return whole, false
	}
	return b, false
}

// fill appends a piece to the pieces so far, up to maxPieces bytes in all.
func fill(own, piece []byte) []byte {
	room := max(0, maxPieces-len(own))
	return append(own, piece[:min(len(piece), room)]...)
}

// docker joins lines of the form `{"log":"text","stream":"stdout","time":"…"}`, where the text of a piece does not end with a newline. The whole line has the
// time of the last piece.
func (p *Pieces) docker(b []byte) (whole []byte, more bool) {
	if !bytes.HasPrefix(b, dockerLog) {
		return b, false
	}
	_, _, end := jsonlike.String(b, len(dockerLog)-1)
	if end < 0 {
		return b, false
	}
	text, rest := b[len(dockerLog):end-1], b[end-1:] // the text keeps its escapes
	own := p.of(bytes.Contains(rest, []byte(`"stream":"stderr"`)))
	// A program's last line may lack the newline too, so a piece must also be long: half of docker's length, to be safe.
	if !bytes.HasSuffix(text, []byte(`\n`)) && len(text) >= dockerPiece/2 {
		if len(*own) == 0 {
			*own = append((*own)[:0], dockerLog...)
		}
		*own = fill(*own, text)
		return nil, true
	}
	if len(*own) == 0 {
		return b, false
	}
	whole = append(append(*own, text...), rest...)
	*own = nil
	return whole, false
}
