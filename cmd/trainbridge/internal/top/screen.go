package top

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

const (
	frameEvery = 250 * time.Millisecond // at most
	clockEvery = time.Second            // the age of the data
)

// Escape sequences: the alternate screen without a cursor, and back.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leave = "\x1b[?25h\x1b[?1049l"
)

// screen draws a model on a terminal until a key quits, or until the context ends: a frame when the model or the terminal's size has changed, and once a second
// for the age of the data, but at most every frameEvery. The terminal is restored on return.
func screen(ctx context.Context, m *model, in, out *os.File, k look, size func() (width, height int)) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	if term.IsTerminal(int(in.Fd())) {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return err
		}
		defer func() { _ = term.Restore(int(in.Fd()), before) }()
		go keys(in, quit)
	}
	if _, err := io.WriteString(out, enter); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(out, leave) }()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	clock := time.NewTicker(clockEvery)
	defer clock.Stop()
	for {
		k.width, k.height = size()
		if _, err := io.WriteString(out, m.frame(k, time.Now())); err != nil {
			return err
		}
		if !pause(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
		case <-clock.C:
		case <-m.dirty:
		}
	}
}

// pause waits until the next frame may be drawn. False: the context has ended.
func pause(ctx context.Context) bool {
	t := time.NewTimer(frameEvery)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// frame is the text that draws a whole screen in a single write, over the one before, so that nothing flickers. After the last line there is no line feed,
// which would scroll.
func (m *model) frame(k look, now time.Time) string {
	m.mu.Lock()
	lines := m.render(k, now)
	m.mu.Unlock()
	return "\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J"
}

// keys ends the view at q, Ctrl-C, Ctrl-D or Escape. The goroutine lives until the next key.
func keys(in io.Reader, quit func()) {
	buf := make([]byte, 16)
	for {
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		// The sequence of an arrow key begins with Escape, followed by more bytes.
		if key := buf[0]; n > 0 && (key == 'q' || key == 'Q' || key == 3 || key == 4 || key == 27 && n == 1) {
			quit()
			return
		}
	}
}
