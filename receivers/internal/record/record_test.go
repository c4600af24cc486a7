package record_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Reset names the fields one by one: none may be forgotten.
func TestReset(t *testing.T) {
	var r record.Record
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if !f.CanSet() {
			continue
		}
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("x")
		case reflect.Uint8:
			f.SetUint(1)
		case reflect.Int, reflect.Int64:
			f.SetInt(1)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		default:
			require.Fail(t, "fill it", v.Type().Field(i).Name)
		}
	}
	r.SetIn(record.Duration, 7, record.Milliseconds)
	r.Reset()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.CanSet() && f.Kind() == reflect.Slice {
			assert.Zero(t, f.Len(), v.Type().Field(i).Name)
		} else if f.CanSet() {
			assert.True(t, f.IsZero(), v.Type().Field(i).Name)
		}
	}
	assert.True(t, r.Empty())
	for f := range record.NumFields {
		assert.False(t, r.Has(f))
	}
	for range r.All() {
		require.Fail(t, "nothing is set")
	}
}
