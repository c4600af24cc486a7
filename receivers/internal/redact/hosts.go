package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"sync"
	"unicode/utf8"
)

// hosts hashes the names of hosts.
type hosts struct {
	key   []byte
	mu    sync.Mutex
	known map[string]string
}

// maxHosts bounds the cache of hashes.
const maxHosts = 1 << 14

// hostBytes is the kept length of a hash: among a million hosts two are the same once in 37 million runs.
const hostBytes = 8

// hash is the replacement of a host, the same with the same key.
func (h *hosts) hash(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.known[name]; ok {
		return known
	}
	mac := hmac.New(sha256.New, h.key)
	mac.Write([]byte(strings.ToLower(strings.TrimSuffix(name, "."))))
	out := "host-" + hex.EncodeToString(mac.Sum(nil)[:hostBytes])
	if h.known == nil || len(h.known) >= maxHosts {
		h.known = make(map[string]string)
	}
	h.known[strings.Clone(name)] = out
	return out
}

// host hashes the value of a field for a host, with its port unchanged. A value such as localhost, common to all hosts, stays.
func (h *hosts) host(s string, n *Counts) string {
	name, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i > 0 && strings.IndexByte(s, ':') == i {
		name, port = s[:i], s[i:]
	}
	if name == "" || strings.ToLower(name) == "localhost" || strings.ContainsAny(name, "/ ") || strings.HasPrefix(name, "host-") && len(name) == 5+2*hostBytes {
		return h.addresses(s, n)
	}
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		name, port = a.String(), ""
		if local(a) {
			return s
		}
	} else if a, err := netip.ParseAddr(name); err == nil && local(a) {
		return s
	}
	n.Hosts++
	return h.hash(name) + port
}

// local says that an address identifies no host.
func local(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() }

// addresses hashes the IP addresses in a text, each a word of its own, with or without a port.
func (h *hosts) addresses(s string, n *Counts) string {
	if strings.IndexByte(s, '.') < 0 && strings.IndexByte(s, ':') < 0 {
		return s
	}
	var out strings.Builder
	from := 0
	for i := 0; i < len(s); {
		begin := i
		for i < len(s) && ofWord(s[i]) {
			i++
		}
		if i == begin {
			i++
			continue
		}
		word := strings.TrimRight(s[begin:i], ".:")
		a, err := netip.ParseAddr(word)
		if err != nil {
			word = word[:max(0, strings.LastIndexByte(word, ':'))]
			a, err = netip.ParseAddr(word)
		}
		if err != nil || local(a) {
			continue
		}
		out.WriteString(s[from:begin])
		out.WriteString(h.hash(a.String()))
		from = begin + len(word)
		n.Hosts++
	}
	if from == 0 {
		return s
	}
	out.WriteString(s[from:])
	return out.String()
}

func ofWord(c byte) bool {
	return letter(c) || digit(c) || c == '.' || c == ':' || c == '_' || c >= utf8.RuneSelf
}

// ofHosts are the last words of the names of fields for a host.
var ofHosts = set("host hostname hostnames fqdn nodename addr address ip ipaddr")

// isHost says whether a field names a host: host.name, server.address, hostname, MASTER_ADDR, node_ip.
func isHost(name string) bool {
	end := len(name)
	last := strings.ToLower(strings.Trim(name[wordStart(name, end):], "_-."))
	if last == "name" && end > 5 {
		rest := strings.TrimRight(name[:len(name)-4], "_-.")
		if rest == "" {
			return false
		}
		last = strings.ToLower(rest[wordStart(rest, len(rest)):])
		return last == "host" || last == "node"
	}
	return ofHosts[last]
}
