// Package ncclras asks the RAS server of a running NCCL job how far the ranks of its communicators are.
//
// Source: NVIDIA/nccl, src/ras/client_support.cc and client.cc, at v2.28.9-1 (dbc86fd0), v2.29.7-1 (b91894bd) and v2.30.7-1 (73cf1122). Each process of
// a job listens on localhost:28028 (NCCL_RAS_ADDR says otherwise), all by SO_REUSEPORT, and the kernel picks the process for each connection.
package ncclras

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// DefaultEndpoint is where NCCL listens without NCCL_RAS_ADDR (ras_internal.h, NCCL_RAS_CLIENT_PORT).
const DefaultEndpoint = "localhost:28028"

var (
	// ErrAbsent is for an endpoint where nobody listens: no job runs on the host, or NCCL_RAS_ENABLE=0.
	ErrAbsent = errors.New("no NCCL job listens")
	// ErrTimeout is for processes that listen and have not answered in time.
	ErrTimeout = errors.New("NCCL has not answered in time")
	// ErrOld says that NCCL is older than 2.28.7, without JSON.
	ErrOld = errors.New("NCCL is older than 2.28.7, which has no answer in JSON")
	// ErrRisky says that NCCL is 2.28.7 to 2.28.9, where a question may crash the job (nccl#1762), without Client.Risky.
	ErrRisky = errors.New("NCCL is 2.28.7 to 2.28.9, where a question to RAS may crash the job (nccl#1762, fixed in 2.29.2)")
	// ErrInvalid says that an answer is not of RAS, or not whole.
	ErrInvalid = errors.New("not an answer of NCCL's RAS")
)

// Client asks a server. The zero value asks nobody.
type Client struct {
	// Endpoint is host:port of the server.
	Endpoint string
	// Risky has NCCL 2.28.7 to 2.28.9 asked too.
	Risky bool
}

const (
	// handshake bounds the wait for a process's protocol. A stopped process never answers, though its kernel takes the connection: the next one may get to
	// another process. NCCL's own client waits as long (client.cc, TIMEOUT_INCREMENT).
	handshake = time.Second
	maxLine   = 1024 // rasClient.recvBuffer
)

// Ask gets one answer. A process that takes the connection and says nothing is passed over: the next connection may get to another process of the job, until
// ctx ends. The context must have a deadline, of 11 s or more: RAS itself waits up to 10 s for silent processes, and a client leaving before has the RAS thread
// of the job spin for the rest of them. The error is an Err… value with its cause, or ctx's.
func (c *Client) Ask(ctx context.Context) (*Answer, error) {
	for {
		a, err := c.try(ctx)
		if _, silent := errors.AsType[*silentError](err); !silent {
			return a, err
		}
		if ctx.Err() != nil {
			return nil, giveUp(ctx)
		}
	}
}

// silentError is of a process without a word in time.
type silentError struct{ error }

// giveUp is the error after the end of ctx: ErrTimeout, or that ctx was cancelled.
func giveUp(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ErrTimeout
	}
	return ctx.Err()
}

// try asks a single process, the one that the kernel picks. The error is a *silentError if the process says nothing, ErrAbsent if no connection is made,
// giveUp's at the end of ctx, or one of converse.
func (c *Client) try(ctx context.Context) (*Answer, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.Endpoint)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, giveUp(ctx)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrAbsent
	default:
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	defer func() { _ = conn.Close() }()
	// The end of ctx closes the connection. If closing has begun, try waits: nothing of the call goes on behind its return.
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = conn.Close() // ends all reading and writing
	})
	defer func() {
		if !stop() {
			<-ended
		}
	}()
	a, err := c.converse(conn)
	if err != nil && ctx.Err() != nil {
		return nil, giveUp(ctx)
	}
	return a, err
}

// converse says the commands of ncclras: CLIENT PROTOCOL, SET FORMAT json, MONITOR ? to tell flawed versions apart, and STATUS, whose answer is read. None but
// STATUS has NCCL collect anything.
func (c *Client) converse(conn net.Conn) (*Answer, error) {
	in := bufio.NewReaderSize(conn, 64<<10)
	_ = conn.SetReadDeadline(time.Now().Add(handshake)) // of an open connection
	line, err := say(conn, in, "CLIENT PROTOCOL 2")     // the number is not looked at (client_support.cc, "We ignore the protocol version")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, &silentError{err}
	}
	if err != nil {
		return nil, err
	}
	if !hasPrefix(line, "SERVER PROTOCOL ") {
		return nil, fmt.Errorf("%w: %q", ErrInvalid, line)
	}
	_ = conn.SetReadDeadline(time.Time{}) // as above; from here on ctx ends all waiting
	line, err = say(conn, in, "SET FORMAT json")
	if err != nil {
		return nil, err
	}
	switch {
	case strings.EqualFold(line, "OK"):
	case hasPrefix(line, "ERROR: Unknown command"):
		return nil, ErrOld
	default:
		return nil, fmt.Errorf("%w: %q", ErrInvalid, line)
	}
	// Versions from 2.29.2 on know MONITOR, and refuse an unknown group; older versions do not know the command.
	line, err = say(conn, in, "MONITOR ?")
	if err != nil {
		return nil, err
	}
	switch {
	case hasPrefix(line, "ERROR: Invalid event group"): // 2.29.2 or later
	case !hasPrefix(line, "ERROR: Unknown command"):
		return nil, fmt.Errorf("%w: %q", ErrInvalid, line)
	case !c.Risky:
		return nil, ErrRisky
	}
	if _, err := io.WriteString(conn, "STATUS\n"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return Read(in)
}

// say sends a command and returns the answering line, without its end.
func say(out io.Writer, in *bufio.Reader, command string) (string, error) {
	failed := func(err error) error {
		// A server that closes with a command unread resets the connection.
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
			return fmt.Errorf("%w: the connection was closed after %q", ErrInvalid, command)
		}
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if _, err := io.WriteString(out, command+"\n"); err != nil {
		return "", failed(err)
	}
	var line []byte
	for len(line) < maxLine {
		b, err := in.ReadByte()
		switch {
		case err == nil && b == '\n':
			return string(line), nil
		case err != nil:
			return "", failed(err)
		}
		line = append(line, b)
	}
	return "", fmt.Errorf("%w: a line of more than %d bytes", ErrInvalid, maxLine)
}

// hasPrefix says whether a line begins with a prefix, in letters of either case.
func hasPrefix(line, prefix string) bool {
	return len(line) >= len(prefix) && strings.EqualFold(line[:len(prefix)], prefix)
}
