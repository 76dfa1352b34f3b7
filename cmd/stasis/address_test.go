package main

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A daemon's record is found while the daemon holds it, and gone when it is withdrawn.
func TestAddressRecord(t *testing.T) {
	dir := t.TempDir()
	at := &net.TCPAddr{IP: net.IPv4zero, Port: 8080}
	record, err := recordAddress(t.Context(), dir, "https", at)
	if err != nil {
		t.Fatal(err)
	}
	found := findLocal(dir)
	if found == nil || found.at.URL != "https://127.0.0.1:8080" || !found.runs() {
		t.Fatalf("found %+v", found)
	}
	if err := errors.Join(record.withdraw(), record.withdraw()); err != nil {
		t.Error(err)
	}
	if found.runs() || findLocal(dir) != nil {
		t.Error("a daemon that has stopped was found")
	}
	if _, err := os.Stat(filepath.Join(dir, addressFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record is left: %v", err)
	}
	if _, err := recordAddress(t.Context(), filepath.Join(dir, "absent"), "http", at); err == nil {
		t.Error("an address was recorded in a folder that does not exist")
	}
	for addr, want := range map[string]string{"[::]:1": "[::1]:1", "127.0.0.1:2": "127.0.0.1:2", "10.0.0.1:3": "10.0.0.1:3"} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(tcp); got != want {
			t.Errorf("%s is reached at %s, want %s", addr, got, want)
		}
	}
}

// The key of a daemon that has stopped is not sent to the program that has its port now.
func TestKeyStaysAtHome(t *testing.T) {
	received := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header.Get("Authorization") }))
	defer other.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("secret-secret-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	record, err := recordAddress(t.Context(), dir, "http", other.Listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	r := remoteDaemon{DataDir: dir}
	if err := r.AfterApply(); err != nil || r.URL != other.URL || r.Key != "secret-secret-secret" {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := r.call(t.Context(), http.MethodGet, "/", nil, nil); err != nil || <-received != "Bearer secret-secret-secret" {
		t.Fatal(err)
	}
	if err := record.withdraw(); err != nil {
		t.Fatal(err)
	}
	if err := r.call(t.Context(), http.MethodGet, "/", nil, nil); err == nil || !strings.Contains(err.Error(), "the daemon has stopped") {
		t.Errorf("a call to a daemon that has stopped: %v", err)
	}
	select {
	case key := <-received:
		t.Errorf("another program received %q", key)
	default:
	}
}
