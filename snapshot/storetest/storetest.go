// Package storetest is the conformance suite of [snapshot.Store]. [Run] checks the
// store's contract. [RunVault] checks a vault while a single call of the store fails.
// [RunDocuments] checks agents' documents. [Long] selects the long form of all of them.
package storetest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// Open creates an empty store that the test closes.
type Open func(t *testing.T) snapshot.Store

// Run checks the contract on stores that open creates.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		run  func(*testing.T, snapshot.Store)
	}{
		{"document", document}, {"upload", upload}, {"wrong sum", wrongSum}, {"abort", abort},
		{"taken", taken}, {"open survives", openSurvives}, {"list", list}, {"bad calls", badCalls}, {"race", race},
		{"swap", swap}, {"swap race", swapRace},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			test.run(t, s)
			for range 2 {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
		})
	}
}

// place is the location that the suite writes to.
var place = snapshot.Location{
	Owner: "0123456789abcdef0123456789abcdef", Session: "s-1", Scope: "agent", ScopeID: "browser",
}

// id returns the nth snapshot ID.
func id(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012x", n) }

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func archiveKey(t *testing.T, n int) snapshot.Key {
	t.Helper()
	return must[snapshot.Key](t)(snapshot.ArchiveKey(fmt.Sprintf("%064x", n)))
}

func sumOf(body []byte) snapshot.Sum {
	return snapshot.Sum{Size: int64(len(body)), SHA256: sha256.Sum256(body)}
}

// content reads an object; it returns nil if there is none.
func content(t *testing.T, s snapshot.Store, key snapshot.Key) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return nil
	}
	body, err := io.ReadAll(must[io.ReadCloser](t)(r, err))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return body
}

func wantContent(t *testing.T, s snapshot.Store, key snapshot.Key, want string) {
	t.Helper()
	if got := string(content(t, s, key)); got != want {
		t.Errorf("%s holds %q, want %q", key, got, want)
	}
}

func upload(t *testing.T, s snapshot.Store) {
	key, body := archiveKey(t, 1), bytes.Repeat([]byte("0123456789"), 50_000)
	up := must[snapshot.Upload](t)(s.Upload(t.Context()))
	for chunk := range slices.Chunk(body, 60_001) {
		must[int](t)(up.Write(chunk))
	}
	if content(t, s, key) != nil {
		t.Error("visible before Commit")
	}
	if !must[bool](t)(up.Commit(t.Context(), key, sumOf(body))) {
		t.Error("Commit of a free key created nothing")
	}
	for range 2 {
		if err := up.Abort(); err != nil {
			t.Errorf("Abort after Commit: %v", err)
		}
	}
	if !bytes.Equal(content(t, s, key), body) {
		t.Error("the bytes read differ from the bytes written")
	}
}

func wrongSum(t *testing.T, s snapshot.Store) {
	body := []byte("body")
	short, other := sumOf(body), sumOf(body)
	short.Size--
	other.SHA256[0] ^= 1
	for _, sum := range []snapshot.Sum{short, other} {
		up := must[snapshot.Upload](t)(s.Upload(t.Context()))
		must[int](t)(up.Write(body))
		if created, err := up.Commit(t.Context(), archiveKey(t, 1), sum); created || !fault.Is(err, fault.StoreFailed) {
			t.Errorf("Commit with a wrong sum: %v, %v", created, err)
		}
		if err := up.Abort(); err != nil {
			t.Error(err)
		}
	}
	if content(t, s, archiveKey(t, 1)) != nil {
		t.Error("an upload with a wrong sum is visible")
	}
}

func abort(t *testing.T, s snapshot.Store) {
	up := must[snapshot.Upload](t)(s.Upload(t.Context()))
	must[int](t)(up.Write([]byte("body")))
	for range 2 {
		if err := up.Abort(); err != nil {
			t.Error(err)
		}
	}
	if names := must[[]string](t)(s.List(t.Context(), snapshot.ArchiveFolder(), 10, "")); len(names) > 0 {
		t.Errorf("after Abort there is %q", names)
	}
}

func taken(t *testing.T, s snapshot.Store) {
	key := archiveKey(t, 1)
	for i, want := range []bool{true, false, false} {
		body := fmt.Appendf(nil, "body %d", i)
		up := must[snapshot.Upload](t)(s.Upload(t.Context()))
		must[int](t)(up.Write(body))
		if got := must[bool](t)(up.Commit(t.Context(), key, sumOf(body))); got != want {
			t.Errorf("Commit %d created: %v", i, got)
		}
		if i == 2 { // and again, once the key is free
			wantContent(t, s, key, "body 0")
			if err := s.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if !must[bool](t)(up.Commit(t.Context(), key, sumOf(body))) {
				t.Error("the second Commit created nothing")
			}
		}
		if err := up.Abort(); err != nil {
			t.Error(err)
		}
	}
	wantContent(t, s, key, "body 2")
}
