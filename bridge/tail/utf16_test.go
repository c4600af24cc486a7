package tail

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var endians = map[string]binary.AppendByteOrder{"LE": binary.LittleEndian, "BE": binary.BigEndian}

// encode writes text as UTF-16, with a byte order mark or without.
func encode(e binary.AppendByteOrder, mark bool, text string) string {
	var b []byte
	if mark {
		b = e.AppendUint16(b, 0xfeff)
	}
	for _, u := range utf16.Encode([]rune(text)) {
		b = e.AppendUint16(b, u)
	}
	return string(b)
}

func TestUTF16(t *testing.T) {
	long := strings.Repeat("ж", 1500)
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"lf":             {"a\nb\n", []string{"a", "b"}},
		"crlf":           {"a\r\n\r\nb\r\n", []string{"a", "b"}},
		"cr":             {"\r1%\r2%\n", []string{"1%", "2%"}},
		"all planes":     {"损失 = 0.5 ж\n😀 done\n", []string{"损失 = 0.5 ж", "😀 done"}},
		"bytes like \\n": {"a\u0a0ab\u0d0d\u0a00c\n", []string{"a\u0a0ab\u0d0d\u0a00c"}},
		"a second mark":  {"a\n\ufeffb\n", []string{"a", "b"}},
		"NULs":           {"a\n" + strings.Repeat("\x00", 5000) + "b\n", []string{"a", "b"}},
		"unfinished":     {"a\nb", []string{"a"}},
		"too long":       {"a\n" + long + long + long + "\nb\n", []string{"a", "b"}},
		"long":           {long + "\nb\n", []string{long, "b"}},
		"a pair":         {"START x\nEND x\n", []string{"START x | END x"}},
	} {
		for e, endian := range endians {
			for _, step := range []int{1 << 20, 1000, 3} {
				t.Run(fmt.Sprintf("%s %s %d", name, e, step), func(t *testing.T) {
					r := newRig(t, func(c *Config) { c.MaxLineBytes = 4096 })
					for rest := encode(endian, true, tc.text); rest != ""; {
						n := min(step, len(rest))
						if step == 3 && len(rest) > 2000 {
							n = 1001
						}
						r.append("a.log", rest[:n])
						rest = rest[n:]
						r.step(poll)
					}
					r.want(tc.want...)
				})
			}
		}
	}
}

// Two bytes that are no character, and half a character at the end.
func TestUTF16Damage(t *testing.T) {
	r := newRig(t)
	r.write("a.log", "\xff\xfea\x00\x00\xd8b\x00\n\x00\x00\xdc\n\x00c\x00\x00\xd8\n\x00d\x00\n")
	r.step(0)
	r.want("a\ufffdb", "\ufffd", "c\ufffd")
	r.append("a.log", "\x00")
	r.step(poll)
	r.want("d")
	r.append("b.log", "\xff")
	r.step(0)
	r.append("b.log", "\xfex\x00\n\x00")
	r.step(10 * time.Second)
	r.want("x")
	r.append("b.log", "y\x00z")
	r.step(poll)
	r.want()
	r.step(r.cfg.PendingTimeout)
	r.want("y")
	r.append("b.log", "\x00\n\x00")
	r.step(10 * time.Second)
	r.want("z")
}

// Positions count the file's bytes, so a restart continues in the middle, holes first.
func TestUTF16AfterRestart(t *testing.T) {
	for e, endian := range endians {
		for _, packed := range []bool{false, true} {
			t.Run(fmt.Sprint(e, packed), func(t *testing.T) {
				r := newRig(t, every, func(c *Config) { c.MaxInFlightBytes = minInFlight })
				text := encode(endian, true, numbered(1, 500)+"START ж\n")
				name := "a.log"
				if packed {
					name, text = "a.log.gz", gz(text)
				}
				r.write(name, text)
				r.hold = true
				r.step(0)
				r.step(poll)
				r.step(poll)
				require.NotEmpty(t, r.flying)
				r.ack(len(r.flying) - 1)
				r.checkpoint()
				r.restart()
				r.hold = false
				r.rest()
				want := numberedLines(1, 500)
				if !packed {
					r.append(name, encode(endian, false, "END ж\n"))
					r.rest()
					want = append(want, "START ж | END ж")
				} else {
					want = append(want, "START ж")
				}
				assert.ElementsMatch(t, want, r.out)
			})
		}
	}
}

func TestUTF16FromTheEnd(t *testing.T) {
	for e, endian := range endians {
		for _, lines := range []int{2, 20_000} {
			t.Run(fmt.Sprint(e, lines), func(t *testing.T) {
				r := newRig(t, func(c *Config) { c.StartAt = StartAtEnd })
				r.write("a.log", encode(endian, true, numbered(1, lines)+"unfin"))
				r.step(0)
				r.want()
				r.append("a.log", encode(endian, false, "ished ж\nnext\n"))
				r.step(poll)
				r.want("unfinished ж", "next")
			})
		}
	}
}

func TestUTF16Document(t *testing.T) {
	for e, endian := range endians {
		t.Run(e, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				c.Document = []string{filepath.Join(filepath.Dir(c.Include[0]), "*.json")}
			})
			r.write("a.json", encode(endian, true, "{\"ж\":\r\n1}"))
			r.rest()
			r.want("{\"ж\":\r\n1}")
		})
	}
}

func TestUTF16Ahead(t *testing.T) {
	r := newRig(t)
	r.write("a.log", encode(binary.LittleEndian, true, "a ж\nb\nc"))
	var ahead, before []string
	r.onLine = func(h *toy, text string, _ *Line) {
		h.s.Ahead(func(b []byte) bool { ahead = append(ahead, string(b)); return true })
		h.s.Beginning(func(b []byte) bool { before = append(before, string(b)); return true })
	}
	r.step(0)
	r.want("a ж", "b")
	assert.Equal(t, []string{"b"}, ahead)
	assert.Equal(t, []string{"a ж"}, before)
}
