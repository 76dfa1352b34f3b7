//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"
)

// portableOf plays a daemon's routes for exports and imports. The content of an export is
// its query; the ID of an import is its content.
func portableOf(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client gave up
		}
		// A file is sent with its length, which is unknown of one that is opened meanwhile.
		if known := r.ContentLength == int64(len(body)); known != strings.HasPrefix(string(body), "payload") {
			w.WriteHeader(http.StatusLengthRequired)
			return
		}
		q := r.URL.Query()
		_, _ = fmt.Fprintf(w, `{"snapshot":{"id":%q},"default":{"moved":%t,"reason":"another was quicker"}}`,
			q.Get("format")+":"+q.Get("user_id")+":"+q.Get("label")+":"+strings.TrimSpace(string(body)), q.Get("default_conflict") == "overwrite")
		return
	}
	switch strings.TrimPrefix(r.URL.Path, "/v1/snapshots/") {
	case "snap-1/archive", "changed/archive", "cut/archive":
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"code":"snapshot_not_found","message":"no such snapshot"}`)
		return
	}
	payload := "payload for " + r.URL.RawQuery
	if strings.Contains(r.URL.Path, "cut") {
		w.Header().Set("Content-Length", "1000")
	}
	if r.URL.Query().Get("sealed") == "false" {
		_, _ = fmt.Fprint(w, payload)
		return
	}
	w.Header().Set("X-Stasis-Payload-SHA256", fmt.Sprintf("%x", sha256.Sum256([]byte(payload))))
	if strings.Contains(r.URL.Path, "changed") {
		payload += "!"
	}
	_, _ = fmt.Fprint(w, "age-encryption.org/v1\n-> X25519 x\n\n--- mac\n"+payload)
}

// sealedIn writes a sealed file, the identity that opens it, and a damaged one, for
// the scripts.
func sealedIn(dir string) error {
	x, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, x.Recipient())
	if err != nil {
		return err
	}
	_, err = w.Write([]byte("what was sealed"))
	err = errors.Join(err, w.Close())
	for name, body := range map[string][]byte{"opens": []byte(x.String() + "\n"), "sealed.age": sealed.Bytes(), "cut.age": sealed.Bytes()[:sealed.Len()-1]} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), body, 0o600))
	}
	return err
}
