// Package kernelfs knows the file systems with data of the kernel: none of their files are logs, many have no end, and reading some has effects.
package kernelfs

import (
	"cmp"
	"fmt"
	"slices"
)

const mostNamed = 5

// Passed are the skipped directories, each the root of such a file system, with the file system's name.
type Passed map[string]string

// String lists the directories, those with the shortest paths first, at most mostNamed: "/proc (proc), /sys (sysfs), … and 3 more".
func (p Passed) String() string {
	paths := make([]string, 0, len(p))
	for path := range p {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	text := ""
	for i, path := range paths {
		if i == mostNamed {
			return text + fmt.Sprintf(" and %d more", len(paths)-i)
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s (%s)", path, p[path])
	}
	return text
}
