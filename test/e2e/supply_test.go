//go:build e2e

package e2e

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// `make sbom` lists exactly the modules linked into a binary, with their versions.
func TestSBOM(t *testing.T) {
	for name, bin := range map[string]string{"trainbridge": trainbridgeBin(t), "trainbridge-full": fullBin(t)} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(repoRoot, "bin", name+".cdx.json"))
			require.NoError(t, err, "run `make sbom`")
			checkSBOM(t, raw, bin)
		})
	}
}

func checkSBOM(t *testing.T, raw []byte, bin string) {
	t.Helper()
	var bom struct {
		Metadata struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, PURL string }
	}
	require.NoError(t, json.Unmarshal(raw, &bom))
	info, err := buildinfo.ReadFile(bin)
	require.NoError(t, err)
	want := map[string]string{"std": info.GoVersion}
	for _, m := range info.Deps {
		for m.Replace != nil {
			m = m.Replace
		}
		want[m.Path] = m.Version
	}
	got := make(map[string]string)
	for _, c := range bom.Components {
		got[c.Name] = c.Version
		assert.Contains(t, c.PURL, "pkg:golang/"+c.Name+"@")
	}
	assert.Equal(t, want, got)
	assert.Equal(t, info.Main.Path, bom.Metadata.Component.Name)
	assert.Regexp(t, `^v\d+\.\d+\.\d+$`, bom.Metadata.Component.Version)
}

// ocb builds the agent: the same components, of the same modules, so tests of either binary hold for both. (TestShippedConfig and TestNVML show that ocb's
// reads and sends.)
func TestOCB(t *testing.T) {
	t.Parallel()
	var components [2]string
	var versions [2]map[string]string
	for i, bin := range []string{trainbridgeBin(t), ocbBin(t)} {
		out, err := exec.Command(bin, "components").Output()
		require.NoError(t, err)
		_, list, found := strings.Cut(string(out), "\nreceivers:\n")
		require.True(t, found, "%s", out)
		components[i] = ofModule.ReplaceAllString(list, "") // only in ocb's output
		info, err := buildinfo.ReadFile(bin)
		require.NoError(t, err)
		versions[i] = map[string]string{}
		for _, m := range info.Deps {
			versions[i][m.Path] = m.Version
		}
	}
	assert.Equal(t, components[0], components[1])
	same := 0
	for path, version := range versions[0] {
		if of, ok := versions[1][path]; ok {
			assert.Equal(t, version, of, path)
			same++
		}
	}
	assert.Greater(t, same, 100)
}

var ofModule = regexp.MustCompile(`(?m)^ +module: .*\n`)

// A vulnerability called by our code fails `make vuln`, an uncalled vulnerability passes, and an unreachable database is reported.
func TestVulnerabilityCheck(t *testing.T) {
	t.Parallel()
	database := func(symbol string) string {
		dir := t.TempDir()
		entry := strings.ReplaceAll(`{"schema_version": "1.3.1", "id": "GO-2099-0001", "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
  "summary": "of this test", "details": "of this test", "database_specific": {"url": "https://pkg.go.dev/vuln/GO-2099-0001"}, "affected": [{
    "package": {"name": "github.com/bmatcuk/doublestar/v4", "ecosystem": "Go"},
    "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
    "ecosystem_specific": {"imports": [{"path": "github.com/bmatcuk/doublestar/v4", "symbols": ["SYMBOL"]}]}}]}`, "SYMBOL", symbol)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "GO-2099-0001.json"), []byte(entry), 0o600))
		return "file://" + dir
	}
	for _, tt := range []struct {
		name, db string
		fails    bool
		says     string
	}{
		{"called", database("ValidatePattern"), true, "Your code is affected by 1 vulnerability"},
		{"not called", database("Nothing"), false, "No vulnerabilities found."},
		{"unreachable", "https://" + freeAddr(t), false, "vulnerabilities: NOT CHECKED, no database at https://"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(filepath.Join(repoRoot, "tools/vuln.sh"), "./bridge/tail")
			cmd.Env = append(os.Environ(), "VULN_DB="+tt.db)
			out, err := cmd.CombinedOutput()
			assert.Equal(t, tt.fails, err != nil, "%s", out)
			assert.Contains(t, string(out), tt.says)
		})
	}
}
