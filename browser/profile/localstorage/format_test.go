package localstorage

import "testing"

func TestDecode(t *testing.T) {
	for _, test := range []struct {
		raw, want string
		ok        bool
	}{
		{"\x01abc\xe9", "abcé", true}, {"\x00\x3a\x04", "к", true}, {"\x00\x3d\xd8\x00\xde", "😀", true},
		{"\x00\x3d\xd8", "\ufffd", true}, {"\x01", "", true}, {"", "", false}, {"\x00a", "", false}, {"\x07a", "", false},
	} {
		if got, ok := decode([]byte(test.raw)); got != test.want || ok != test.ok {
			t.Errorf("%q is %q, %t", test.raw, got, ok)
		}
	}
}
