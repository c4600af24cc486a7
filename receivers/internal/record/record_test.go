package record_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Reset names the fields individually: none may be forgotten.
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
		case reflect.Array:
			f.Index(0).SetBytes([]byte("x"))
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

func TestLastStamp(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "step-by-step": "", "----": "", "2026-08-21": "", "2026-08-21 00:54:17": "2026-08-21 00:54:17",
		"[titan] 2026-08-21 00:54:17,768 - root - INFO - ":                                          "2026-08-21 00:54:17,768",
		" 2%|x| 2/80 [02:53<1:52:39, 86.66s/it][2023-08-02 00:41:17,935] [INFO] [logging.py:96:x] ": "2023-08-02 00:41:17,935",
		"2023-08-02 00:41:17 and 2024-08-02T00:41:18.5-07:00 - a-b-c":                               "2024-08-02T00:41:18.5-07:00",
		"2023-08-02 00:41:17" + strings.Repeat(" ", 300):                                            "",
	} {
		assert.Equal(t, want, string(record.LastStamp([]byte(in))), in)
	}
}

func FuzzLastStamp(f *testing.F) {
	f.Add([]byte("[titan] 2026-08-21 00:54:17,768 - root"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if stamp := record.LastStamp(b); !bytes.Contains(b, stamp) {
			t.Fatalf("%q is not in %q", stamp, b)
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
