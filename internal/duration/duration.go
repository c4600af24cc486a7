// Package duration keeps durations without a unit out of configurations: the collector's decoder takes a bare number as nanoseconds.
package duration

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
)

var errUnit = errors.New("has no unit")

// optional is the package of configoptional.Optional[T], whose value only its Get returns.
var optional = reflect.TypeFor[configoptional.Optional[struct{}]]().PkgPath()

// Unmarshal is conf.Unmarshal(cfg) for the Unmarshal method of a config, but every time.Duration in it must be written with its unit, or be 0.
func Unmarshal(conf *confmap.Conf, cfg any) error {
	if errs := bare(reflect.TypeOf(cfg), conf.ToStringMap(), ""); len(errs) > 0 {
		return errors.Join(errs...)
	}
	return conf.Unmarshal(cfg)
}

// bare finds the durations without a unit in a configuration: value is the YAML of a field of type t, and key its full name, for the errors. Maps, structs and
// lists are searched to their ends.
func bare(t reflect.Type, value any, key string) (errs []error) {
	// The type behind pointers and Optional.
	for {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		} else if get, ok := reflect.PointerTo(t).MethodByName("Get"); ok && t.PkgPath() == optional {
			t = get.Type.Out(0)
		} else {
			break
		}
	}
	if t == reflect.TypeFor[time.Duration]() {
		text := strings.TrimSpace(fmt.Sprint(value))
		if n, err := strconv.ParseFloat(text, 64); err == nil && n != 0 {
			errs = append(errs, fmt.Errorf("'%s': %s %w: write %[2]sms, %[2]ss or %[2]sm", key, text, errUnit))
		}
		return errs
	}
	// Further down: t says what the keys below value mean. Keys that no field has are left to conf.Unmarshal.
	switch v := value.(type) {
	case map[string]any:
		switch t.Kind() {
		case reflect.Map:
			for name, x := range v {
				errs = append(errs, bare(t.Elem(), x, join(key, name))...)
			}
		case reflect.Struct:
			for f := range t.Fields() {
				name, options, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
				if strings.Contains(options, "squash") { // its keys are among the struct's own
					errs = append(errs, bare(f.Type, v, key)...)
				} else if x, ok := v[name]; ok {
					errs = append(errs, bare(f.Type, x, join(key, name))...)
				}
			}
		}
	case []any:
		if t.Kind() == reflect.Slice {
			for i, x := range v {
				errs = append(errs, bare(t.Elem(), x, join(key, strconv.Itoa(i)))...)
			}
		}
	}
	return errs
}

// join is the full name of a key within another: "receivers::file::interval".
func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + confmap.KeyDelimiter + name
}
