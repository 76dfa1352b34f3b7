package api

import "testing"

// Common selectors pass; truncated ones and other languages do not.
func TestSelectorForm(t *testing.T) {
	for _, css := range []string{
		"#logout", ".a.b", "a", "*", "h1.name, h2 > b ~ i + u", ":root", "::before", "|a", "svg|a", "  a  b\n",
		`a[href="/account?x=1"]`, `a[href='it"s']`, `[data-x="]"]`, `[data-x="(;{"]`, "[data-x]", "[ data-x ]", `[a="\""]`, `#\31 0`,
		"li:nth-child(2n+1)", ":is(a, b)", ":not([x]):has(> a)", `.sm\:flex`, "#Ünïcode", "a&",
	} {
		if !hasSelectorForm(css) {
			t.Errorf("%q is refused", css)
		}
	}
	for _, css := range []string{
		"", "  ", "h1[", "h1[]", "a]", ":is(a", "a)", `[a="b]`, `a "b"`, "> a", "a >", "a,", "a,,b", ", a", "a { color: red }", "a; b",
		"//div[@id='x']", "<a>", "$x", "a.", "#", "a:", `a\`, "50%",
	} {
		if hasSelectorForm(css) {
			t.Errorf("%q passes", css)
		}
	}
}
