package api

import (
	"encoding/json"
	"reflect"
	"testing"
)

// What parseJSON takes, encoding/json takes too, and they agree on the value;
// binding it never panics, and what binds hashes the same again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"a":{"b":[1,true,null,"x"]}}`, `{"a":1,"a":2}`, `{"labels":{"a":"b"},"wait_seconds":5}`,
		`[[[[]]]]`, `{"goal":"\ud800"}`, `1 2`, `{"goal":`, "\xff", `-0`, `{"":{}}`, `{"session_id":"","user_id":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := parseJSON(data)
		if err != nil {
			return
		}
		var want any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("%q: taken, but: %v", data, err)
		}
		if got := plain(value); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %v, want %v", data, got, want)
		}
		for _, dst := range []any{&createBody{}, &keyBody{}, &none{}} {
			var b binder
			if b.bind(value, dst) != nil {
				continue
			}
			again, err := json.Marshal(dst)
			if err != nil {
				t.Fatal(err)
			}
			if len(again) < 2 {
				t.Fatalf("%q: bound to %s", data, again)
			}
		}
		body := newCreate()
		var b binder
		if b.bind(value, &body) == nil && body.check() == nil && body.request().Lifetime <= 0 {
			t.Fatalf("%q: no lifetime", data)
		}
	})
}

// plain is a parsed value as encoding/json gives it.
func plain(value any) any {
	switch v := value.(type) {
	case object:
		m := map[string]any{}
		for _, f := range v {
			m[f.name] = plain(f.value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case json.Number:
		n, _ := v.Float64()
		return n
	}
	return value
}
