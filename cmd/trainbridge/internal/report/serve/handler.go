package serve

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/html"
)

// handler answers three questions: for the page (/), for its data (/document.json), and for the progress of reading (/state.json).
type handler struct {
	listener *Listener
	page     *page
	cookie   string // the name of the cookie with the token
}

// newHandler makes the handler of a page.
func newHandler(l *Listener, p *page) *handler {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return &handler{l, p, "trainbridge_" + port} // a browser gives a cookie to all ports of a host
}

// ServeHTTP implements http.Handler: it refuses requests under foreign host names, from pages of other origins, with other methods than GET and HEAD, and
// without the token, in this order, and answers the rest.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", html.Served().Policy+"; frame-ancestors 'none'")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	switch {
	case !h.listener.named(r.Host):
		http.Error(w, fmt.Sprintf("This page is not served under that name: open it as %s, or name the host in --serve=HOST:PORT.", h.listener.address()),
			http.StatusMisdirectedRequest)
	case !sameOrigin(r):
		http.Error(w, "A page of another origin asks.", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "This page can only be read.", http.StatusMethodNotAllowed)
	case !h.admitted(w, r):
		http.Error(w, "Open the address that trainbridge report --serve has printed: its token is needed.", http.StatusForbidden)
	default:
		h.answer(w, r)
	}
}

// sameOrigin says whether a request is of the page itself, or of no page.
func sameOrigin(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || u.Host != r.Host {
			return false
		}
	}
	return true
}

// admitted says whether a request has the token, in the address or in the cookie. A token in the address becomes a cookie: the page removes the token from
// the address.
func (h *handler) admitted(w http.ResponseWriter, r *http.Request) bool {
	is := func(token string) bool {
		return subtle.ConstantTimeCompare([]byte(token), []byte(h.listener.token)) == 1
	}
	if token := r.URL.Query().Get("token"); token != "" {
		if !is(token) {
			return false
		}
		http.SetCookie(w, &http.Cookie{Name: h.cookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		return true
	}
	c, err := r.Cookie(h.cookie)
	return err == nil && is(c.Value)
}

// answer answers an admitted request. Requests for the page and for the progress show that somebody looks on: they have the logs looked at.
func (h *handler) answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/":
		h.page.want()
		data, tag, _ := h.page.now()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = html.Served().Write(w, data, tag)
	case "/document.json":
		data, tag, _ := h.page.now()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(data)
	case "/state.json":
		h.page.want()
		_, _, state := h.page.now()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(state)
	default:
		http.NotFound(w, r)
	}
}
