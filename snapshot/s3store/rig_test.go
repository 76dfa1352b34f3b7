package s3store_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"strings"
	"testing"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/s3store"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

var archive = func() snapshot.Key {
	key, err := snapshot.ArchiveKey(strings.Repeat("a", 64))
	if err != nil {
		panic(err)
	}
	return key
}()

// behindProxy opens a store behind a proxy that can make requests fail.
func behindProxy(t *testing.T, server *s3test.Server) (*s3store.Store, *s3test.Proxy) {
	t.Helper()
	p := s3test.NewProxy(t, server)
	o := server.Options(t)
	o.Endpoint = p.Endpoint
	return open(t, o), p
}

func sumOf(b []byte) snapshot.Sum { return snapshot.Sum{Size: int64(len(b)), SHA256: sha256.Sum256(b)} }

// commit uploads, commits and returns the result.
func commit(t *testing.T, s snapshot.Store, key snapshot.Key, b []byte) (bool, error) {
	t.Helper()
	up, err := s.Upload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := up.Abort(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := up.Write(b); err != nil {
		t.Fatal(err)
	}
	return up.Commit(t.Context(), key, sumOf(b))
}

func content(t *testing.T, s snapshot.Store, key snapshot.Key) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return b
}

// pieces is larger than two parts of an upload.
var pieces = bytes.Repeat([]byte("0123456789abcdef"), 12<<20/16)
