// Package writable finds out before the start whether files can be kept in a directory.
package writable

import (
	"github.com/trainbridge/trainbridge/internal/outfile"
)

// Dir says why an existing directory cannot be written to, by a try: no other test is right for all file systems and users. The try leaves nothing behind.
func Dir(dir string) error {
	try, err := outfile.Temporary(dir)
	if err == nil {
		return try.Close()
	}
	return outfile.Reason(err) // the path is the try's
}
