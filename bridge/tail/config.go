package tail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.opentelemetry.io/collector/component"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/glob"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/rotation"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/internal/writable"
)

// Config selects the files to read. Every file receiver squashes it into the receiver's own config.
type Config struct {
	// Include lists the files to read, as globs with ** (doublestar). Required, unless IncludeByContent is set.
	Include []string `mapstructure:"include"`
	// IncludeByContent lists globs of logs of any kind, shared by several receivers: each file is read only by the receiver that first understands a line, or
	// by two where two kinds of logs stand in one file (internal/mixed).
	// Files in a receiver's Include belong to the receiver.
	IncludeByContent []string `mapstructure:"include_by_content"`
	// Exclude lists globs of files to leave alone.
	Exclude []string `mapstructure:"exclude"`
	// IncludeNonLogs includes files that are no logs by name, such as weights, pictures and files below .git or node_modules (internal/nonlog). By default
	// globs exclude such names unless spelled out (*.bin); a path without meta characters is always read. Default false.
	IncludeNonLogs bool `mapstructure:"include_non_logs"`
	// StartAt is the start position in files present at the receiver's start: beginning (default) or end. A file that appears later is always read from its
	// beginning.
	StartAt string `mapstructure:"start_at"`
	// PollInterval is the interval between looks at an active file and at the globs. Idle files are polled less and less often, down to every 5 s; with
	// inotify, events shorten the delay. At least 10ms, default 200ms.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// Storage names the storage extension for the offsets, such as state_storage. Without a storage, a restart reads from StartAt again.
	Storage *component.ID `mapstructure:"storage"`
	// MaxLineBytes bounds one line: longer lines are dropped and counted. Default 1 MiB.
	MaxLineBytes int `mapstructure:"max_line_bytes"`
	// PendingTimeout is the longest wait for the other half of a record, and for the newline of a last line. Default 10m.
	PendingTimeout time.Duration `mapstructure:"pending_timeout"`
	// MaxInFlightBytes bounds the log bytes of records sent downstream and not yet accepted; a line of less than 2 KiB counts as 2 KiB, about the size of a
	// span. A single file gets at most a quarter. Default 8 MiB.
	MaxInFlightBytes int64 `mapstructure:"max_in_flight_bytes"`
	// FollowSymlinks reads files that the globs reach through a symbolic link. Default false.
	FollowSymlinks bool `mapstructure:"follow_symlinks"`
	// Compression is auto (default: .gz and .zst by file name), gzip, zstd or none.
	Compression string `mapstructure:"compression"`
	// DeadLetter is a file for lines refused by the backend as invalid (INVALID_ARGUMENT), as logged but without secrets. The directory must exist, and Include
	// and Document must not match the file. Default: none; refused lines are only counted.
	DeadLetter string `mapstructure:"dead_letter"`
	// Document lists globs of files that are rewritten whole: each new content is passed on as one line.
	Document []string `mapstructure:"document"`
}

// The values of Config.StartAt and Config.Compression.
const (
	StartAtBeginning = "beginning"
	StartAtEnd       = "end"

	CompressionAuto = unpack.Auto
	CompressionGzip = unpack.Gzip
	CompressionZstd = unpack.Zstd
	CompressionNone = unpack.None
)

const (
	minLineBytes = 1 << 10
	maxLineBytes = 64 << 20
	minInFlight  = 64 << 10
	minPoll      = 10 * time.Millisecond
)

var (
	errNoInclude      = errors.New("'include' must list at least one glob, such as /var/log/verl/*.log")
	errBadGlob        = errors.New("not a glob: check its brackets and braces")
	errStartAt        = errors.New("'start_at' must be beginning or end")
	errPollInterval   = fmt.Errorf("'poll_interval' must be at least %v, such as 200ms", minPoll)
	errMaxLineBytes   = fmt.Errorf("'max_line_bytes' must be between %d and %d", minLineBytes, maxLineBytes)
	errPendingTimeout = errors.New("'pending_timeout' must be greater than zero, such as 10m")
	errMaxInFlight    = fmt.Errorf("'max_in_flight_bytes' must be at least %d", minInFlight)
	errCompression    = errors.New("'compression' must be auto, gzip, zstd or none")
	errDeadLetterRead = errors.New("is read itself, so that each refused line would be read and refused again: " +
		"name a file that neither 'include' nor 'document' matches")
)

