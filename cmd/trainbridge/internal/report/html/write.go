package html

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"sync"
)

//go:embed assets vendor/uPlot.iife.min.js vendor/uPlot.min.css vendor/LICENSE
var files embed.FS

// scripts of the page, in the order of their use.
var scripts = []string{"dom", "units", "series", "figures", "waterfall", "page", "places"}

// Frame is the page around its data.
type Frame struct {
	before string // up to the attributes of the element of the data
	after  []byte // from the end of that element on
	Policy string // Content-Security-Policy: only the scripts and styles of the page run, and only the frame's requests go to a network
}

// Served is the frame of a page that asks its own server for new data.
var Served = sync.OnceValue(func() *Frame {
	return newFrame("; connect-src 'self'", append(scripts[:len(scripts):len(scripts)], "live"))
})

// ofFile is the frame of a page in a file.
var ofFile = sync.OnceValue(func() *Frame { return newFrame("", scripts) })

// newFrame makes a frame with some scripts. connect is the part of the policy about requests of the page; "": none is allowed.
func newFrame(connect string, scripts []string) *Frame {
	chart := file("vendor/uPlot.iife.min.js")
	// Our scripts in one function: their names are no globals.
	var own strings.Builder
	own.WriteString("(() => {\n\"use strict\";\n")
	for _, name := range scripts {
		own.WriteString(file("assets/" + name + ".js"))
	}
	own.WriteString("})();\n")
	style := file("vendor/uPlot.min.css") + file("assets/page.css")
	f := &Frame{Policy: fmt.Sprintf("default-src 'none'; script-src %s %s; style-src %s; img-src data:%s; base-uri 'none'; form-action 'none'",
		hash(chart), hash(own.String()), hash(style), connect)}

	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\" data-theme=\"auto\">\n<head>\n<meta charset=\"utf-8\">\n")
	fmt.Fprintf(&b, "<meta http-equiv=\"Content-Security-Policy\" content=%q>\n", f.Policy)
	b.WriteString("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
	b.WriteString("<title>trainbridge report</title>\n<link rel=\"icon\" href=\"data:,\">\n")
	fmt.Fprintf(&b, "<style>%s</style>\n</head>\n<body>\n<noscript>This report draws itself with JavaScript. Its figures are also in ", style)
	b.WriteString("<code>trainbridge report --format text</code>.</noscript>\n<!-- uPlot:\n" + file("vendor/LICENSE") + "-->\n")
	b.WriteString("<script type=\"application/json\" id=\"data\"")
	f.before = b.String()
	f.after = fmt.Appendf(nil, "</script>\n<script>%s</script>\n<script>%s</script>\n</body>\n</html>\n", chart, own.String())
	return f
}

// Write writes the page as a file, with the data as from Page.Data, and a tag of the data, a quoted string; "": none.
func (f *Frame) Write(w io.Writer, data []byte, tag string) error {
	if tag != "" {
		tag = " data-tag='" + tag + "'"
	}
	for _, part := range [][]byte{[]byte(f.before + tag + ">"), data, f.after} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("html: %w", err)
		}
	}
	return nil
}

// write writes a page as a file. The policy forbids all requests to networks.
func write(w io.Writer, data []byte) error { return ofFile().Write(w, data, "") }

// file is a built-in file. A browser reads line ends as "\n" before hashing; the files have no others.
func file(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // go:embed would not have built
	}
	return string(text)
}

// hash is the source expression by which a policy allows a script or style.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
