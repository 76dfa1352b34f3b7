package profiles

import "encoding/json"

// JSON writes a value that a record holds, or that is answered as it is recorded. Such
// values always encode.
func JSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