// DefaultConfig returns the defaults of every field but Include.
func DefaultConfig() Config {
	return Config{
		StartAt:          StartAtBeginning,
		PollInterval:     200 * time.Millisecond,
		MaxLineBytes:     1 << 20,
		PendingTimeout:   10 * time.Minute,
		MaxInFlightBytes: 8 << 20,
		Compression:      CompressionAuto,
	}
}

// Check reports all errors at once, with their keys, for the Validate of a receiver's config. It is not named Validate, because the collector also calls
// Validate of a squashed struct, and would report every error twice.
func (c Config) Check() error {
	var errs []error
	if len(c.Include) == 0 && len(c.IncludeByContent) == 0 && len(c.Document) == 0 {
		errs = append(errs, errNoInclude)
	}
	for _, list := range []struct {
		key   string
		globs []string
	}{{"include", c.Include}, {"include_by_content", c.IncludeByContent}, {"exclude", c.Exclude}, {"document", c.Document}} {
		for _, g := range list.globs {
			if g == "" || !doublestar.ValidatePattern(g) {
				errs = append(errs, fmt.Errorf("'%s': %q is %w", list.key, g, errBadGlob))
			}
		}
	}
	if c.StartAt != StartAtBeginning && c.StartAt != StartAtEnd {
		errs = append(errs, errStartAt)
	}
	if c.PollInterval < minPoll {
		errs = append(errs, errPollInterval)
	}
	if c.MaxLineBytes < minLineBytes || c.MaxLineBytes > maxLineBytes {
		errs = append(errs, errMaxLineBytes)
	}
	if c.PendingTimeout <= 0 {
		errs = append(errs, errPendingTimeout)
	}
	if c.MaxInFlightBytes < minInFlight {
		errs = append(errs, errMaxInFlight)
	}
	switch c.Compression {
	case CompressionAuto, CompressionGzip, CompressionZstd, CompressionNone:
	default:
		errs = append(errs, errCompression)
	}
	return errors.Join(append(errs, c.checkDeadLetter())...)
}

// checkDeadLetter returns an error if refused lines cannot be written to DeadLetter, or would be read again. nil: DeadLetter is usable, or not set.
func (c Config) checkDeadLetter() error {
	if c.DeadLetter == "" {
		return nil
	}
	if c.reads(c.DeadLetter) {
		return fmt.Errorf("'dead_letter': %q %w", c.DeadLetter, errDeadLetterRead)
	}
	// The file itself is not created before the first refused line.
	fi, err := os.Stat(c.DeadLetter)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = writable.Dir(filepath.Dir(c.DeadLetter))
	case err == nil && !fi.Mode().IsRegular():
		err = osfile.ErrNotRegular
	case err == nil:
		var f *os.File
		f, err = os.OpenFile(c.DeadLetter, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("'dead_letter': %q cannot be written (%w): name a file in a directory that is there and that uid %d may write to",
			c.DeadLetter, outfile.Reason(err), os.Getuid())
	}
	return nil
}

// reads reports whether a file of this name would be read, also as a rotated file of a path in the globs.
func (c Config) reads(path string) bool {
	read := Config{Include: absolutes(slices.Concat(c.Include, c.IncludeByContent, c.Document)), Exclude: absolutes(c.Exclude)}
	path = absolute(path)
	for base := range rotation.Bases(path) {
		if read.Includes(base) {
			return true
		}
	}
	return read.Includes(path)
}

// absolutes returns paths or globs made absolute.
func absolutes(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = absolute(p)
	}
	return out
}

// absolute returns a path made absolute, so that paths written in both ways can be compared.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Includes reports whether Include names a file and Exclude does not.
func (c Config) Includes(path string) bool {
	return glob.New(c.Include).Match(path) && !glob.New(c.Exclude).Match(path)
}
