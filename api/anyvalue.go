package api

import (
	"bytes"
	"encoding/json"
)

// anyValue is a field that takes any JSON value. Null means absence, as everywhere.
type anyValue struct{ value any }

// given reports whether the client sent a value.
func (v anyValue) given() bool { return v.value != nil }

// raw returns the JSON of the value, with names in the client's order; nil if it is absent.
func (v anyValue) raw() (json.RawMessage, error) {
	if v.value == nil {
		return nil, nil
	}
	var b bytes.Buffer
	err := writeJSON(&b, v.value)
	return b.Bytes(), err
}

// MarshalJSON returns the JSON of the value, null if it is absent.
func (v anyValue) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := writeJSON(&b, v.value)
	return b.Bytes(), err
}

// writeJSON writes a value that parseJSON returned.
func writeJSON(b *bytes.Buffer, value any) error {
	switch v := value.(type) {
	case object:
		b.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, m.name); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := writeJSON(b, m.value); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		b.Write(text)
	}
	return nil
}
