//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
)

// Eight wide logs wait for an unreachable backend. Once it is back, their requests fit a receiver with the default limit, and everything arrives.
func TestWideBacklog(t *testing.T) {
	t.Parallel()
	const files, steps = 8, 1500
	logs := t.TempDir()
	for i := range files {
		generateTrainIn(t, filepath.Join(logs, strconv.Itoa(i)), "jsonl", "train_log", "--steps", strconv.Itoa(steps), "--fields", "40", "--seed", strconv.Itoa(i))
	}
	j := startJaeger(t)
	p := startProxy(t, j.otlp)
	p.cut()
	c := newCollector(t, trainbridgeBin(t), "/nothing/*", p.addr)
	c.env = append(c.env, "TRAINBRIDGE_TRAIN_LOGS="+logs+"/*/*")
	c.up(t)
	eventually(t, func() error {
		if !c.logged("no backend at") {
			return errors.New("it does not say that there is no backend")
		}
		return nil
	})
	require.NoError(t, p.restore())
	sum := accountsOf(t, c, "train_log", files*steps)
	assert.Zero(t, sum["refused"]+sum["rejected"], "%v", sum)
	// Jaeger finds accepted traces only after a delay.
	eventually(t, func() error {
		td, err := j.find("train")
		if err != nil {
			return err
		}
		found, all := make(map[string]map[int64]bool), 0 // iterations by run
		for _, trace := range read(td).traces {
			for _, n := range trace {
				if n.Name() != spans.SpanStep {
					continue
				}
				run, _ := n.resource.Attributes().Get(spans.AttrRunID)
				if found[run.Str()] == nil {
					found[run.Str()] = make(map[int64]bool)
				}
				found[run.Str()][n.int(spans.AttrIteration)] = true
			}
		}
		for _, iterations := range found {
			all += len(iterations)
		}
		if len(found) != files || all != files*steps {
			return fmt.Errorf("%d steps of %d runs, want %d of %d", all, len(found), files*steps, files)
		}
		return nil
	})
	c.stop(t)
}

// noBackend matches the log line about an unreachable backend, with the shipped config.
var noBackend = regexp.MustCompile(`(?m)^(\S+)\twarn\t.*no backend at .*connection refused.*TRAINBRIDGE_OTLP_ENDPOINT`)

// One line a minute reports a missing backend, and no further line does.
func TestNoBackendLine(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	generate(t, logs, "--workers", "4", "--batches", "20", "--seed", "3")
	c := newCollector(t, trainbridgeBin(t), globOf(logs), freeAddr(t))
	c.up(t)
	var lines [][]string
	eventually(t, func() error {
		lines = noBackend.FindAllStringSubmatch(c.output(t), -1)
		if len(lines) < 2 {
			return fmt.Errorf("%d lines", len(lines))
		}
		return nil
	})
	require.Len(t, lines, 2)
	var at [2]time.Time
	for i, l := range lines {
		var err error
		at[i], err = time.Parse("2006-01-02T15:04:05.000Z0700", l[1])
		require.NoError(t, err)
	}
	assert.GreaterOrEqual(t, at[1].Sub(at[0]), time.Minute-time.Second)
	out := c.output(t)
	assert.NotRegexp(t, stack, out)
	assert.NotContains(t, out, "Dropping data")
}
