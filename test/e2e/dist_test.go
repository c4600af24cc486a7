//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// demoRun names the run of a demo: the default name is of its directory, which differs in a chroot.
const demoRun = "TRAINBRIDGE_RUN_ID=demo"

// demo is the logs of a small job, and the tested binary's report of them.
type demo struct{ dir, report string }

func newDemo(tb testing.TB) demo {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "job")
	run(tb, nil, trainbridgeBin(tb), "gen", "run", "--ranks", "4", "--steps", "30", "--faults", "straggler", dir)
	d := demo{dir: dir}
	d.report = d.reportOf(tb, dir, trainbridgeBin(tb))
	require.Contains(tb, d.report, "waiting for rank")
	return d
}

// reportOf is a command's output for `report PLACE`, where PLACE is the path of the logs for that command.
func (d demo) reportOf(tb testing.TB, place string, command ...string) string {
	tb.Helper()
	cmd := exec.Command(command[0], append(command[1:], "report", place)...)
	cmd.Env = append(os.Environ(), demoRun)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoErrorf(tb, err, "%v\n%s", command, stderr.String())
	return strings.ReplaceAll(string(out), place, "DIR")
}

// packages packs the tested binary.
func packages(tb testing.TB, kinds ...string) (dir string) {
	tb.Helper()
	dir = tb.TempDir()
	run(tb, nil, repoRoot+"/tools/dist/package.sh", append([]string{trainbridgeBin(tb), runtime.GOARCH, filepath.Join(repoRoot, "bin/share"), dir}, kinds...)...)
	return dir
}

// only is the single file matching a pattern.
func only(tb testing.TB, pattern ...string) string {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join(pattern...))
	require.NoError(tb, err)
	require.Lenf(tb, found, 1, "%v", pattern)
	return found[0]
}

// A deb has the program, its man pages and a service accepted by systemd, and the configuration belongs to the administrator. `make release-test` installs it.
func TestDeb(t *testing.T) {
	t.Parallel()
	d := newDemo(t)
	deb, root := only(t, packages(t, "deb"), "*.deb"), t.TempDir()
	run(t, nil, "dpkg-deb", "-x", deb, root)
	assert.Equal(t, d.report, d.reportOf(t, d.dir, root+"/usr/bin/trainbridge"))
	for _, path := range []string{
		"usr/share/man/man1/trainbridge-report.1.gz", "usr/share/bash-completion/completions/trainbridge", "usr/share/zsh/vendor-completions/_trainbridge",
		"usr/share/fish/vendor_completions.d/trainbridge.fish", "usr/share/doc/trainbridge/copyright", "usr/share/doc/trainbridge/slurm/prolog.sh",
		"usr/lib/sysusers.d/trainbridge.conf",
	} {
		assert.FileExists(t, filepath.Join(root, path))
	}
	conffiles, err := exec.Command("dpkg-deb", "--ctrl-tarfile", deb).Output()
	require.NoError(t, err)
	assert.Contains(t, string(conffiles), "/etc/trainbridge/trainbridge.env\n")
	sbom, err := os.ReadFile(filepath.Join(root, "usr/share/doc/trainbridge/trainbridge.cdx.json"))
	require.NoError(t, err)
	checkSBOM(t, sbom, trainbridgeBin(t))
	checkManPages(t, filepath.Join(root, "usr/share/man/man1"))

	const unit = "/usr/lib/systemd/system/trainbridge.service"
	runScript(t, root, strings.ReplaceAll(install(t, "service"), "enable --now", "--root="+root+" enable"))
	assert.FileExists(t, root+unit)
	_, err = os.Lstat(filepath.Join(root, "etc/systemd/system/multi-user.target.wants/trainbridge.service"))
	require.NoError(t, err)
	// 25 of 100 is systemd's 2.5: how much of the host a service could reach.
	run(t, nil, "systemd-analyze", "security", "--offline=true", "--threshold=25", root+unit)
	run(t, nil, "sed", "-i", "s#=/usr/bin/#="+root+"/usr/bin/#", root+unit)
	run(t, nil, "systemd-analyze", "verify", "--man=no", root+unit)
}

// checkManPages checks for a man page of each command.
func checkManPages(t *testing.T, dir string) {
	t.Helper()
	help, err := exec.Command(trainbridgeBin(t), "-h").Output()
	require.NoError(t, err)
	_, commands, found := strings.Cut(string(help), "Available Commands:\n")
	require.True(t, found)
	commands, _, _ = strings.Cut(commands, "\n\n")
	for line := range strings.Lines(commands) {
		name := strings.Fields(line)[0]
		if name == "help" {
			continue
		}
		packed, err := os.ReadFile(filepath.Join(dir, "trainbridge-"+name+".1.gz"))
		require.NoError(t, err)
		_, err = gzip.NewReader(bytes.NewReader(packed))
		require.NoError(t, err)
	}
}

// pip installs a wheel of the tested binary offline, if its tag fits this machine, and then the statements of docs/install.md hold.
func TestWheel(t *testing.T) {
	t.Parallel()
	checkWheel(t, packages(t, "wheel"))
}

// checkWheel runs the commands of docs/install.md where the wheels are.
func checkWheel(t *testing.T, dir string) {
	t.Helper()
	work := t.TempDir()
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	run(t, nil, "python3", "-m", "venv", work+"/venv")
	commands := strings.ReplaceAll(install(t, "wheel"), "--find-links .", "--quiet --disable-pip-version-check --find-links "+dir)
	bin, err := filepath.Abs(trainbridgeBin(t))
	require.NoError(t, err)
	report := runScript(t, work, "export "+demoRun+" PATH="+work+"/venv/bin:$PATH\n"+commands)
	assert.Equal(t, report, runScript(t, work, demoRun+" "+bin+" report job-logs"))
	assert.FileExists(t, work+"/venv/share/man/man1/trainbridge.1.gz")
	assert.FileExists(t, work+"/venv/share/doc/trainbridge/slurm/train.sbatch")
	assert.FileExists(t, work+"/venv/share/doc/trainbridge/slurm/end.sh", "which train.sbatch needs")
}

// install is the block of docs/install.md for a kind of file: commands to run in the directory of the files.
func install(tb testing.TB, kind string) string {
	tb.Helper()
	return docBlock(tb, "docs/install.md", kind)
}

// docBlock is the block of a page with a mark after its language.
func docBlock(tb testing.TB, page, mark string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot, page))
	require.NoError(tb, err)
	_, block, found := strings.Cut(string(text), "\n```sh "+mark+"\n")
	require.True(tb, found, mark)
	block, _, _ = strings.Cut(block, "```")
	return block
}

// runScript runs commands in a directory and returns their output.
func runScript(tb testing.TB, dir, commands string) string {
	tb.Helper()
	cmd := exec.Command("bash", "-euc", commands)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoErrorf(tb, err, "%s\n%s\n%s", commands, out, &stderr)
	return string(out)
}
