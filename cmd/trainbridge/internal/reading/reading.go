// Package reading is common to the commands over finished logs: their paths and flags, progress, and errors about logs without anything to read.
package reading

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
)

// UsageError is a wrong command line, or a wrong path.
type UsageError struct{ error }

// Usage makes a UsageError.
func Usage(err error) error { return &UsageError{err} }

// Errorf makes a UsageError of a command.
func Errorf(cmd *cobra.Command, format string, args ...any) error {
	return Usage(fmt.Errorf(cmd.Name()+": "+format, args...))
}

// NoArgs is the Args of a command that takes flags alone.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Errorf(cmd, "%q is no flag, and there is nothing else to name: %s -h lists the flags", args[0], cmd.CommandPath())
	}
	return nil
}

// Paths is the Args of a command that takes PATH….
func Paths(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Errorf(cmd, "name the logs: files, directories, globs, or - for the standard input")
	}
	return nil
}

// Flags are the flags of all commands that read logs, as texts until Options reads them.
type Flags struct {
	device, service, run string
	since, until         string // times
	zones                Zones
	patterns             Patterns
}

// Patterns is the flag --pattern: lines of logs with placeholders where the numbers stand.
type Patterns struct{ texts []string }

// Add adds the flag to a command.
func (p *Patterns) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.texts, "pattern", nil,
		"a line of a training log with placeholders, such as 'it {iteration} loss {loss} in {step_time:ms} ms'; again for others (docs/reference/patterns.md)")
}

// Of returns the given patterns, each checked. The error is a UsageError.
func (p *Patterns) Of(cmd *cobra.Command) ([]string, error) {
	for _, text := range p.texts {
		if err := trainlogreceiver.PatternError(text); err != nil {
			return nil, Errorf(cmd, "--pattern %q: %w", text, err)
		}
	}
	return p.texts, nil
}

// Zones is the flag --timezone: for some logs the time zone of their stamps, where the stamps state no zone.
type Zones struct{ timezone []string }

// Add adds the flag to a command.
func (z *Zones) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&z.timezone, "timezone", nil,
		"the zone of a log's stamps that state none, as `LOG=ZONE`: a path, a glob or a file's name, and an IANA name or +08:00 (default: local); again for others")
}

// Of returns the given zones. The error is a UsageError.
func (z *Zones) Of(cmd *cobra.Command) (all []offline.Zone, err error) {
	for _, text := range z.timezone {
		zone, err := offline.ParseZone(text)
		if err != nil {
			return nil, Errorf(cmd, "--timezone %w", err)
		}
		all = append(all, zone)
	}
	return all, nil
}

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.device, "device", "", "the GPUs that train, such as 'H100 SXM', for MFU")
	fs.StringVar(&f.service, "service", "", "the name of the job (default: each log's own)")
	fs.StringVar(&f.run, "run", "", "the run that all logs are of (default: told by directories)")
	fs.StringVar(&f.since, "since", "", "only what ends after this `time`: 2026-11-23, '2026-11-23 14:00:05' (local), 2026-11-23T14:00:05Z")
	fs.StringVar(&f.until, "until", "", "only what begins before this `time`")
	f.zones.Add(cmd)
	f.patterns.Add(cmd)
}

// Options makes the options of a reading from the given flags. The error, a UsageError, names the wrong flag.
func (f *Flags) Options(cmd *cobra.Command) (opt offline.Options, err error) {
	opt = offline.Options{Run: f.run, Service: f.service, Device: f.device}
	opt.Zones, err = f.zones.Of(cmd)
	if err != nil {
		return opt, err
	}
	opt.Patterns, err = f.patterns.Of(cmd)
	if err != nil {
		return opt, err
	}
	opt.Since, err = moment(cmd, "since", f.since)
	if err != nil {
		return opt, err
	}
	opt.Until, err = moment(cmd, "until", f.until)
	if err != nil {
		return opt, err
	}
	if !opt.Since.IsZero() && !opt.Until.IsZero() && !opt.Since.Before(opt.Until) {
		return opt, Errorf(cmd, "--since %s is not before --until %s", f.since, f.until)
	}
	return opt, nil
}

