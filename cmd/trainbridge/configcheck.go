package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/otelcol"

	"github.com/trainbridge/trainbridge/internal/writable"
)

// configChecker finds errors that no component can see alone. It is a confmap.Converter without changes, and so sees the configuration of `validate`, of a
// start and of a reload.
type configChecker struct {
	conf map[string]any // the configuration seen last
}

// configError is an error that is printed without further words.
type configError struct{ error }

// Convert implements confmap.Converter: it keeps the configuration, unchanged, and returns the errors of missing and storages together.
func (c *configChecker) Convert(_ context.Context, conf *confmap.Conf) error {
	c.conf = conf.ToStringMap()
	if errs := append(c.missing(), c.storages()...); len(errs) > 0 {
		return &configError{errors.Join(errs...)}
	}
	return nil
}

// explain returns a command's error for the user: a configError without the collector's words around it, an address in use with the key that sets the port
// (takenPort), any other error as it is.
func (c *configChecker) explain(err error) error {
	if own, ok := errors.AsType[*configError](err); ok {
		return own
	}
	if taken := c.takenPort(err); taken != nil {
		return taken
	}
	return err
}

// resolve returns the configuration made of files, or the built-in one without files, and the error of `validate`, for `trainbridge check`. With an error there
// may be a configuration all the same: its paths can be checked.
func (c *configChecker) resolve(ctx context.Context, files []string) (map[string]any, error) {
	set := settings(c)
	if len(files) > 0 {
		set.ConfigProviderSettings.ResolverSettings.URIs = files
	}
	col, err := otelcol.NewCollector(set)
	if err != nil {
		return nil, err
	}
	err = c.explain(col.DryRun(ctx))
	return c.conf, err
}

// missing has an error for each configured component that only the full build has. The full build misses none.
func (c *configChecker) missing() (errs []error) {
	if full.receivers != nil { // set by components_full.go
		return nil
	}
	for _, kind := range slices.Sorted(maps.Keys(onlyFull)) {
		for _, name := range slices.Sorted(maps.Keys(section(c.conf, kind))) {
			if id, ok := parseID(name); ok && slices.ContainsFunc(onlyFull[kind], func(t string) bool { return sameType(t, id.Type().String()) }) {
				errs = append(errs, fmt.Errorf("'%s::%s': %q is in the full build only: make that with `make build-full`", kind, id, id.Type()))
			}
		}
	}
	return errs
}

// sameType reports whether both names are of one component type: older names have no underscores.
func sameType(a, b string) bool {
	return strings.ReplaceAll(a, "_", "") == strings.ReplaceAll(b, "_", "")
}

// storages has the errors about storage extensions: one for each component whose `storage` names an extension that is not configured or not started, and one
// for each extension named so and started that cannot write to its directory.
func (c *configChecker) storages() (errs []error) {
	configured := make(map[component.ID]any)
	for name, settings := range section(c.conf, "extensions") {
		if id, ok := parseID(name); ok {
			configured[id] = settings
		}
	}
	var running []component.ID
	list, _ := section(c.conf, "service")["extensions"].([]any)
	for _, name := range list {
		if id, ok := parseID(name); ok {
			running = append(running, id)
		}
	}
	seen := make(map[component.ID]bool) // extensions whose directory was looked at
	for _, kind := range []string{"receivers", "processors", "exporters", "connectors"} {
		walk(c.conf[kind], kind, func(key, last string, value any) {
			id, ok := parseID(value)
			if last != "storage" || !ok {
				return
			}
			settings, ok := configured[id]
			switch {
			case !ok:
				errs = append(errs, fmt.Errorf("'%s': extension %q is not configured: add it under 'extensions' and to 'service::extensions'", key, id))
			case !slices.Contains(running, id):
				errs = append(errs, fmt.Errorf("'%s': extension %q does not run: add it to 'service::extensions'", key, id))
			case !seen[id]:
				seen[id] = true
				if err := keepsFiles(settings); err != nil {
					errs = append(errs, fmt.Errorf("'extensions::%s::directory' %w; in the shipped configuration it is TRAINBRIDGE_STATE_DIR", id, err))
				}
			}
		})
	}
	return errs
}

// keepsFiles returns why a storage extension with these settings cannot keep files in its `directory`; nil: it can, or has no such setting. The error continues
// a sentence that names the key.
func keepsFiles(settings any) error {
	m, _ := settings.(map[string]any)
	value, ok := m["directory"]
	if !ok {
		return nil
	}
	dir, _ := value.(string)
	if dir == "" {
		return errors.New("is empty: name the directory that keeps the offsets")
	}
	// The start makes missing directories: the lowest that exists must be writable.
	at := dir
	for {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		at = filepath.Dir(at)
	}
	if err := writable.Dir(at); err != nil && !errors.Is(err, fs.ErrNotExist) { // a directory deleted just now is made by the start
		return fmt.Errorf("is %q, and nothing can be written to %q (%w): name a directory that uid %d may write to", dir, at, err, os.Getuid())
	}
	return nil
}

// walk calls f for every scalar of a configuration below key, maps by name and lists in order. f gets the whole key
// ("receivers::otlp::protocols::grpc::endpoint"), its last element ("endpoint"; of a list the index) and the value.
func walk(value any, key string, f func(key, last string, value any)) {
	step := func(last string, value any) {
		switch value.(type) {
		case map[string]any, []any:
			walk(value, key+confmap.KeyDelimiter+last, f)
		default:
			f(key+confmap.KeyDelimiter+last, last, value)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			step(name, v[name])
		}
	case []any:
		for i, x := range v {
			step(strconv.Itoa(i), x)
		}
	}
}

// section is a top-level section of a configuration, such as "receivers"; nil: none.
func section(conf map[string]any, name string) map[string]any {
	m, _ := conf[name].(map[string]any)
	return m
}

// parseID reads a component's id, such as "otlp/2". ok: value is a text and a valid id.
func parseID(value any) (id component.ID, ok bool) {
	text, _ := value.(string)
	return id, id.UnmarshalText([]byte(strings.TrimSpace(text))) == nil
}
