package statestorage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Config of the state_storage extension.
type Config struct {
	// Directory keeps the state of one collector. It is created if missing. Required.
	Directory string `mapstructure:"directory"`
}

var errDirectory = errors.New("'directory' is not set: name a directory for the state (TRAINBRIDGE_STATE_DIR in the shipped configuration)")

// Validate checks whether the directory can be used or created. It changes nothing.
func (c *Config) Validate() error {
	if c.Directory == "" {
		return errDirectory
	}
	for dir := filepath.Clean(c.Directory); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			continue // the directory will be created in the nearest existing ancestor
		}
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "use", Path: dir, Err: unix.ENOTDIR}
		}
		if err == nil {
			err = unix.Access(dir, unix.W_OK|unix.X_OK)
			if err != nil {
				err = &fs.PathError{Op: "write to", Path: dir, Err: err}
			}
		}
		if err != nil {
			return fmt.Errorf("'directory' cannot be used, name one that this user can write to: %w", err)
		}
		return nil
	}
}
