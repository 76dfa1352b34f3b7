package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
)

// site is a server with one page and one field, under two names that are two sites to
// Chrome.
type site struct {
	*httptest.Server
	url, other string
}

func startSite() *site {
	s := &site{Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!doctype html><title>A form</title><form><label>Name <input id=field autofocus></label></form>`)
	}))}
	s.url = s.URL + "/"
	s.other = strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	return s
}
