package snapshot_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// An archive is exported to other recipients only, and a node with such a recipient's
// identity can import it. A node without an identity can export it as stored.
func TestExportAndImportSealed(t *testing.T) {
	own, friend := newIdentity(t), newIdentity(t)
	store := memstore.New(0, time.Now)
	v := vaultOf(store, keysOf(t, []*age.X25519Identity{own}))
	s := save(t, v, draft(1, snapshot.Entry{Name: "a", Data: bytes.Repeat([]byte("noise"), 50_000)}))
	out := func(v *snapshot.Vault, to ...string) []byte {
		t.Helper()
		r, err := v.OpenSealed(t.Context(), s, to)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil || int64(len(body)) != r.Size || r.Close() != nil {
			t.Fatalf("%d bytes of %d, %v", len(body), r.Size, err)
		}
		if sum, err := snapshot.PayloadSHA256(bytes.NewReader(body)); err != nil || sum != r.PayloadSHA256 {
			t.Errorf("the payload's hash is %s, reported is %s, %v", sum, r.PayloadSHA256, err)
		}
		return body
	}
	there := vaultOf(memstore.New(0, time.Now), keysOf(t, []*age.X25519Identity{friend}))
	blind := vaultOf(store, snapshot.NewKeys(nil, [32]byte{1}, own.Recipient()))
	sent := out(v, friend.Recipient().String())
	if _, stored := archiveOf(t, store, s); !bytes.Equal(out(blind), stored) {
		t.Error("the file exported as stored differs from the stored file")
	}
	if _, err := blind.OpenSealed(t.Context(), s, []string{friend.Recipient().String()}); !fault.Is(err, fault.IdentityMissing) {
		t.Errorf("to another, without an identity: %v", err)
	}
	if opensAlone(sent, friend) != nil || opensAlone(sent, own) == nil {
		t.Error("it is sealed to more than the one recipient")
	}
	dst := filepath.Join(t.TempDir(), "dst")
	got, err := unpackForeign(t, there, sent, dst)
	if err != nil || got.Entries != 1 || tree(t, dst)["a"] != strings.Repeat("noise", 50_000) {
		t.Errorf("at the friend's: %+v, %v", got, err)
	}

	var nested bytes.Buffer
	w, err := age.Encrypt(&nested, friend.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("PK\x03\x04")); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		body []byte
		says string
	}{
		"another recipient": {out(v), own.Recipient().String()},
		"no tar.zst":        {nested.Bytes(), "does not hold a tar.zst"},
		"a header alone":    {sent[:bytes.Index(sent, []byte("\n--- "))+10], "damaged"},
		"longer":            {append(bytes.Clone(sent), 0), "damaged"},
	} {
		if _, err := unpackForeign(t, there, test.body, dst+name); !fault.Is(err, fault.InvalidImport) || !strings.Contains(fault.MessageOf(err), test.says) {
			t.Errorf("%s: %v, want invalid_import saying %q", name, err, test.says)
		}
	}
	for i := range 40 {
		at := i * len(sent) / 40
		for how, body := range map[string][]byte{"cut": sent[:at], "flip": flip(sent, at)} {
			if _, err := unpackForeign(t, there, body, fmt.Sprint(dst, how, at)); !fault.Is(err, fault.InvalidImport) {
				t.Errorf("%s at %d: %v, want invalid_import", how, at, err)
			}
		}
	}
	if left, err := filepath.Glob(dst + "?*"); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

func unpackForeign(t *testing.T, v *snapshot.Vault, body []byte, dst string) (snapshot.UnpackResult, error) {
	t.Helper()
	upload := fileOf(t, body)
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() }) // the content is read before
	sealed, err := v.UnsealUpload(t.Context(), upload, plain)
	if err != nil {
		return snapshot.UnpackResult{}, err
	}
	if sealed {
		upload = plain
	}
	f, err := snapshot.OpenForeign(upload)
	if err != nil {
		return snapshot.UnpackResult{}, err
	}
	return f.Unpack(t.Context(), dst, snapshot.UnpackOptions{}, sameName)
}
