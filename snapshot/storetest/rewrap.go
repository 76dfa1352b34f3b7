package storetest

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
)

// RunRewrap seals stores to another identity while one call fails, or all calls after it,
// as when the process is killed. It fails every nth call, under [Torture] each one, in
// every mode. Afterwards everything must open with both identities. After a second run
// everything must open with the new identity alone.
func RunRewrap(t *testing.T, open Open, every int) {
	if Torture() {
		every = 1
	}
	identities := [2]*age.X25519Identity{}
	for i := range identities {
		identities[i] = must[*age.X25519Identity](t)(age.GenerateX25519Identity())
	}
	inner := open(t)
	defer func() {
		if err := inner.Close(); err != nil {
			t.Error(err)
		}
	}()
	store := faultstore.New(inner)
	first := vaultOf(t, store, identities[0])
	twin := draft(3)
	twin.Entries = draft(2).Entries
	var saved []snapshot.Snapshot
	for _, d := range []snapshot.Draft{draft(1), draft(2), twin} {
		saved = append(saved, must[snapshot.Snapshot](t)(first.Save(t.Context(), d)))
	}
	for _, mode := range []faultstore.Mode{faultstore.Refuse, faultstore.Lose, faultstore.Dead} {
		t.Run(fmt.Sprintf("mode %d", mode), func(t *testing.T) {
			// Each round seals to the identity that the round before retired.
			for n, failed := 1+int(mode)%every, true; failed; n += every {
				failed = rewrapWithFault(t, store, saved, identities[0], identities[1], n, mode)
				identities[0], identities[1] = identities[1], identities[0]
				if n > 200 {
					t.Fatal("the rewrapping does not end")
				}
			}
		})
	}
}

// vaultOf returns a vault that opens with the identities and seals to the first.
func vaultOf(t *testing.T, s snapshot.Store, identities ...*age.X25519Identity) *snapshot.Vault {
	t.Helper()
	var text strings.Builder
	for _, x := range identities {
		text.WriteString(x.String() + "\n")
	}
	keys := must[snapshot.Keys](t)(snapshot.LoadKeys(snapshot.KeyConfig{Dir: t.TempDir(), Source: "the test",
		Identities: text.String(), NamingSecret: hex.EncodeToString(make([]byte, 32))}))
	return snapshot.NewVault(s, keys, snapshot.Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
}

// rewrapWithFault makes the nth call fail, and reports whether there was such a call.
func rewrapWithFault(t *testing.T, store *faultstore.Store, saved []snapshot.Snapshot, before, after *age.X25519Identity, n int, mode faultstore.Mode) (failed bool) {
	t.Helper()
	boom := fault.New(fault.StoreFailed, "test", "planned")
	both := vaultOf(t, store, after, before)
	plan := snapshot.RewrapOptions{Retire: []string{before.Recipient().String()}}
	store.FailAt(n, mode, boom)
	_, err := both.Rewrap(t.Context(), plan)
	failed = n <= store.Calls()
	store.FailAt(0, faultstore.Refuse, nil)
	if failed && err == nil || !failed && err != nil {
		t.Errorf("call %d: %v", n, err)
	}
	opens(t, n, both, saved)

	out, err := both.Rewrap(t.Context(), plan)
	if err != nil || len(out.Skipped) > 0 || !failed && out.Archives+out.Documents > 0 {
		t.Fatalf("call %d: again: %+v, %v", n, out, err)
	}
	opens(t, n, vaultOf(t, store, after), saved)
	if _, err := vaultOf(t, store, before).Open(t.Context(), place, id(1)); !fault.Is(err, fault.IdentityMissing) || !strings.Contains(fault.MessageOf(err), after.Recipient().String()) {
		t.Errorf("call %d: with the old identity: %v, want identity_missing naming the new", n, err)
	}
	return failed
}

// opens checks that every saved snapshot opens and verifies under its name, and that
// latest is a copy of the last document.
func opens(t *testing.T, n int, v *snapshot.Vault, saved []snapshot.Snapshot) {
	t.Helper()
	latest, err := v.Latest(t.Context(), place)
	if err != nil || latest.ID != saved[len(saved)-1].ID {
		t.Fatalf("call %d: latest is %q, %v", n, latest.ID, err)
	}
	for _, want := range saved {
		s, err := v.Open(t.Context(), place, want.ID)
		if err == nil {
			err = v.Verify(t.Context(), s)
		}
		if err != nil {
			t.Fatalf("call %d: %s: %v", n, want.ID, err)
		}
		if s.Archive.StoredSize = want.Archive.StoredSize; s.Archive != want.Archive || !cmp.Equal(s.Private, want.Private) || !cmp.Equal(s.AppData, want.AppData) {
			t.Errorf("call %d: %s changed: %+v, %s, %s", n, want.ID, s.Archive, s.Private, s.AppData)
		}
	}
}
