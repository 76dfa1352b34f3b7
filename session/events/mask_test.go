package events

import (
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	const (
		jwt   = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
		reset = "a94f5374f5c1e0a8d3b7f6e1c2d4a5b6"
	)
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"about:blank", "about:blank"},
		{"https://a.example/path?q=shoes&page=2#reviews", "https://a.example/path?q=shoes&page=2#reviews"},
		{"https://a.example/?author=ada&country_code=de", "https://a.example/?author=ada&country_code=de"},
		{"https://a.example/orders/0198c2a4-7d10-7b3e-9a51-2f0e8c7d6b5a", "https://a.example/orders/0198c2a4-7d10-7b3e-9a51-2f0e8c7d6b5a"},
		{"https://ada:pw@a.example/x", "https://***@a.example/x"},
		{"https://ada:p@w@a.example", "https://***@a.example"},
		{"https://a.example/cb?code=abc&state=xyz&lang=de", "https://a.example/cb?code=***&state=***&lang=de"},
		{"https://a.example/?Access_Token=1&X-Amz-Signature=2&apiKey=3&client%5Fsecret=4", "https://a.example/?Access_Token=***&X-Amz-Signature=***&apiKey=***&client%5Fsecret=***"},
		{"https://a.example/?token=&x=1", "https://a.example/?token=&x=1"},
		{"https://a.example/?data=" + jwt, "https://a.example/?data=***"},
		{"https://a.example/?" + reset, "https://a.example/?***"},
		{"https://a.example/reset/" + reset + "/form", "https://a.example/reset/***/form"},
		{"https://a.example/x;jsessionid=1A2B?y=1", "https://a.example/x;jsessionid=***"},
		{"https://a.example/#access_token=abc&expires_in=3600", "https://a.example/#access_token=***&expires_in=3600"},
		{"https://a.example/#/login?token=abc", "https://a.example/#/login?token=***"},
		{"https://a.example/#" + reset, "https://a.example/#***"},
		{"https://a.example/?next=https%3A%2F%2Fb.example%2F%3Ftoken%3Dabc", "https://a.example/?next=***"},
		{"https://a.example/?next=https%3A%2F%2Fb.example%2Fhome", "https://a.example/?next=https%3A%2F%2Fb.example%2Fhome"},
		{"wss://a.example/s?ticket=1", "wss://a.example/s?ticket=***"},
		{"data:text/html,<b>hello</b>", "data:text/html,***"},
		{"data:text/html;base64,PGI+", "data:text/html;base64,***"},
		{"GET https://a.example/?token=abc failed: 401", "GET https://a.example/?token=*** failed: 401"},
		{"Authorization: Bearer abcdef\nnext line", "Authorization: ***\nnext line"},
		{"set-cookie: sid=1; HttpOnly", "set-cookie: ***"},
		{"sent bearer abcdef123 to it", "sent bearer *** to it"},
		{`login {"user":"ada","password":"hunter 2"} failed`, `login {"user":"ada","password":***} failed`},
		{"password = hunter2, try again", "password = ***, try again"},
		{"the token is " + jwt + "!", "the token is ***!"},
		{"key stasis_ABCDEFGHIJKLMNOPQRSTUVWXYZ", "key ***"},
		{"Uncaught TypeError: x is undefined", "Uncaught TypeError: x is undefined"},
	} {
		if got := Mask(test.in); got != test.want {
			t.Errorf("Mask(%q)\n got %q\nwant %q", test.in, got, test.want)
		}
	}
}

// Masking addresses within addresses takes time in proportion to their length, however
// they are nested and encoded. With a number of steps that grows with each level, these
// would not finish.
func TestMaskNested(t *testing.T) {
	const deep = 5_000
	for name, test := range map[string]struct{ in, want string }{
		"nested":                {strings.Repeat("http://a/?u=", deep), "http://a/?u=***"},
		"nested and encoded":    {strings.Repeat("http://a/?u=", 40) + "%" + strings.Repeat("25", 120) + "41", "http://a/?u=***"},
		"encoded":               {"http://a/?u=%" + strings.Repeat("25", deep) + "41", "http://a/?u=***"},
		"in fragments":          {strings.Repeat("http://a/#u=", deep), "http://a/#u=***"},
		"two within":            {"http://a/?u=http://b/?v=http://c/", "http://a/?u=http://b/?v=http://c/"},
		"three within":          {"http://a/?u=http://b/?v=http://c/?w=http://d/", "http://a/?u=***"},
		"encoded thrice":        {"http://a/?u=b%25252Fhome", "http://a/?u=b%25252Fhome"},
		"a secret thrice":       {"http://a/?u=http%25253A%25252F%25252Fb%25252F%25253Ftoken%25253Dabc", "http://a/?u=***"},
		"encoded more often":    {"http://a/?u=%252525252F", "http://a/?u=***"},
		"a separator as secret": {"http://a/?u=http%3A%2F%2Fb%2F%3Ftoken%3D%2526abc", "http://a/?u=***"},
		"a separator encoded":   {"http://a/?u=http%3A%2F%2Fb%2F%253Ftoken%253Dabc", "http://a/?u=***"},
	} {
		if got := Mask(test.in); got != test.want {
			t.Errorf("%s: got %.200q, want %q", name, got, test.want)
		}
	}
}

// FuzzMask checks that a secret in a named place is masked, whatever surrounds it. It
// also checks that masking a masked text changes nothing.
func FuzzMask(f *testing.F) {
	f.Add("https://a.example/path?q=1#top", "s3cr3t")
	f.Add("http://[::1]:80/%zz?%&&==#?#", "x")
	f.Add("://@?#", "0")
	f.Add(strings.Repeat("http://a/?u=", 12)+"%"+strings.Repeat("25", 36)+"41", "0")
	f.Fuzz(func(t *testing.T, around, secret string) {
		masked := Mask(around)
		if again := Mask(masked); again != masked && strings.Count(again, mask) < strings.Count(masked, mask) {
			t.Errorf("%q was masked to %q, and a second time to %q", around, masked, again)
		}
		// Marks around the secret, so that a match is no accident.
		var marked strings.Builder
		for _, r := range secret {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				marked.WriteRune(r)
			}
		}
		hidden := "Zq" + marked.String() + "qZ"
		if strings.Contains(around, "Zq") {
			return
		}
		for _, text := range []string{
			"https://ada:" + hidden + "@a.example/", "https://a.example/?token=" + hidden + "&" + around,
			"https://a.example/#id_token=" + hidden, "Authorization: Basic " + hidden, around + " https://a.example/?x=1&password=" + hidden,
		} {
			if got := Mask(text); strings.Contains(got, hidden) {
				t.Errorf("the secret in %q was not masked: %q", text, got)
			}
		}
	})
}
