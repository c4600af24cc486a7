package main

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"debug/macho"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program builds an empty program.
func program(t *testing.T, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, out := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600))
	cmd := exec.Command("go", "build", "-o", out, source)
	cmd.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0"}, env...)...)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return out
}

// Programs of other processors are the same with a different machine in their header.
func TestPlatforms(t *testing.T) {
	const elfMachine, machoMachine = 18, 4 // offset of the machine, low byte first
	linux, err := os.ReadFile(program(t, "GOOS=linux", "GOARCH=amd64"))
	require.NoError(t, err)
	darwin, err := os.ReadFile(program(t, "GOOS=darwin", "GOARCH=arm64"))
	require.NoError(t, err)
	for _, c := range []struct {
		raw         []byte
		at, machine int
		tag         string
	}{
		{linux, elfMachine, int(elf.EM_X86_64), "musllinux_1_1_x86_64"},
		{linux, elfMachine, int(elf.EM_AARCH64), "musllinux_1_1_aarch64"},
		{darwin, machoMachine, int(macho.CpuAmd64), "macosx_12_0_x86_64"}, // go.dev/doc/go1.25: macOS 12
		{darwin, machoMachine, int(macho.CpuArm64), "macosx_12_0_arm64"},
	} {
		c.raw[c.at] = byte(c.machine)
		tags, err := platforms(c.raw)
		require.NoError(t, err)
		assert.Equal(t, []string{c.tag}, tags)
		for n := range 4096 { // a truncated file
			_, _ = platforms(c.raw[:n])
		}
	}
	_, err = platforms([]byte("#!/bin/sh\n"))
	require.EqualError(t, err, "neither ELF nor Mach-O")
	linux[elfMachine] = byte(elf.EM_RISCV)
	_, err = platforms(linux)
	require.ErrorContains(t, err, "EM_RISCV")
}

// The files are in the wheel with their modes; the same files are the same bytes.
func TestWheel(t *testing.T) {
	dir := t.TempDir()
	share := filepath.Join(dir, "share")
	require.NoError(t, os.MkdirAll(filepath.Join(share, "man", "man1"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(share, "man", "man1", "x.1"), []byte("page"), 0o600))
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("text"), 0o600))
	bin := program(t, "GOOS=linux", "GOARCH=amd64")
	var packed [2][]byte
	for i := range packed {
		path, err := write("1.2.3", bin, share, text, text, text, time.Unix(1e9, 0).UTC(), t.TempDir())
		require.NoError(t, err)
		assert.Equal(t, "trainbridge-1.2.3-py3-none-musllinux_1_1_x86_64.whl", filepath.Base(path))
		packed[i], err = os.ReadFile(path)
		require.NoError(t, err)
	}
	assert.Equal(t, packed[0], packed[1])
	z, err := zip.NewReader(bytes.NewReader(packed[0]), int64(len(packed[0])))
	require.NoError(t, err)
	modes := map[string]os.FileMode{}
	for _, f := range z.File {
		modes[f.Name] = f.Mode()
	}
	assert.Equal(t, map[string]os.FileMode{
		"trainbridge-1.2.3.data/scripts/trainbridge":             0o755,
		"trainbridge-1.2.3.data/data/share/man/man1/x.1":         0o644,
		"trainbridge-1.2.3.dist-info/METADATA":                   0o644,
		"trainbridge-1.2.3.dist-info/WHEEL":                      0o644,
		"trainbridge-1.2.3.dist-info/RECORD":                     0o644,
		"trainbridge-1.2.3.dist-info/licenses/LICENSE":           0o644,
		"trainbridge-1.2.3.dist-info/sboms/trainbridge.cdx.json": 0o644,
	}, modes)
	f, err := z.Open("trainbridge-1.2.3.dist-info/RECORD")
	require.NoError(t, err)
	record, err := io.ReadAll(f)
	require.NoError(t, err)
	// printf page | sha256sum | xxd -r -p | base64
	assert.Contains(t, string(record), "share/man/man1/x.1,sha256=NmAxWprz3yVdjxmrB35Hl4IrQUiKDioEvGr3EhPCMnQ,4\n")
	assert.Contains(t, string(record), "\ntrainbridge-1.2.3.dist-info/RECORD,,\n")
}
