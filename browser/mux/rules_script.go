package mux

import (
	"regexp"
	"strings"
)

// scriptIn is the rule of a script that Chrome runs in documents to come, or of a
// breakpoint's condition: it runs only in those that clients may open, whatever the
// page turns to.
func scriptIn(name string) func(*call) error {
	return func(c *call) error {
		var source string
		if _, there := c.params[name]; !there || !TargetPolicy {
			return nil
		}
		if err := c.params.get(name, &source); err != nil {
			return err
		}
		c.changed = true
		return c.params.set(name, guardScript(source, c.ids()))
	}
}

// strictDirective is the beginning of a script that is strict: comments and other
// directives may stand before "use strict" (ECMAScript, Directive Prologues), and
// nothing else.
var strictDirective = regexp.MustCompile(`^(?:` + blank + `|(?:` + oneQuote + `|` + twoQuotes + `)` + blank + `*;?)*?` +
	`(?:"use strict"|'use strict')[ \t]*(?:[;\r\n]|//|/\*|$)`)

const (
	blank     = `(?:[\s\v\x{FEFF}\x{2028}\x{2029}\p{Zs}]|//[^\r\n]*(?:[\r\n]|$)|/\*(?:[^*]|\*+[^*/])*\*+/)`
	oneQuote  = `'(?:[^'\\\r\n]|\\(?s:.))*'`
	twoQuotes = `"(?:[^"\\\r\n]|\\(?s:.))*"`
)

// guardScript has a script end before its first statement where its document, or one
// that it could reach as its own, is at an address that clients may not open. It adds
// no line, and leaves the script's declarations where they are: in the document's own
// scope. An added script runs before the page's, so nothing of the page can be in
// its way. Workers have no document, and no page becomes one: a script runs there.
func guardScript(source string, extensions []string) string {
	allowed := []string{`https?:`, `about:`, `data:`, `blob:(?:https?:|null)`, `chrome-error:`, `null$`}
	for _, id := range extensions {
		allowed = append(allowed, `(?:blob:)?chrome-extension:\/\/`+regexp.QuoteMeta(id)+`(?:\/|$)`)
	}
	strict := ""
	if strictDirective.MatchString(source) {
		strict = `"use strict";`
	}
	test := `/^(?:` + strings.Join(allowed, "|") + `)/.test`
	// A function that the script declares is there before its first statement, also
	// one called parent. Nothing in a document can replace location or its members;
	// a worker's has no ancestors.
	// The braces keep a script that begins with else from being the other branch.
	return strict + `for(let l=location,o=l.ancestorOrigins||[],i=-1;i<o.length;i++){if(!` + test +
		`(i<0?l.href:o[i]))throw"not for this page"}` + source
}
