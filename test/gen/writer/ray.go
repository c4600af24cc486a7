package writer

import "fmt"

// What may stand before the lines of a process: Ray says which process wrote them.
const (
	PrefixNone    = "none"
	PrefixRay     = "ray"      // (WorkerDict pid=1, ip=10.0.0.1)
	PrefixRayANSI = "ray-ansi" // the same in Ray's cyan
)

// RayPrefix is what Ray prints before the lines of a process, nothing where the prefix is none of Ray's. It names the node only where that is not the
// driver's: the ip is empty there.
func RayPrefix(prefix, name string, pid int, ip string) []byte {
	who := fmt.Sprintf("(%s pid=%d)", name, pid)
	if ip != "" {
		who = fmt.Sprintf("(%s pid=%d, ip=%s)", name, pid, ip)
	}
	switch prefix {
	case PrefixRay:
		return []byte(who + " ")
	case PrefixRayANSI:
		return []byte("\x1b[36m" + who + "\x1b[0m ")
	}
	return nil
}
