package api

import "strings"

// isSelector refuses what cannot be a CSS selector. It checks only the outer form, because
// only Chrome knows every pseudo-class. The login check reports other invalid selectors
// when it runs.
func isSelector(field string, value *string) error {
	if value == nil || hasSelectorForm(*value) {
		return nil
	}
	return invalid(field, "must be a CSS selector, with brackets and quotes in pairs, such as #logout or a[href=\"/account\"]")
}

// hasSelectorForm checks brackets, quotes, and the characters that a selector must not
// begin with, end with, or contain outside brackets
// (https://www.w3.org/TR/selectors-4/#grammar).
func hasSelectorForm(css string) bool {
	css = strings.TrimSpace(css)
	if css == "" || strings.ContainsRune(">+~,", rune(css[0])) {
		return false
	}
	var open []byte // the closing characters that are still expected
	last := byte(0) // the last character outside brackets that is not a space
	for i := 0; i < len(css); i++ {
		c := css[i]
		quoted := len(open) > 0 && (open[len(open)-1] == '"' || open[len(open)-1] == '\'')
		switch {
		case c == '\\':
			if i++; i == len(css) {
				return false
			}
			c = 'x' // an escaped character stands for itself
		case len(open) > 0 && c == open[len(open)-1]:
			open = open[:len(open)-1]
		case quoted:
		case c == '(':
			open = append(open, ')')
		case c == '[':
			if rest := strings.TrimSpace(css[i+1:]); rest == "" || rest[0] == ']' {
				return false
			}
			open = append(open, ']')
		case (c == '"' || c == '\'') && len(open) > 0:
			open = append(open, c)
		case c == ')' || c == ']' || strings.IndexByte(`{};`, c) >= 0:
			return false
		case len(open) == 0 && (strings.IndexByte("\"'!@$%^=?/<`", c) >= 0 || c == ',' && last == ','):
			return false
		}
		if len(open) == 0 && c != ' ' {
			last = c
		}
	}
	return len(open) == 0 && strings.IndexByte(">+~,.#:|", last) < 0
}
