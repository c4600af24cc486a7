//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// browser is a page in a headless Chromium, controlled by the DevTools protocol over two pipes.
type browser struct {
	t       *testing.T
	to      io.Writer
	session string

	mu       sync.Mutex
	next     int
	waiting  map[int]chan reply
	loaded   chan struct{}
	requests []string // addresses requested
	errors   []string // of scripts and of the log, among them violations of the policy
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// openBrowser starts a Chromium with an empty page, until the end of the test.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary(t, "CHROMIUM_BIN", "chromium", "apt-get install chromium"), "--headless", "--no-sandbox", "--disable-gpu",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "--window-size=1400,1000")
	in, to, err := os.Pipe()
	require.NoError(t, err)
	from, out, err := os.Pipe()
	require.NoError(t, err)
	cmd.ExtraFiles = []*os.File{in, out} // descriptors 3 and 4
	var said bytes.Buffer
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	in.Close()
	out.Close()
	b := &browser{t: t, to: to, waiting: map[int]chan reply{}, loaded: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.listen(from)
	}()
	t.Cleanup(func() {
		to.Close() // which ends Chromium
		cancel()
		_ = cmd.Wait()
		from.Close()
		<-done
		if t.Failed() {
			t.Log(said.String())
		}
	})

	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// run runs a subtest, which fails with the browser.
func (b *browser) run(t *testing.T, name string, f func()) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		b.t = t
		f()
	})
	b.t = t
}

// listen reads the browser's messages: JSON, each terminated by a zero byte.
func (b *browser) listen(from io.Reader) {
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			for _, c := range b.waiting {
				close(c)
			}
			b.waiting = nil
			b.mu.Unlock()
			return
		}
		var m struct {
			reply
			ID     int
			Method string
			Params struct {
				Request          struct{ URL string }
				Entry            struct{ Level, Text, URL string }
				ExceptionDetails struct {
					Text      string
					Exception struct{ Description string }
				}
			}
		}
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		switch m.Method {
		case "":
			if c := b.waiting[m.ID]; c != nil {
				delete(b.waiting, m.ID)
				c <- m.reply
			}
		case "Page.loadEventFired":
			select {
			case b.loaded <- struct{}{}:
			default:
			}
		case "Network.requestWillBeSent":
			b.requests = append(b.requests, m.Params.Request.URL)
		case "Log.entryAdded":
			b.errors = append(b.errors, fmt.Sprintf("%s: %s %s", m.Params.Entry.Level, m.Params.Entry.Text, m.Params.Entry.URL))
		case "Runtime.exceptionThrown":
			b.errors = append(b.errors, m.Params.ExceptionDetails.Text+" "+m.Params.ExceptionDetails.Exception.Description)
		}
		b.mu.Unlock()
	}
}

// call calls a method of the protocol.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	c := make(chan reply, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	ended := b.waiting == nil
	if !ended {
		b.waiting[id] = c
	}
	b.mu.Unlock()
	require.False(b.t, ended, "the browser has ended")
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	require.NoError(b.t, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(b.t, err)
	a, ok := <-c
	require.True(b.t, ok, "the browser has ended at %s", method)
	require.Nil(b.t, a.Error, method)
	if result != nil {
		require.NoError(b.t, json.Unmarshal(a.Result, result), method)
	}
}

// open loads a page.
func (b *browser) open(address string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": address}, nil)
	select {
	case <-b.loaded:
	case <-time.After(time.Minute):
		require.FailNow(b.t, "the page is not loaded", address)
	}
}

// eval has the page evaluate an expression, possibly a promise.
func (b *browser) eval(expression string, to any) {
	b.t.Helper()
	var r struct {
		Result struct {
			Value json.RawMessage
		}
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true}, &r)
	if r.ExceptionDetails != nil {
		require.FailNow(b.t, "script", "%s\n%s", expression, r.ExceptionDetails.Exception.Description)
	}
	if to != nil {
		require.NoError(b.t, json.Unmarshal(r.Result.Value, to), expression)
	}
}

// press presses a key as a person does.
func (b *browser) press(key string) {
	b.t.Helper()
	text := ""
	if len(key) == 1 {
		text = key
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "text": strings.TrimSpace(text)}, nil)
		text = ""
	}
}

// screenshot is a PNG of the window.
func (b *browser) screenshot() []byte {
	b.t.Helper()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	picture, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	return picture
}

// said are the requested addresses, and the errors.
func (b *browser) said() (requests, errors []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests, b.errors
}
