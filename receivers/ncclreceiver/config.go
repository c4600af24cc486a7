package ncclreceiver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/formats"
	"github.com/trainbridge/trainbridge/spans"
)

// Config is the configuration of nccl. The fields from Operations to MaxSize mean the same as VCCL's NCCL_TELEMETRY_… variables, as some of JoinConfig's do.
type Config struct {
	tail.Config               `mapstructure:",squash"`
	spans.RunConfig           `mapstructure:",squash"`
	clock.ZoneConfig          `mapstructure:",squash"`
	filereceiver.SeriesConfig `mapstructure:",squash"`
	collectives.JoinConfig    `mapstructure:",squash"`
	// Kafka, if present, replaces the files.
	Kafka configoptional.Optional[KafkaConfig] `mapstructure:"kafka"`
	// RAS, if set, is asked for the state of a live job; without include nothing else is read.
	RAS configoptional.Optional[RASConfig] `mapstructure:"ras"`
	// Redact configures the redaction of texts.
	Redact redact.Config `mapstructure:"redact"`
	// Join is the place where the records of the ranks are joined: local (default), here, with the logs of all ranks; or remote, by the receiver of the packed
	// records. With remote, only HangTimeout and Collector of JoinConfig matter.
	Join string `mapstructure:"join"`
	// Format of the files: auto (default: by their first line), nccl_inspector, nccl_profiler, flight_recorder, vccl_json, vccl_csv, vccl_flow, vccl_packed,
	// vccl_mean or vccl_text.
	Format string `mapstructure:"format"`
	// Operations lists the operations to keep, such as [allreduce, broadcast]. Default: all.
	Operations []string `mapstructure:"operations"`
	// Ranks lists the ranks to keep, by their numbers in the log. Default: all.
	Ranks []int32 `mapstructure:"ranks"`
	// MinSize and MaxSize bound the message sizes to keep, in bytes. 0 (default): no bound.
	MinSize int64 `mapstructure:"min_size"`
	MaxSize int64 `mapstructure:"max_size"`
}

// The values of Config.Join.
const (
	joinLocal  = "local"
	joinRemote = "remote"
)

// The values of Config.Format are the names of formats.All, and auto. The times of the Flight Recorder are a watchdog's observations.
const (
	formatAuto     = "auto"
	formatRecorder = formats.FlightRecorder
)

// Formats returns the formats of nccl by their names in the configuration, in order.
func Formats() []string { return formats.Names() }

var (
	errJoin  = errors.New("'join' must be local or remote: local joins the ranks' records here, remote sends them to a receiver that joins those of all hosts")
	errJoins = errors.New("with 'join: remote' nothing is joined here: 'sample_rate', 'window_size', 'anomaly_detection', 'anomaly_threshold', 'correct_clock' " +
		"and 'max_state_bytes' belong to the receiver that joins")
	errFormat    = fmt.Errorf("'format' must be one of %s", strings.Join(append([]string{formatAuto}, formats.Names()...), ", "))
	errRanks     = fmt.Errorf("'ranks' must be 0 to %d, such as [0, 1, 2, 3]", collectives.MaxRank)
	errSize      = errors.New("'min_size' and 'max_size' must not be negative, and 'max_size' not below 'min_size': leave one out for no bound")
	errOperation = errors.New("'operations' has an empty name: list operations such as [allreduce, broadcast]")
)

// Unmarshal returns an error for durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate returns an error for each key that is invalid or contradicts another key; each error says the fix. The collector calls Validate at startup.
func (c *Config) Validate() error {
	_, err := c.Location()
	errs := []error{err}
	check := func(ok bool, err error) {
		if !ok {
			errs = append(errs, err)
		}
	}
	check(c.Join == joinLocal || c.Join == joinRemote, errJoin)
	// With join: remote, keys of the joining receiver must stay at their defaults, except two that matter to both.
	unset := collectives.DefaultJoinConfig()
	unset.HangTimeout, unset.Collector = c.HangTimeout, c.Collector
	check(c.Join != joinRemote || unset == c.JoinConfig, errJoins)
	if a := c.RAS.Get(); a != nil {
		a.check(check)
	}
	switch k := c.Kafka.Get(); {
	case k != nil:
		check(!c.hasFiles(), errFilesToo)
		check(c.Join != joinRemote, errKafkaRemote)
		k.check(check)
	case c.hasFiles() || !c.RAS.HasValue(): // RAS alone needs no files
		errs = append(errs, c.Config.Check())
	}
	check(c.Format == formatAuto || formats.Named(c.Format) != nil, errFormat)
	check(!slices.ContainsFunc(c.Ranks, func(r int32) bool { return r < 0 || r > collectives.MaxRank }), errRanks)
	check(c.MinSize >= 0 && c.MaxSize >= 0 && (c.MaxSize == 0 || c.MaxSize >= c.MinSize), errSize)
	check(!slices.ContainsFunc(c.Operations, func(name string) bool { return op.Canonical(name) == "" }), errOperation)
	c.JoinConfig.Check(check)
	return errors.Join(errs...)
}

// hasFiles reports whether any files are configured.
func (c *Config) hasFiles() bool { return len(c.Include)+len(c.IncludeByContent)+len(c.Document) > 0 }

// isDump reports whether a file is a dump of the Flight Recorder, one object written whole, by the file's name or the configured format.
func (c *Config) isDump(path string) bool {
	return flightrecorder.IsName(path) || c.Format == formatRecorder && c.Includes(path)
}
