package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/internal/ascii"
)

// hosts replaces the names of hosts by a keyed hash: the same host has the same replacement in all collectors with the key.
type hosts struct {
	key   []byte
	mu    sync.Mutex
	known map[string]string // replacements by name
}

// maxHosts bounds the cache of hashes.
const maxHosts = 1 << 14

// hostBytes is the kept length of a hash: among a million hosts two are the same once in 37 million runs.
const hostBytes = 8

// hash is the replacement of a host, such as host-0123456789abcdef. Upper and lower case, and a dot at the end, make no difference.
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

// host hashes the value of a field for a host ("gpu-01", "gpu-01:29500", "10.0.0.1", "[fe80::1]:29500"), with its port unchanged. A value common to all hosts
// (localhost, 127.0.0.1, 0.0.0.0) stays, and so does a hash. In a value that is no single name (a path, a sentence) only the IP addresses are hashed.
func (h *hosts) host(s string, n *Counts) string {
	name, port := s, ""
	// Several colons are of IPv6, whose port is behind a bracket.
	if i := strings.LastIndexByte(s, ':'); i > 0 && (strings.IndexByte(s, ':') == i || s[i-1] == ']') {
		name, port = s[:i], s[i:]
	}
	noName := name == "" || strings.ToLower(name) == "localhost" || strings.ContainsAny(name, "/ ")
	hashed := strings.HasPrefix(name, "host-") && len(name) == len("host-")+2*hostBytes
	if noName || hashed {
		return h.addresses(s, n)
	}
	if a, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		if local(a) {
			return s
		}
		name = a.String() // with brackets and without: one host
	}
	n.Hosts++
	return h.hash(name) + port
}

// local says that an address identifies no host.
func local(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() }

// addresses hashes the IP addresses in a text, each a word of its own, with or without a port. The rest of the text stays.
func (h *hosts) addresses(s string, n *Counts) string {
	if strings.IndexByte(s, '.') < 0 && strings.IndexByte(s, ':') < 0 {
		return s
	}
	var out strings.Builder
	from := 0 // start of the text that is not in out yet
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
		if err != nil { // "10.0.0.1:29500"
			word = word[:max(0, strings.LastIndexByte(word, ':'))] // without a colon nothing, which is no address
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

// ofWord says whether a byte may belong to the word of an address: "v10.0.0.1" and "10.0.0.1_2" are words, too, and no addresses.
func ofWord(c byte) bool {
	return ascii.IsAlphanumeric(c) || c == '.' || c == ':' || c == '_' || c >= utf8.RuneSelf
}

// ofHosts are the last words of the names of fields for a host.
var ofHosts = set("host hostname hostnames fqdn nodename addr address ip ipaddr")

// isHost says whether the values of a field are names of hosts, by the last word of the field's name: server.address, hostname, MASTER_ADDR, node_ip. The last
// word "name" counts only behind host or node: host.name, not model_name.
func isHost(name string) bool {
	end := len(name)
	last := strings.ToLower(strings.Trim(name[wordStart(name, end):], "_-."))
	if last == "name" && end > len("name")+1 {
		rest := strings.TrimRight(name[:end-len("name")], "_-.")
		if rest == "" {
			return false
		}
		last = strings.ToLower(rest[wordStart(rest, len(rest)):])
		return last == "host" || last == "node"
	}
	return ofHosts[last]
}
