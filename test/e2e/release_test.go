//go:build e2e && release

package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/fakenvml"
)

// The output of `make dist`. These tests are `make release-test`: root, some minutes, and Debian's packages.
func dist(elem ...string) string {
	return filepath.Join(append([]string{repoRoot, "bin/dist"}, elem...)...)
}

const qemu = "qemu-aarch64-static"

// The binaries with NVML ask for nothing newer than glibc 2.17, of RHEL 7 (2012), and the static ones for no library at all.
func TestReleaseFloor(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		f, err := elf.Open(dist("build/linux_"+arch, "trainbridge"))
		require.NoError(t, err)
		libraries, err := f.ImportedLibraries()
		require.NoError(t, err)
		assert.Subset(t, []string{"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libresolv.so.2"}, libraries, "all are glibc's")
		symbols, err := f.ImportedSymbols()
		require.NoError(t, err)
		versions := 0
		for _, s := range symbols {
			if s.Version == "" {
				assert.Truef(t, strings.HasPrefix(s.Name, "nvml"), "%s has no version", s.Name) // the driver's library has none
				continue
			}
			versions++
			minor, err := strconv.Atoi(strings.Split(strings.TrimPrefix(s.Version, "GLIBC_2."), ".")[0])
			require.NoErrorf(t, err, "%s@%s", s.Name, s.Version)
			assert.LessOrEqualf(t, minor, 17, "%s@%s", s.Name, s.Version)
		}
		assert.NotZero(t, versions)
		require.NoError(t, f.Close())

		f, err = elf.Open(dist("build/linux_"+arch+"_static", "trainbridge"))
		require.NoError(t, err)
		libraries, err = f.ImportedLibraries()
		require.NoError(t, err)
		assert.Empty(t, libraries)
		for _, p := range f.Progs {
			assert.NotEqual(t, elf.PT_INTERP, p.Type)
		}
		require.NoError(t, f.Close())
	}
}

// The names of the wheels state their platform.
func TestReleaseWheels(t *testing.T) {
	found, err := filepath.Glob(dist("*.whl"))
	require.NoError(t, err)
	var tags []string
	for _, f := range found {
		_, tag, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), ".whl"), "-py3-none-")
		tags = append(tags, tag)
	}
	assert.ElementsMatch(t, []string{
		"manylinux_2_17_x86_64.manylinux2014_x86_64", "manylinux_2_17_aarch64.manylinux2014_aarch64", "musllinux_1_1_x86_64", "musllinux_1_1_aarch64",
		"macosx_12_0_x86_64", "macosx_12_0_arm64",
	}, tags)
	checkWheel(t, dist())
}

// The archive for any Linux.
func TestReleaseTar(t *testing.T) {
	work := t.TempDir()
	run(t, nil, "cp", dist("trainbridge-"+releaseVersion(t)+"-linux-amd64.tar.gz"), work)
	said := runScript(t, work, install(t, "tar"))
	commit, err := exec.Command("git", "-C", repoRoot, "rev-parse", "--short=12", "HEAD").Output()
	require.NoError(t, err)
	assert.Contains(t, said, "trainbridge "+releaseVersion(t)+", commit "+strings.TrimSpace(string(commit)))
}

// The binary with NVML loads the driver's library at run time, like that of `make build`.
func TestReleaseNVML(t *testing.T) {
	bin, err := filepath.Abs(dist("build/linux_amd64/trainbridge"))
	require.NoError(t, err)
	testNVML(t, bin, fakenvml.Build(t))
}

// The binaries of arm64 give the same report: the static binary alone, the binary with NVML with a glibc of arm64.
func TestReleaseARM64(t *testing.T) {
	d := newDemo(t)
	assert.Equal(t, d.report, d.reportOf(t, d.dir, qemu, dist("build/linux_arm64_static/trainbridge")))
	assert.Equal(t, d.report, d.reportOf(t, d.dir, qemu, "-L", "/usr/aarch64-linux-gnu", dist("build/linux_arm64/trainbridge")))
}

// chroot is a Debian 11 with dpkg and no systemd, and the logs of a demo in /demo. Its glibc, 2.31, is Ubuntu 20.04's.
func chroot(t *testing.T, d demo) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	run(t, nil, "mmdebstrap", "--quiet", "--variant=required", "bullseye", root)
	run(t, nil, "cp", "-r", d.dir, root+"/demo")
	return root
}

// inChroot runs a shell's line in a chroot.
func inChroot(t *testing.T, root, line string) string {
	t.Helper()
	out, err := exec.Command("chroot", root, "sh", "-euc", line).CombinedOutput()
	require.NoErrorf(t, err, "%s\n%s", line, out)
	return string(out)
}

