package state

import (
	"encoding/json"
	"strings"
	"testing"
)

// Files with too many objects or elements are refused, wherever these are. The contents
// of strings and of record values do not count.
func TestCheckObjectCount(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("[", countedDepth) + strings.Repeat("[],", maxObjects) + "[]" + strings.Repeat("]", countedDepth)
	for name, test := range map[string]struct {
		data string
		fits bool
	}{
		"none":             {`{}`, true},
		"many objects":     {`{"tabs":[` + strings.Repeat("{},", maxObjects) + `{}]}`, false},
		"many elements":    {`{"x":[` + strings.Repeat("1,", maxElements+1) + `1]}`, false},
		"within a string":  {`{"x":"` + strings.Repeat(`{,\"`, maxElements) + `"}`, true},
		"within a value":   {value, true},
		"an open string":   {`{"x":"` + strings.Repeat(`\`, 9), true},
		"more ends":        {strings.Repeat("}", 20), true},
		"as many as fit":   {`[` + strings.Repeat("{},", maxObjects-2) + `{}]`, true},
		"one more than it": {`[` + strings.Repeat("{},", maxObjects-1) + `{}]`, false},
	} {
		if err := CheckObjectCount([]byte(test.data)); (err == nil) != test.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Accepted input has at most the allowed number of objects, as encoding/json counts them.
func FuzzCheckObjectCount(f *testing.F) {
	for _, seed := range []string{`{"a":[{},{}]}`, `{"a":"\"{"}`, `[[[[[[[[[[[[]]]]]]]]]]]]`, `"\\"`, `{"a`, `]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := CheckObjectCount(data)
		if err != nil && json.Valid(data) && len(data) < maxObjects {
			t.Fatalf("%q: %v", data, err)
		}
	})
}
