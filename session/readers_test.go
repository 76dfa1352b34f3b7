package session

import (
	"io"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
)

// A snapshot whose archive is being read cannot be deleted, and the error says for what
// it is read. Afterwards it can.
func TestSnapshotIsNotRemovedWhileRead(t *testing.T) {
	r := newRig(t, nil)
	for name, test := range map[string]struct {
		what string
		read func(snap string) error
	}{
		"a restore": {"restored", func(snap string) error {
			r.end(alice, r.create(alice, func(c *request.Create) { c.FromEnvironment = snap }).ID, none)
			return nil
		}},
		"a standby": {"restored", func(snap string) error {
			row, err := r.catalogue.Snapshot(t.Context(), snap)
			if err != nil {
				return err
			}
			standby, err := r.restorer.StartStandby(t.Context(), row, "chrome", browser.Egress{})
			if err != nil {
				return err
			}
			return standby.Kill(t.Context())
		}},
		"a login check": {"restored", func(snap string) error {
			row, err := r.catalogue.Snapshot(t.Context(), snap)
			if err != nil {
				return err
			}
			seconds := int64(5)
			_, err = r.CheckSnapshot(t.Context(), alice, row, settings.LoginCheck{URL: "https://a.example/", TimeoutSeconds: &seconds})
			return err
		}},
		"its state": {"exported", func(snap string) error {
			_, err := r.library.State(t.Context(), keeper, snap, library.Export{Format: library.FormatStasis})
			return err
		}},
		"its archive": {"exported", func(snap string) error {
			archive, err := r.library.Archive(t.Context(), keeper, snap)
			if err != nil {
				return err
			}
			// The export streams: the call has ended, but the reading has not.
			wantCode(t, r.library.DeleteSnapshot(t.Context(), alice, snap), fault.SnapshotInUse)
			if _, err := io.Copy(io.Discard, archive); err != nil {
				return err
			}
			return archive.Close()
		}},
		"its sealed archive": {"exported", func(snap string) error {
			sealed, err := r.library.SealedArchive(t.Context(), keeper, snap, nil)
			if err != nil {
				return err
			}
			wantCode(t, r.library.DeleteSnapshot(t.Context(), alice, snap), fault.SnapshotInUse)
			return sealed.Close()
		}},
		"a comparison": {"compared", func(snap string) error {
			_, err := r.library.Diff(t.Context(), alice, snap, snap, false)
			return err
		}},
		"a verification": {"verified", func(snap string) error {
			_, err := r.library.VerifySnapshot(t.Context(), alice, snap)
			return err
		}},
		"a rescue that looks for its passkeys": {"read", func(snap string) error {
			dir, err := r.browsers.NewDir()
			if err != nil {
				return err
			}
			defer func() { _ = dir.Remove() }() // the rescue may have removed it
			e := r.saver.Rescue(t.Context(), save.Job{Session: profiles.Session{ID: profiles.NewID(), UserID: "alice", BaseSnapshotID: snap},
				Dir: dir, Dead: true, Rescue: true, Mode: save.Filesystem})
			wantCode(t, e.Err, fault.SaveFailed) // there is no profile to save
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, snap := r.saved(alice, filesystem)
			opened := false
			r.watched.onArchive(func() {
				opened = true
				err := r.library.DeleteSnapshot(t.Context(), alice, snap)
				wantCode(t, err, fault.SnapshotInUse)
				if want := "is being " + test.what; !strings.Contains(fault.MessageOf(err), want) {
					t.Errorf("%q does not say %q", fault.MessageOf(err), want)
				}
			})
			if err := test.read(snap); err != nil || !opened {
				t.Fatalf("opened %t, %v", opened, err)
			}
			r.wantSnapshots(snap)
			if err := r.library.DeleteSnapshot(t.Context(), alice, snap); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			r.wantSnapshots()
		})
	}
}

// If a snapshot is removed between its lookup and the reading of its archive, the caller
// learns that it is gone or gets its replacement. It is never reported as damaged.
func TestRemovedBeforeItIsRead(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	remove := func(snap string) func() {
		return func() {
			if err := r.library.DeleteSnapshot(ctx, alice, snap); err != nil {
				t.Error(err)
			}
		}
	}
	for name, read := range map[string]func(snap string) error{
		"restore": func(snap string) error {
			_, err := r.Create(ctx, alice, newCreate(func(c *request.Create) { c.FromEnvironment = snap }))
			return err
		},
		"archive": func(snap string) error { _, err := r.library.Archive(ctx, keeper, snap); return err },
		"verify":  func(snap string) error { _, err := r.library.VerifySnapshot(ctx, alice, snap); return err },
		"diff":    func(snap string) error { _, err := r.library.Diff(ctx, alice, snap, snap, false); return err },
	} {
		_, snap := r.saved(alice, filesystem)
		r.catalogue.once("Snapshot", remove(snap))
		if err := read(snap); !fault.Is(err, fault.SnapshotNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}

	// The same if a default moves on and loses its old version while it is looked up or
	// restored. No fresh session is made instead.
	_, before := r.saved(alice, asDefault)
	for _, look := range []string{"Default", "Snapshot"} {
		_, after := r.saved(alice, filesystem)
		r.catalogue.once(look, func() {
			if _, err := r.library.SetDefault(ctx, alice, "alice", after, nil); err != nil {
				t.Error(err)
			}
			remove(before)()
		})
		got := r.create(alice, func(c *request.Create) { fromAlice(c); c.FreshIfNone = true })
		if got.Restored == nil || got.Restored.SnapshotID != after {
			t.Errorf("%s: restored %+v, want %s", look, got.Restored, after)
		}
		before = after
	}
}