// checkInstalled runs the program as the service's user, who reads world-readable files and writes the state.
func checkInstalled(t *testing.T, root string, d demo) {
	t.Helper()
	assert.Equal(t, d.report, d.reportOf(t, "/demo", "chroot", "--userspec=trainbridge", root, "/usr/bin/trainbridge"))
	assert.FileExists(t, root+"/usr/lib/systemd/system/trainbridge.service")
	info, err := os.Stat(root + "/etc/trainbridge/trainbridge.env")
	require.NoError(t, err)
	assert.EqualValues(t, 0o640, info.Mode().Perm())
}

func TestReleasePackages(t *testing.T) {
	d := newDemo(t)
	root := chroot(t, d)
	t.Run("deb", func(t *testing.T) { checkDeb(t, root, d) })
	t.Run("rpm", func(t *testing.T) { checkRPM(t, root, d) }) // where the deb was purged
}

// dpkg installs, upgrades, removes and purges the deb: the state and the configuration outlive the upgrade.
func checkDeb(t *testing.T, root string, d demo) {
	t.Helper()
	deb := dist("trainbridge_" + releaseVersion(t) + "_amd64.deb")
	run(t, nil, "cp", deb, root)
	inChroot(t, root, install(t, "deb"))
	checkInstalled(t, root, d)

	inChroot(t, root, "mkdir /var/lib/trainbridge; echo positions >/var/lib/trainbridge/state; echo TRAINBRIDGE_SERVICE=mine >>/etc/trainbridge/trainbridge.env")
	newer := t.TempDir()
	run(t, nil, "dpkg-deb", "-R", deb, newer)
	run(t, nil, "sed", "-i", "s/^Version: .*/Version: 99/", newer+"/DEBIAN/control")
	require.NoError(t, os.WriteFile(filepath.Join(newer, "etc/trainbridge/trainbridge.env"), []byte("# of the new version\n"), 0o600))
	run(t, nil, "dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", newer, root+"/t.deb")
	inChroot(t, root, "dpkg --force-confdef -i /t.deb")
	assert.Contains(t, inChroot(t, root, "dpkg-query -W trainbridge"), "99")
	assert.Equal(t, "positions\n", inChroot(t, root, "cat /var/lib/trainbridge/state"))
	assert.Contains(t, inChroot(t, root, "cat /etc/trainbridge/trainbridge.env"), "SERVICE=mine")
	checkInstalled(t, root, d)

	inChroot(t, root, "dpkg -r trainbridge; test -e /var/lib/trainbridge/state; test -e /etc/trainbridge/trainbridge.env; test ! -e /usr/bin/trainbridge")
	inChroot(t, root, "dpkg -P trainbridge; test ! -e /var/lib/trainbridge; test ! -e /etc/trainbridge")
}

// rpm installs and removes the rpm.
func checkRPM(t *testing.T, root string, d demo) {
	t.Helper()
	rpm := dist("trainbridge-" + releaseVersion(t) + "-1.x86_64.rpm")
	requires, err := exec.Command("rpm", "-qp", "--requires", rpm).Output()
	require.NoError(t, err)
	assert.Contains(t, string(requires), "glibc >= 2.17")
	config, err := exec.Command("rpm", "-qpc", rpm).Output()
	require.NoError(t, err)
	assert.Equal(t, "/etc/trainbridge/trainbridge.env\n", string(config))
	place := "rpm --root " + root + " --dbpath /var/lib/rpm "
	runScript(t, dist(), strings.ReplaceAll(install(t, "rpm"), "rpm -i", place+"--nodeps -i")) // the chroot's glibc is a deb
	checkInstalled(t, root, d)
	runScript(t, root, place+"-e trainbridge")
	inChroot(t, root, "test ! -e /usr/bin/trainbridge")
}

// The program of the apk runs in an otherwise empty root.
func TestReleaseAPK(t *testing.T) {
	d := newDemo(t)
	root := t.TempDir()
	run(t, nil, "tar", "-xzf", dist("trainbridge_"+releaseVersion(t)+"_x86_64.apk"), "-C", root)
	info, err := os.ReadFile(filepath.Join(root, ".PKGINFO"))
	require.NoError(t, err)
	assert.Contains(t, string(info), "\narch = x86_64\n")
	assert.NoDirExists(t, filepath.Join(root, "usr/lib/systemd"))
	run(t, nil, "cp", "-r", d.dir, root+"/demo")
	assert.Equal(t, d.report, d.reportOf(t, "/demo", "chroot", root, "/usr/bin/trainbridge"))
}

