// Package writable finds out before the start whether files can be kept in a directory.
package writable

import (
	"errors"
	"io/fs"

	"github.com/trainbridge/trainbridge/internal/outfile"
)

// Dir says why nothing can be written to a directory that is there, by a try: nothing else can say it of all file systems and users. Nothing of that is left
// behind.
func Dir(dir string) error {
	try, err := outfile.Temporary(dir)
	if err == nil {
		return try.Close()
	}
	if reason, ok := errors.AsType[*fs.PathError](err); ok {
		return reason.Err // the path is the try's
	}
	return err
}
