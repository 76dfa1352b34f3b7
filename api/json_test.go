package api

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Whatever parseJSON accepts, encoding/json accepts too, with the same value. Binding it
// never panics, and what was bound can be marshalled again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"a":{"b":[1,true,null,"x"]}}`, `{"a":1,"a":2}`, `{"labels":{"a":"b"},"wait_seconds":5}`,
		`[[[[]]]]`, `{"goal":"\ud800"}`, `1 2`, `{"goal":`, `{"\ud800\udc00":1}`, `{"a":1}x`, `{"labels":{"":"x"}}`, "\xff", `-0`, `{"":{}}`, `{"session_id":"","user_id":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := parseJSON(t.Context(), data)
		if err != nil {
			return
		}
		var want any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("%q: encoding/json refuses it: %v", data, err)
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

// The error for a body whose end is missing names the byte at which it ends, wherever that
// is.
func TestTruncatedJSON(t *testing.T) {
	const body = "{\"a\": [1, {\"b\u00e9\": \"\u00fc\\u00e9\\n\"}, -1.5e3, true ], \"c\" : null , \"d\":{}}"
	for n := range len(body) {
		_, err := parseJSON(t.Context(), []byte(body[:n]))
		if want := fmt.Sprintf("not JSON: it ends too soon, at byte %d", n); err == nil || fault.MessageOf(err) != want {
			t.Errorf("%q: %v, want %s", body[:n], err, want)
		}
	}
	for body, want := range map[string]string{"{\"a\":\"\xff\"}": "the body is not UTF-8, at byte 6", `{"a":1]`: "at byte 6", `{"a":tru}`: "at byte 8"} {
		if _, err := parseJSON(t.Context(), []byte(body)); err == nil || !strings.HasSuffix(fault.MessageOf(err), want) {
			t.Errorf("%q: %v, want %s", body, err, want)
		}
	}
}

// plain returns a parsed value as encoding/json has it.
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

// The cost of a byte does not grow with the length of the body. Bodies of 1 MiB with long
// names, many names, many values or deep nesting are read or refused quickly, and the error
// stays short.
func TestCostOfBodies(t *testing.T) {
	t.Parallel()
	for name, body := range hostileBodies() {
		value, err := parseJSON(t.Context(), []byte(body))
		if err == nil {
			err = new(binder).bind(value, &createBody{})
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

// A body is not read further when its request has ended.
func TestParseStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := parseJSON(ctx, []byte(`[`+strings.Repeat(`1,`, 10_000)+`1]`)); !fault.Is(err, fault.Timeout) {
		t.Error(err)
	}
}

// hostileBodies are made to cost more than their length.
func hostileBodies() map[string]string {
	const most = maxBody - 100
	names := func(size int) string {
		var b strings.Builder
		for n := 0; b.Len() < most-size-10; n++ {
			fmt.Fprintf(&b, `"%0*d":1,`, size, n)
		}
		return `{` + b.String() + `"goal":"x"}`
	}
	deep := `{"` + strings.Repeat("n", 30_000) + `":`
	return map[string]string{
		"a long name over many values":  `{"` + strings.Repeat("n", most/2) + `":[` + strings.Repeat("1,", most/4) + `1]}`,
		"long names over each other":    strings.Repeat(deep, maxDepth) + "1" + strings.Repeat("}", maxDepth),
		"a long name twice":             `{"` + strings.Repeat("n", most/2) + `":1,"` + strings.Repeat("n", most/2-10) + `":1}`,
		"many names":                    names(8),
		"many names at the bound":       names(maxName),
		"many names in a map":           `{"labels":` + names(8) + `}`,
		"many names in an unknown list": `{"x":[` + strings.Repeat(`{"a":1},`, most/8-1) + `1]}`,
		"deep":                          strings.Repeat("[", most),
		"many numbers":                  `{"goal":` + strings.Repeat("1", most) + `}`,
		"many escapes":                  `{"goal":"` + strings.Repeat(`\u0041`, most/6) + `"}`,
		"a wrong value":                 `{"goal":[` + strings.Repeat("{},", most/3) + `{}]}`,
	}
}
