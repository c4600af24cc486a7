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
	clockEvery = time.Second            // the age of what is shown
)

// What a terminal is told: its other screen without a cursor, and back.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leave = "\x1b[?25h\x1b[?1049l"
)

// screen draws a model on a terminal until somebody types q, or the context ends. The terminal is as it was when it returns.
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

// pause waits until the next frame may be drawn.
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

// frame is a whole screen in one write, without a line feed after its last line, which would scroll.
func (m *model) frame(k look, now time.Time) string {
	m.mu.Lock()
	lines := m.render(k, now)
	m.mu.Unlock()
	return "\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J"
}

// keys ends the view at q, Ctrl-C, Ctrl-D or Escape. It lives until the next key is typed.
func keys(in io.Reader, quit func()) {
	buf := make([]byte, 16)
	for {
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		// A sequence of an arrow key begins with Escape, and has more behind it.
		if key := buf[0]; n > 0 && (key == 'q' || key == 'Q' || key == 3 || key == 4 || key == 27 && n == 1) {
			quit()
			return
		}
	}
}