// runc runs the image as its user, with a read-only root.
func TestReleaseImage(t *testing.T) {
	d := newDemo(t)
	for _, arch := range []string{"amd64", "arm64"} {
		layout, bundle := t.TempDir(), filepath.Join(t.TempDir(), "bundle")
		copied := strings.NewReplacer("docker-daemon:trainbridge", "oci:"+layout, "-amd64", "-"+arch).Replace(install(t, "image"))
		runScript(t, dist(), copied)
		run(t, nil, "umoci", "unpack", "--image", layout+":latest", bundle)
		if arch == "arm64" {
			assert.Equal(t, d.report, d.reportOf(t, d.dir, qemu, bundle+"/rootfs/usr/bin/trainbridge"))
			continue
		}
		assert.Equal(t, d.report, runImage(t, bundle, d))
	}
}

func runImage(t *testing.T, bundle string, d demo) string {
	t.Helper()
	raw, err := os.ReadFile(bundle + "/config.json")
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, json.Unmarshal(raw, &config))
	process := config["process"].(map[string]any)
	user := process["user"].(map[string]any)
	assert.EqualValues(t, 65532, user["uid"])
	assert.EqualValues(t, 65532, user["gid"])
	assert.Equal(t, []any{"/usr/bin/trainbridge"}, process["args"])
	process["args"] = []any{"/usr/bin/trainbridge", "report", "/demo"}
	process["env"] = append(process["env"].([]any), demoRun)
	process["terminal"] = false
	config["root"].(map[string]any)["readonly"] = true
	config["mounts"] = append(config["mounts"].([]any), map[string]any{"destination": "/demo", "source": d.dir, "type": "none", "options": []string{"bind", "ro"}})
	raw, err = json.Marshal(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bundle+"/config.json", raw, 0o600))
	for dir := d.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // the image's user reads the logs
	}
	cmd := exec.Command("runc", "--root", t.TempDir(), "run", "--bundle", bundle, fmt.Sprintf("trainbridge-%d", os.Getpid()))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", &stderr)
	return strings.ReplaceAll(stdout.String(), "/demo", "DIR")
}

// `make dist` in another clone of the commit gives the same bytes. The clone has only committed files: commit first.
func TestReleaseBytes(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "somewhere", "else")
	run(t, nil, "git", "clone", "--quiet", repoRoot, clone)
	run(t, nil, "make", "-C", clone, "dist")
	sums := func(root string) string {
		text, err := os.ReadFile(filepath.Join(root, "bin/dist/SHA256SUMS"))
		require.NoError(t, err)
		return string(text)
	}
	assert.Equal(t, sums(repoRoot), sums(clone))
	runScript(t, dist(), install(t, "check"))
}

// A third party's collector has one of our receivers, from a clone named by `replaces`, as in docs/guides/ocb.md.
func TestReleaseStranger(t *testing.T) {
	work := t.TempDir()
	out, manifest := filepath.Join(work, "collector"), filepath.Join(work, "manifest.yaml")
	ours, err := os.ReadFile(filepath.Join(repoRoot, "builder-config.yaml"))
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^  - gomod: .*\n    import: .*/trainlogreceiver\n`).FindString(string(ours))
	require.NotEmpty(t, lines)
	exporter := regexp.MustCompile(`(?m)^  - gomod: .*/debugexporter .*\n`).FindString(string(ours))
	require.NotEmpty(t, exporter)
	page, err := os.ReadFile(filepath.Join(repoRoot, "docs/guides/ocb.md"))
	require.NoError(t, err)
	replaces := regexp.MustCompile(`(?m)^replaces:\n  - .* => `).FindString(string(page))
	require.NotEmpty(t, replaces)
	root, err := filepath.Abs(repoRoot)
	require.NoError(t, err)
	text := "dist: {module: example.org/collector, name: collector, output_path: " + out + "}\nreceivers:\n" + lines + "exporters:\n" + exporter + replaces + root + "\n"
	require.NoError(t, os.WriteFile(manifest, []byte(text), 0o600))
	require.NoError(t, os.Mkdir(out, 0o750))
	run(t, nil, "cp", filepath.Join(root, "go.sum"), out) // no checksum has to be looked up
	runScript(t, root, "GOFLAGS='-mod=mod -buildvcs=false -trimpath' CGO_ENABLED=0 go tool -modfile=tools/go.mod builder --config="+manifest+" --skip-strict-versioning=false")
	assert.Contains(t, runScript(t, work, "collector/collector components"), "name: train_log")
}

// releaseVersion is the version in the manifest.
func releaseVersion(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot, "builder-config.yaml"))
	require.NoError(tb, err)
	_, after, found := strings.Cut(string(text), "\n  version: ")
	require.True(tb, found)
	version, _, _ := strings.Cut(after, "\n")
	return version
}
