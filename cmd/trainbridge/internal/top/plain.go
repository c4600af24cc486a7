package top

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
)

// printer prints a line for each step and each verdict, for a pipe or a file. quit is called at a write error.
func printer(out io.Writer, quit func(error)) func(event any) {
	return func(event any) {
		text := ""
		switch e := event.(type) {
		case step:
			text = e.plain()
		case verdict:
			text = strings.TrimSpace(fmt.Sprintf("%s %s %s: %s", cmp.Or(e.severity, "verdict"), e.where, e.name, e.reason))
		}
		if _, err := fmt.Fprintln(out, reading.Clean(text)); err != nil {
			quit(err)
		}
	}
}

// plain is a step as a line: "step 12  step time 1.2 s  loss 3.21", with the figures that are known.
func (s *step) plain() string {
	var all []string
	if s.n >= 0 {
		all = append(all, fmt.Sprintf("step %d", s.n))
	}
	for _, f := range figures {
		v := f.of(s)
		switch {
		case !math.IsNaN(v):
			all = append(all, f.name+" "+f.print(v))
		case f.name == "loss" && s.odd != "":
			all = append(all, "loss "+s.odd)
		}
	}
	return strings.Join(all, "  ")
}
