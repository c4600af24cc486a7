package html

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

//go:embed assets vendor/uPlot.iife.min.js vendor/uPlot.min.css vendor/LICENSE
var files embed.FS

// scripts are the page's own, in the order in which they use each other.
var scripts = []string{"dom", "units", "series", "figures", "waterfall", "page"}

// write writes the page as one file, with the data as encoding/json writes them, <, > and & escaped. Nothing is asked of any network: the policy forbids it,
// and lets only the scripts and styles of this file run.
func write(w io.Writer, data []byte) error {
	chart := file("vendor/uPlot.iife.min.js")
	var own strings.Builder
	own.WriteString("(() => {\n\"use strict\";\n")
	for _, name := range scripts {
		own.WriteString(file("assets/" + name + ".js"))
	}
	own.WriteString("})();\n")
	style := file("vendor/uPlot.min.css") + file("assets/page.css")
	policy := fmt.Sprintf("default-src 'none'; script-src %s %s; style-src %s; img-src data:; base-uri 'none'; form-action 'none'",
		hash(chart), hash(own.String()), hash(style))

	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\" data-theme=\"auto\">\n<head>\n<meta charset=\"utf-8\">\n")
	fmt.Fprintf(&b, "<meta http-equiv=\"Content-Security-Policy\" content=%q>\n", policy)
	b.WriteString("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
	b.WriteString("<title>trainbridge report</title>\n<link rel=\"icon\" href=\"data:,\">\n")
	fmt.Fprintf(&b, "<style>%s</style>\n</head>\n<body>\n<noscript>This report draws itself with JavaScript. Its figures are also in ", style)
	b.WriteString("<code>trainbridge report --format text</code>.</noscript>\n<!-- uPlot:\n" + file("vendor/LICENSE") + "-->\n")
	b.WriteString("<script type=\"application/json\" id=\"data\">")
	b.Write(data)
	fmt.Fprintf(&b, "</script>\n<script>%s</script>\n<script>%s</script>\n</body>\n</html>\n", chart, own.String())
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("html: %w", err)
	}
	return nil
}

// file is one of the files that are built in. A browser reads line ends as "\n" before it hashes; there are no others here.
func file(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // go:embed would not have built
	}
	return string(text)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