// moment reads the time of a flag: RFC 3339, or a date with or without a time of day, in the local zone. An empty text is the zero time.
func moment(cmd *cobra.Command, flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, Errorf(cmd, "--%s %q: write 2026-11-23, '2026-11-23 14:00:05' or 2026-11-23T14:00:05Z", flag, text)
}

// Open finds the files of the paths. It prints, a line each, what is left out: paths without a file, files that are no logs by their names, the kernel's files,
// links, files beyond the limit. The error, a UsageError, says that no file was found at all.
func Open(cmd *cobra.Command, paths []string) (*offline.Input, error) {
	in, err := offline.Open(paths, cmd.InOrStdin())
	if err != nil {
		return nil, Errorf(cmd, "%w", err)
	}
	for _, missing := range in.Missing {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", Clean(missing.Error()))
	}
	if in.PassedOver.Sum() > 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "passed over by name, as no logs: %s; a file that is named itself is read\n", in.PassedOver)
	}
	if len(in.Kernel) > 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "passed over, as the kernel's: %s\n", in.Kernel)
	}
	if text := in.LinksText(); text != "" {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", Clean(text))
	}
	if in.Left > 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: name a directory or a glob that holds fewer\n", LeftOut(in))
	}
	return in, nil
}

// LeftOut says how many files are beyond the limit: "of 120,000 files the first 100,000 are looked at, and 20,000 are not". Where the search for files ended
// early (in.More), both numbers have "or more" behind.
func LeftOut(in *offline.Input) string {
	more := ""
	if in.More {
		more = " or more"
	}
	return fmt.Sprintf("of %s files the first %s are looked at, and %s%s are not",
		human.Thousands(int64(len(in.Files)+in.Left))+more, human.Thousands(int64(len(in.Files))), human.Thousands(int64(in.Left)), more)
}

// Read reads the logs into a sink and shows the progress. The error is a UsageError if no file is in a known format.
func Read(ctx context.Context, cmd *cobra.Command, in *offline.Input, opt offline.Options, to offline.Sink) (*offline.Reading, error) {
	read, err := ReadAny(ctx, cmd, in, opt, to)
	if err != nil {
		return nil, err
	}
	if why := Unreadable(read); why != nil {
		return nil, Errorf(cmd, "%w", why)
	}
	return read, nil
}

// ReadAny is Read, but no error if no file is in a known format. It also prints each --timezone that names no file.
func ReadAny(ctx context.Context, cmd *cobra.Command, in *offline.Input, opt offline.Options, to offline.Sink) (*offline.Reading, error) {
	for _, z := range opt.Zones {
		if !slices.ContainsFunc(in.Files, z.Of) {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "--timezone %s=%s: none of the files is called so\n", Clean(z.Log), z.Name)
		}
	}
	bar := newProgress(cmd.ErrOrStderr(), time.Now)
	opt.Progress = bar.show
	defer bar.clear()
	return offline.Read(ctx, in, opt, to)
}

// Unreadable is nil if some file is in a known format. Otherwise the error counts the files by the reason: "nothing to read: of 3 files 1 binary, 2 empty; …".
func Unreadable(read *offline.Reading) error {
	files := make(map[string]int) // by reason
	for _, f := range read.Files {
		reason := f.Unread()
		if reason == "" {
			return nil
		}
		files[reason]++
	}
	var why []string
	for _, reason := range []struct{ of, name string }{
		{offline.UnreadBinary, "binary"},
		{offline.UnreadEmpty, "empty"},
		{offline.UnreadClosed, "unreadable"},
		{offline.UnreadUnknown, "text in no format that is known"},
	} {
		if n := files[reason.of]; n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n, reason.name))
		}
	}
	of, list := fmt.Sprintf("of %d files ", len(read.Files)), strings.Join(why, ", ")
	if len(read.Files) == 1 {
		of, list = "the file is ", strings.TrimPrefix(list, "1 ")
	}
	return errors.New("nothing to read: " + of + list + "; trainbridge check says more of each")
}
