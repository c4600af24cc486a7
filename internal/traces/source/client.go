package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxAnswer = 512 << 20
	parallel  = 8 // requests at once, where each trace is asked for by itself
)

// client asks the HTTP API of a store.
type client struct {
	product, base string // "Jaeger", "http://127.0.0.1:16686"
	http          *http.Client
}

// newClient makes a client of an address; without a scheme the address is HTTP. No proxy is used: the address is meant literally.
func newClient(product, address string) client {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return client{product, strings.TrimSuffix(address, "/"), &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: parallel}, Timeout: time.Minute}}
}

// done closes idle connections at the end of a request: the owner of a source has nothing to close.
func (c *client) done() { c.http.CloseIdleConnections() }

// Address returns the requested URL.
func (c *client) Address() string { return c.base }

func (c *client) String() string { return c.product + " at " + c.base }

// get returns status and body of a GET, whatever the status. An error is about the connection: ErrUnreachable, or ErrTooLarge.
func (c *client) get(ctx context.Context, path string, query url.Values, accept string) (status int, body []byte, err error) {
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("%w %s: %q is %w", ErrUnreachable, c.product, c.base, ErrAddress)
	}
	req.Header.Set("Accept", accept)
	resp, err := c.http.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok { // whose text repeats method and URL
			err = ue.Err
		}
		return 0, nil, fmt.Errorf("%w %s: %w", ErrUnreachable, c, err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, fmt.Errorf("%w %s: the answer broke off: %w", ErrUnreachable, c, err)
	}
	if len(body) > maxAnswer {
		return 0, nil, fmt.Errorf("%w: that of %s exceeds %d MiB", ErrTooLarge, c, maxAnswer>>20)
	}
	return resp.StatusCode, body, nil
}

// other returns the error about an answer of a foreign server.
func (c *client) other(path, why string) error {
	return fmt.Errorf("%w %s's query API: %s%s %s", ErrNotAPI, c.product, c.base, path, why)
}
