// Command wheel packs a binary as a wheel for pip, which installs the binary on the path. The platform in the wheel's name is read from the binary: pip
// installs the wheel where the binary runs and nowhere else. The same files give the same bytes.
//
// Formats: packaging.python.org/specifications, "Binary distribution format", "Platform compatibility tags" (PEP 600, 656), "Core metadata"; SBOMs by PEP 770.
package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const name = "trainbridge"

const metadata = `Metadata-Version: 2.4
Name: trainbridge
Version: %s
Summary: OpenTelemetry Collector that turns ML training and inference logs into traces, and says why steps were slow
License-Expression: Apache-2.0
License-File: LICENSE
Keywords: opentelemetry,tracing,training,nccl,megatron,verl
Classifier: Environment :: Console
Classifier: Operating System :: MacOS
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Monitoring
Description-Content-Type: text/markdown

%s`

// file is a file of the wheel, by its path.
type file struct {
	path string
	data []byte
	mode fs.FileMode
}

func main() {
	log.SetFlags(0)
	version := flag.String("version", "", "the `version`, such as 0.1.0")
	binary := flag.String("binary", "", "the `program`")
	share := flag.String("share", "", "a `directory` that becomes <prefix>/share")
	license := flag.String("license", "", "the license's `text`")
	readme := flag.String("readme", "", "the description, a `file` of Markdown")
	sbom := flag.String("sbom", "", "what is in the program, a `file` of CycloneDX")
	epoch := flag.Int64("time", 0, "the time of all files, in `seconds` since 1970")
	out := flag.String("out", ".", "the `directory` of the wheel")
	flag.Parse()
	path, err := write(*version, *binary, *share, *license, *readme, *sbom, time.Unix(*epoch, 0).UTC(), *out)
	if err != nil {
		log.Fatal("wheel: ", err)
	}
	fmt.Println(path)
}

func write(version, binary, share, license, readme, sbom string, at time.Time, out string) (string, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	tags, err := platforms(program)
	if err != nil {
		return "", fmt.Errorf("%s: %w", binary, err)
	}
	data, info := name+"-"+version+".data/", name+"-"+version+".dist-info/"
	files := []file{{data + "scripts/" + name, program, 0o755}}
	for path, in := range map[string]string{info + "licenses/LICENSE": license, info + "sboms/" + name + ".cdx.json": sbom} {
		text, err := os.ReadFile(in)
		if err != nil {
			return "", err
		}
		files = append(files, file{path, text, 0o644})
	}
	err = filepath.WalkDir(share, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		within, err := filepath.Rel(share, path)
		files = append(files, file{data + "data/share/" + filepath.ToSlash(within), text, 0o644})
		return err
	})
	if err != nil {
		return "", err
	}
	description, err := os.ReadFile(readme)
	if err != nil {
		return "", err
	}
	var wheel strings.Builder
	wheel.WriteString("Wheel-Version: 1.0\nGenerator: trainbridge\nRoot-Is-Purelib: false\n")
	for _, tag := range tags {
		fmt.Fprintf(&wheel, "Tag: py3-none-%s\n", tag)
	}
	files = append(files, file{info + "METADATA", fmt.Appendf(nil, metadata, version, description), 0o644}, file{info + "WHEEL", []byte(wheel.String()), 0o644})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	files = append(files, record(files, info+"RECORD"))
	packed, err := pack(files, at)
	if err != nil {
		return "", err
	}
	path := filepath.Join(out, name+"-"+version+"-py3-none-"+strings.Join(tags, ".")+".whl")
	return path, os.WriteFile(path, packed, 0o644) //nolint:gosec // for everyone
}

// record lists the files with their checksums, and itself without.
func record(files []file, path string) file {
	var text strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&text, "%s,sha256=%s,%d\n", f.path, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&text, "%s,,\n", path)
	return file{path, []byte(text.String()), 0o644}
}

func pack(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		w, err := z.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
