package tables

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Object is a JSON object whose keys stay in order.
type Object []field

type field struct {
	key   string
	value any
}

// Add adds a key, which must be new.
func (o *Object) Add(key string, value any) { *o = append(*o, field{key, value}) }

// AddAll adds a list, unless it is empty.
func AddAll[T any](o *Object, key string, list []T) {
	if len(list) > 0 {
		o.Add(key, list)
	}
}

// MarshalJSON implements json.Marshaler; a map would have its keys sorted.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		b.WriteString(strconv.Quote(f.key) + ":")
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
