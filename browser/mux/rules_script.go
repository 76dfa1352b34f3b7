package mux

import (
	"regexp"
	"strings"
)

// scriptIn returns the rule for a parameter with a script that Chrome runs in later
// documents, or with a breakpoint's condition. The script runs only in documents that
// clients may open, wherever the page navigates.
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

// strictDirective matches the beginning of a strict script. Only comments and other
// directives may precede "use strict" (ECMAScript, Directive Prologues).
var strictDirective = regexp.MustCompile(`^(?:` + blank + `|(?:` + oneQuote + `|` + twoQuotes + `)` + blank + `*;?)*?` +
	`(?:"use strict"|'use strict')[ \t]*(?:[;\r\n]|//|/\*|$)`)

const (
	blank     = `(?:[\s\v\x{FEFF}\x{2028}\x{2029}\p{Zs}]|//[^\r\n]*(?:[\r\n]|$)|/\*(?:[^*]|\*+[^*/])*\*+/)`
	oneQuote  = `'(?:[^'\\\r\n]|\\(?s:.))*'`
	twoQuotes = `"(?:[^"\\\r\n]|\\(?s:.))*"`
)

// guardScript makes a script throw before its first statement if clients may not open its
// document's address or that of an ancestor frame. It adds no line. The script's
// declarations stay in the document's own scope. An added script runs before the page's
// scripts, so the page cannot interfere. Workers have no document and cannot become
// pages; scripts run there.
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
	// Functions that the script declares exist before its first statement, even one named
	// parent. No document can replace location or its members. The location of a worker has
	// no ancestorOrigins. The braces keep a script that begins with else from becoming the
	// other branch.
	return strict + `for(let l=location,o=l.ancestorOrigins||[],i=-1;i<o.length;i++){if(!` + test +
		`(i<0?l.href:o[i]))throw"not for this page"}` + source
}
