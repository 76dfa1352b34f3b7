package main

import (
	"net"
	"net/http"
	"time"
)

// serve serves a site to the Chromes of the nodes.
func serve(address string, site http.Handler) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: site, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }() // until stop
	return "http://" + l.Addr().String(), func() { _ = server.Close(); <-done }, nil
}

// visitCookie is the cookie that each visit sets.
const visitCookie = "visit"

// visited is a site that answers each visit with a cookie that has the visit's name.
func visited(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	if name := r.URL.Query().Get("visit"); name != "" {
		http.SetCookie(w, &http.Cookie{Name: visitCookie, Value: name, MaxAge: 86400})
	}
	_, _ = w.Write([]byte("<!doctype html><title>a visit</title><script>sessionStorage.first ||= new URLSearchParams(location.search).get('visit')</script>")) // fails if the browser has died
}
