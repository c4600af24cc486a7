package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/html"
)

// Logs are looked at while somebody has the page open: a second after the last time at the earliest, and so seldom that reading takes a fifth of the time.
const (
	soonest = time.Second
	share   = 5
)

// page is the served page. Each reading makes the page as a report is made: the same logs give the same page, after any number of readings.
type page struct {
	paths  []string
	req    format.Request
	log    io.Writer     // for errors
	wanted chan struct{} // has an element if somebody has looked since the last reading began

	mu    sync.Mutex
	data  []byte // from html.Page.Data; never changed
	tag   string // of the data, quoted
	state state

	seen uint64 // of run alone: looks of the files behind the data; 0: nothing was read
}

// state is the progress of reading. Times are in RFC 3339, sizes in bytes, twice the size of the logs: a reading for the figures and a reading for the drawn
// traces.
type state struct {
	Tag     string    `json:"tag"`
	Reading bool      `json:"reading"`
	Done    int64     `json:"done"`
	Total   int64     `json:"total"`
	Read    time.Time `json:"read,omitzero"` // when the reading of the data began
	Trouble string    `json:"trouble,omitempty"`
}

// newPage makes a page without content, for requests before the first reading.
func newPage(paths []string, req format.Request, log io.Writer) (*page, error) {
	p := &page{paths: paths, req: req, log: log, wanted: make(chan struct{}, 1)}
	data, err := html.NewPage(req).Empty()
	if err != nil {
		return nil, err
	}
	p.set(data)
	p.want()
	return p, nil
}

// want has run look at the logs. It does not wait.
func (p *page) want() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// now is the data of the page, its tag, and the progress of the reading.
func (p *page) now() (data []byte, tag string, s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s = p.state
	s.Tag = p.tag
	return p.data, p.tag, s
}

// set replaces the data.
func (p *page) set(data []byte) {
	sum := sha256.Sum256(data)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data, p.tag = data, fmt.Sprintf(`"%x"`, sum[:8])
}

// change changes the state under its lock.
func (p *page) change(f func(*state)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.state)
}

// run looks at the logs whenever the page is wanted, and waits in between (soonest, share), until the context ends.
func (p *page) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wanted:
		}
		began := time.Now()
		err := p.read(ctx, began)
		if ctx.Err() != nil {
			return
		}
		p.end(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(soonest, (share-1)*time.Since(began))):
		}
	}
}

// end notes that a reading has ended, with its error, if any. The log gets a line about an error unless the reading before had the same.
func (p *page) end(err error) {
	trouble := ""
	if err != nil {
		trouble = reading.Clean(err.Error())
	}
	p.change(func(s *state) {
		if trouble != "" && trouble != s.Trouble {
			_, _ = fmt.Fprintln(p.log, trouble)
		}
		s.Reading, s.Trouble = false, trouble
	})
}

// read makes the page anew if the logs have changed since the last reading. The error also says which paths name no file: the page is of the others.
func (p *page) read(ctx context.Context, began time.Time) error {
	in, err := offline.Open(p.paths, nil)
	if err != nil {
		return err
	}
	defer in.Close()
	seen := looks(in.Files)
	if seen == p.seen {
		return errors.Join(in.Missing...)
	}
	passed := int64(0) // bytes of the first reading, once it is over
	// The logs are read twice, for the figures and for the drawn traces.
	tell := func(done, total int64) {
		p.change(func(s *state) { s.Reading, s.Done, s.Total = true, passed+min(done, total), 2*total })
	}
	tell(0, in.Bytes)
	req := p.req
	req.In = in
	req.Options.Progress = tell
	w := html.NewPage(req)
	read, err := offline.Read(ctx, in, req.Options, w.Sink())
	if err != nil {
		return err
	}
	if err := reading.Unreadable(read); err != nil {
		return err
	}
	passed = read.Bytes
	data, err := w.Data(ctx, read)
	if err != nil {
		return err
	}
	p.set(data)
	p.seen = seen
	p.change(func(s *state) { s.Read = began })
	debug.FreeOSMemory() // the job beside needs the memory more than a page between readings
	return errors.Join(in.Missing...)
}

var seed = maphash.MakeSeed()

// looks sums up the state of files: another sum means a write, a new file or a removed file. It is never 0.
func looks(files []string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, f := range files {
		h.WriteString(f)
		h.WriteByte(0)
		if fi, err := os.Stat(f); err == nil {
			maphash.WriteComparable(&h, fi.Size())
			maphash.WriteComparable(&h, fi.ModTime().UnixNano())
		}
	}
	return h.Sum64() | 1 // 0 means that nothing was read
}
