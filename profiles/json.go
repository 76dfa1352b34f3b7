package profiles

import "encoding/json"

// JSON encodes a value that a record holds, or that is returned in the form in which it
// is recorded. Such values always encode.
func JSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
