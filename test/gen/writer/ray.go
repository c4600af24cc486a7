package writer

import "fmt"

// Possible prefixes of a process' lines: Ray names the process.
const (
	PrefixNone    = "none"
	PrefixRay     = "ray"      // (WorkerDict pid=1, ip=10.0.0.1)
	PrefixRayANSI = "ray-ansi" // the same in Ray's cyan
)

// RayPrefix is Ray's prefix of the lines of a process, nothing if the prefix is none of Ray's. It has the node only if different from the driver's: an empty ip
// is the driver's.
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
