package vccl

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// rankOf returns the rank in the name of a file, "rank_12.json" or "rank_12.jsonl.1", or op.Unknown.
func rankOf(file string) int32 {
	name := strings.ToLower(filepath.Base(file))
	i := strings.Index(name, "rank")
	if i < 0 {
		return op.Unknown
	}
	digits := strings.TrimLeft(name[i+4:], "_-")
	n := 0
	for n < len(digits) && ascii.IsDigit(digits[n]) {
		n++
	}
	rank, err := strconv.ParseInt(digits[:n], 10, 32)
	if err != nil {
		return op.Unknown
	}
	return int32(rank)
}

// hostOf returns the host in the name of a NIC's file: "node01-mlx5_0-Port0-A.log", or "node01_mlx5_0_Port0_A.log" of v0.3.x. Host names hold dashes but no
// underscores, and VCCL cuts them at the first dot; names of NICs hold underscores but no dashes. nil: no such name.
func hostOf(file string) []byte {
	name := filepath.Base(file)
	if nic, ok := beforePort(name, "-Port"); ok {
		if i := strings.LastIndexByte(nic, '-'); i > 0 {
			return []byte(nic[:i])
		}
	}
	if nic, ok := beforePort(name, "_Port"); ok {
		if i := strings.IndexByte(nic, '_'); i > 0 {
			return []byte(nic[:i])
		}
	}
	return nil
}

// beforePort returns the part of a file's name before "-Port0-A.log", where port is "-Port" or "_Port"; ok is false for a name without a port's number and A or
// B.
func beforePort(name, port string) (before string, ok bool) {
	i := strings.LastIndex(name, port)
	if i < 0 {
		return "", false
	}
	rest := strings.TrimLeft(name[i+len(port):], "0123456789")
	if len(rest) < len(name)-i-len(port) && len(rest) > 1 && rest[0] == port[0] && (rest[1] == 'A' || rest[1] == 'B') {
		return name[:i], true
	}
	return "", false
}
