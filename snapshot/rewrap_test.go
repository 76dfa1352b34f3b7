package snapshot_test

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// keysOf returns keys that open with the identities, and seal to the first and to the
// recipients.
func keysOf(t testing.TB, identities []*age.X25519Identity, recipients ...*age.X25519Recipient) snapshot.Keys {
	t.Helper()
	c := snapshot.KeyConfig{Dir: t.TempDir(), Source: "the test", NamingSecret: "01" + strings.Repeat("00", 31)}
	for _, x := range identities {
		c.Identities += x.String() + "\n"
	}
	for _, r := range recipients {
		c.Recipients = append(c.Recipients, r.String())
	}
	keys, err := snapshot.LoadKeys(c)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func archiveOf(t testing.TB, store snapshot.Store, s snapshot.Snapshot) (snapshot.Key, []byte) {
	t.Helper()
	key, err := snapshot.ArchiveKey(s.Archive.ID)
	return stored(t, store, key, err)
}

// swap replaces the bytes of an object.
func swap(t testing.TB, store snapshot.Store, key snapshot.Key, body []byte) {
	t.Helper()
	_, old := stored(t, store, key, nil)
	if swapped, err := store.Swap(t.Context(), key, old, body); err != nil || !swapped {
		t.Fatalf("swapped %v, %v", swapped, err)
	}
}

// opensAlone decrypts with one identity, using only age.
func opensAlone(sealed []byte, with *age.X25519Identity) error {
	r, err := age.Decrypt(bytes.NewReader(sealed), with)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	return err
}

// A new header opens the same payload for its recipients and for no others. A recipient
// that is not retired stays. Payload and names stay too.
func TestRewrap(t *testing.T) {
	before, after, escrow, dropped := newIdentity(t), newIdentity(t), newIdentity(t), newIdentity(t)
	store := memstore.New(0, time.Now)
	old := vaultOf(store, keysOf(t, []*age.X25519Identity{before}, escrow.Recipient(), dropped.Recipient()))
	s := save(t, old, draft(1, snapshot.Entry{Name: "a", Data: bytes.Repeat([]byte("noise"), 50_000)}))
	key, sealed := archiveOf(t, store, s)
	for _, x := range []*age.X25519Identity{before, escrow, dropped} {
		if err := opensAlone(sealed, x); err != nil {
			t.Fatalf("several recipients: %v", err)
		}
	}
	v := vaultOf(store, keysOf(t, []*age.X25519Identity{after, before}))
	progress := 0
	out, err := v.Rewrap(t.Context(), snapshot.RewrapOptions{Retire: []string{before.Recipient().String(), dropped.Recipient().String()},
		Progress: func(done, total int) { progress = 10*done + total }})
	if err != nil || out.Archives != 1 || out.Documents != 2 || len(out.Skipped) > 0 || progress != 11 {
		t.Fatalf("%+v, %v; progress %d", out, err, progress)
	}
	_, rewrapped := stored(t, store, key, nil)
	at := func(file []byte) int { return bytes.Index(file, []byte("\n--- ")) + len("\n--- ") + 43 + 1 }
	if !bytes.Equal(sealed[at(sealed):], rewrapped[at(rewrapped):]) {
		t.Error("the payload changed")
	}
	for name, x := range map[string]*age.X25519Identity{"the new one": after, "one that is not retired": escrow} {
		if err := opensAlone(rewrapped, x); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, x := range map[string]*age.X25519Identity{"the old one": before, "a dropped one": dropped} {
		if opensAlone(rewrapped, x) == nil {
			t.Errorf("%s still opens it", name)
		}
	}
	got, err := vaultOf(store, keysOf(t, []*age.X25519Identity{after})).Open(t.Context(), place, id(1))
	if err != nil {
		t.Fatal(err)
	}
	want := s
	want.Recipients = []string{after.Recipient().String(), escrow.Recipient().String()}
	want.Archive.StoredSize = int64(len(rewrapped))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the snapshot (-want +got):\n%s", diff)
	}
}

// Rewrap does not accept a changed header or a payload that is not the bound one, and
// skips what is sealed to others. It reports each of them and changes nothing.
func TestRewrapSkipsUnopenable(t *testing.T) {
	before, after := newIdentity(t), newIdentity(t)
	store := memstore.New(0, time.Now)
	old := vaultOf(store, keysOf(t, []*age.X25519Identity{before}))
	a := save(t, old, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
	b := save(t, old, draft(2, snapshot.Entry{Name: "a", Data: []byte("b")}))
	keyA, goodA := archiveOf(t, store, a)
	_, goodB := archiveOf(t, store, b)
	end := func(file []byte) int { return bytes.Index(file, []byte("\n--- ")) + len("\n--- ") + 43 + 1 }
	bad := map[string][]byte{
		"another's archive": goodB,
		"another's payload": append(bytes.Clone(goodA[:end(goodA)]), goodB[end(goodB):]...),
		"another's header":  append(bytes.Clone(goodB[:end(goodB)]), goodA[end(goodA):]...),
		"cut":               goodA[:len(goodA)-1],
		"longer":            append(bytes.Clone(goodA), 0),
		"no header":         goodA[end(goodA):],
		"empty":             {},
	}
	for at := range end(goodA) {
		bad["header "+string(rune('0'+at))] = flip(goodA, at)
	}
	v := vaultOf(store, keysOf(t, []*age.X25519Identity{after, before}))
	for name, body := range bad {
		swap(t, store, keyA, body)
		out, err := v.Rewrap(t.Context(), snapshot.RewrapOptions{Retire: []string{before.Recipient().String()}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		reported := slices.ContainsFunc(out.Skipped, func(l snapshot.SkippedObject) bool {
			return l.Key == keyA.String() && (fault.Is(l.Err, fault.ArchiveDamaged) || fault.Is(l.Err, fault.IdentityMissing))
		})
		if _, now := stored(t, store, keyA, nil); !reported || !bytes.Equal(now, body) {
			t.Errorf("%s: left %+v; changed: %v", name, out.Skipped, !bytes.Equal(now, body))
		}
		if s, err := v.Open(t.Context(), place, id(2)); err != nil || v.Verify(t.Context(), s) != nil {
			t.Errorf("%s: the other snapshot: %v", name, err)
		}
	}
	swap(t, store, keyA, goodA)
	stranger := vaultOf(store, keysOf(t, []*age.X25519Identity{newIdentity(t)}))
	out, err := stranger.Rewrap(t.Context(), snapshot.RewrapOptions{})
	if err != nil || len(out.Skipped) == 0 || !fault.Is(out.Skipped[0].Err, fault.IdentityMissing) ||
		!strings.Contains(fault.MessageOf(out.Skipped[0].Err), before.Recipient().String()) {
		t.Errorf("sealed to others: %+v, %v", out, err)
	}
}

// A save that finds an equal stored archive also seals that archive to its own
// recipients, because the new snapshot's document promises it.
func TestEqualArchiveForAnotherRecipient(t *testing.T) {
	own, later := newIdentity(t), newIdentity(t)
	store := memstore.New(0, time.Now)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	first := save(t, vaultOf(store, keysOf(t, []*age.X25519Identity{own})), draft(1, entry))
	both := vaultOf(store, keysOf(t, []*age.X25519Identity{own}, later.Recipient()))
	second := save(t, both, draft(2, entry))
	if !second.Shared || second.Archive.PayloadSHA256 != first.Archive.PayloadSHA256 {
		t.Fatalf("the second is %+v", second)
	}
	if _, sealed := archiveOf(t, store, second); opensAlone(sealed, later) != nil || int64(len(sealed)) != second.Archive.StoredSize {
		t.Errorf("%d bytes, the document says %d; the second recipient: %v", len(sealed), second.Archive.StoredSize, opensAlone(sealed, later))
	}
	if err := both.Verify(t.Context(), first); err != nil {
		t.Errorf("the first snapshot: %v", err)
	}
}

// Archives of the first format version can be rewrapped. Their headers name no
// recipients, so the documents say which recipients stay.
func TestRewrapGolden(t *testing.T) {
	dir, want := goldenDir(t, "v1")
	after := newIdentity(t)
	if _, err := snapshot.BeginRotation(dir, after); err != nil {
		t.Fatal(err)
	}
	keys, err := snapshot.LoadKeys(snapshot.KeyConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	store, err := fsstore.Open(filepath.Join(dir, "snapshots"), fsstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	old := keys.IdentityRecipients()[1]
	out, err := vaultOf(store, keys).Rewrap(t.Context(), snapshot.RewrapOptions{Retire: []string{old}})
	if err != nil || len(out.Skipped) > 0 || out.Archives == 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.EndRotation(dir); err != nil {
		t.Fatal(err)
	}
	v := goldenVault(t, dir)
	for _, g := range want {
		s, err := v.Open(t.Context(), g.location(), g.ID)
		if err != nil {
			t.Fatal(err)
		}
		to := slices.Clone(g.Recipients)
		to[slices.Index(to, old)] = after.Recipient().String()
		slices.Sort(to)
		if got := slices.Sorted(slices.Values(s.Recipients)); !cmp.Equal(to, got) {
			t.Errorf("%s is sealed to %q, want %q", g.ID, got, to)
		}
		if err := v.Verify(t.Context(), s); err != nil {
			t.Errorf("%s: %v", g.ID, err)
		}
	}
	goldenLocations(t, v, want)
}
