// Package live serves the page of the live view: it shows the tabs of a session, and passes
// a person's input on if the address gives control.
//
// The page opens the WebSocket live/socket beside it, with the ticket in its address; see
// package browser/view for its messages. It loads nothing else, and its
// Content-Security-Policy allows nothing else. The ticket is never sent in a Referer.
package live

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html"
	"net/http"
	"strings"
)

//go:embed live.html
var page string

//go:embed error.html
var errorPage string

//go:embed script/*.js
var scripts embed.FS

// order lists the scripts. They are one script in the page: the first one declares what all
// use, and the last one connects.
func order() []string {
	return []string{"page", "notice", "call", "picture", "state", "bar", "question", "dialog", "picker", "chooser", "copy", "mouse", "touch", "keyboard",
		"files", "share", "save", "connection"}
}

//go:embed live.css
var style string

// Page is the page with its Content-Security-Policy.
type Page struct {
	body   []byte
	policy string
}

// New assembles the page.
func New() *Page {
	script := ""
	for _, name := range order() {
		text, err := scripts.ReadFile("script/" + name + ".js")
		if err != nil {
			panic(err) // it is embedded
		}
		script += string(text)
	}
	body := strings.NewReplacer("/*style*/", style, "/*script*/", script).Replace(page)
	return &Page{
		body: []byte(body),
		policy: strings.Join([]string{
			"default-src 'none'", "script-src " + hashOf(script), "style-src " + hashOf(style),
			"connect-src 'self'", "img-src blob:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", // a page that frames this one could steal clicks
		}, "; "),
	}
}

// Write answers a request with the page.
func (p *Page) Write(w http.ResponseWriter) error {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", p.policy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	_, err := bytes.NewReader(p.body).WriteTo(w)
	return err
}

// WriteError answers a request for the page with a page that says why there is no live view.
// It has no script.
func WriteError(w http.ResponseWriter, status int, why string) error {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src "+hashOf(style))
	w.WriteHeader(status)
	_, err := strings.NewReplacer("/*style*/", style, "/*why*/", html.EscapeString(why)).WriteString(w, errorPage)
	return err
}

// hashOf returns the policy's source expression that allows exactly this inline text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
