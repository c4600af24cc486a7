// Package writable finds out before the start whether files can be kept in a directory.
package writable

import (
	"errors"
	"io/fs"
	"os"
)

// Dir says why nothing can be written to a directory that is there, by a try: nothing else can say it of all file systems and users. Nothing of that is left
// behind.
func Dir(dir string) error {
	try, err := os.MkdirTemp(dir, ".trainbridge-*")
	if err == nil {
		_ = os.Remove(try) // it may have been deleted with the directory
		return nil
	}
	if reason, ok := errors.AsType[*fs.PathError](err); ok {
		return reason.Err // the path is the try's
	}
	return err
}
