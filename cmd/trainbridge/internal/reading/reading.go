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

// Flags say how logs are read.
type Flags struct {
	device, service, run string
	since, until         string
	zones                Zones
	patterns             Patterns
}

// Patterns are lines of logs with placeholders where the numbers stand.
type Patterns struct{ texts []string }

// Add adds the flag to a command.
func (p *Patterns) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.texts, "pattern", nil,
		"a line of a training log with placeholders, such as 'it {iteration} loss {loss} in {step_time:ms} ms'; again for others (docs/reference/patterns.md)")
}

// Of are the patterns as given. The error is a UsageError.
func (p *Patterns) Of(cmd *cobra.Command) ([]string, error) {
	for _, text := range p.texts {
		if err := trainlogreceiver.PatternError(text); err != nil {
			return nil, Errorf(cmd, "--pattern %q: %w", text, err)
		}
	}
	return p.texts, nil
}

// Zones are the zones of stamps without one.
type Zones struct{ timezone []string }

// Add adds the flag to a command.
func (z *Zones) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&z.timezone, "timezone", nil,
		"the zone of a log's stamps that state none, as `LOG=ZONE`: a path, a glob or a file's name, and an IANA name or +08:00 (default: local); again for others")
}

// Of are the zones as given. The error is a UsageError.
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

// Options are the flags as given. The error is a UsageError.
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

// moment reads a time.
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

// Open finds the files, and prints the paths that name none. The error, a UsageError, says that no file was found at all.
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

// LeftOut says how many files are not looked at.
func LeftOut(in *offline.Input) string {
	more := ""
	if in.More {
		more = " or more"
	}
	return fmt.Sprintf("of %s files the first %s are looked at, and %s%s are not",
		human.Thousands(int64(len(in.Files)+in.Left))+more, human.Thousands(int64(len(in.Files))), human.Thousands(int64(in.Left)), more)
}

// Read reads the logs, with progress. The error is a UsageError if nothing can be read.
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

// ReadAny is Read, and allows files without records.
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

// Unreadable says why nothing was read, if nothing was.
func Unreadable(read *offline.Reading) error {
	binary, empty := 0, 0
	for _, f := range read.Files {
		switch {
		case f.Receiver != "":
			return nil
		case f.Size == 0:
			empty++
		case f.Binary:
			binary++
		}
	}
	var why []string
	for _, n := range []struct {
		n    int
		what string
	}{{binary, "binary"}, {empty, "empty"}, {len(read.Files) - binary - empty, "text in no format that is known"}} {
		if n.n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	of, list := fmt.Sprintf("of %d files ", len(read.Files)), strings.Join(why, ", ")
	if len(read.Files) == 1 {
		of, list = "the file is ", strings.TrimPrefix(list, "1 ")
	}
	return errors.New("nothing to read: " + of + list + "; trainbridge check says more of each")
}
