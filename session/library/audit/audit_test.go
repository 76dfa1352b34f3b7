package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/profiles/sqldbtest"
	"github.com/stasisd/stasis/session/library/audit"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// rig is a store and a catalogue with a clock that a test sets.
type rig struct {
	*testing.T
	at        time.Time
	store     *memstore.Store
	identity  *age.X25519Identity
	keys      snapshot.Keys
	vault     *snapshot.Vault
	catalogue *sqldb.DB
	archives  map[int]snapshot.Key // of snapshots, by their number
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, at: time.Unix(1_800_000_000, 0), archives: map[int]snapshot.Key{}}
	r.store = memstore.New(0, r.now)
	var err error
	r.identity, err = age.GenerateX25519Identity()
	r.must(err)
	r.keys = snapshot.NewKeys(r.identity, [32]byte{1})
	r.vault = snapshot.NewVault(r.store, r.keys, snapshot.Options{Now: r.now})
	r.catalogue = sqldbtest.Open(t, r.now)
	r.must(r.catalogue.Sessions.CreateSession(t.Context(), profiles.Session{ID: "s", UserID: "ada", Status: profiles.StatusReady, CreatedAt: r.at}))
	return r
}

func (r *rig) now() time.Time { return r.at }

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func id(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012x", n) }

func location(session string) snapshot.Location {
	return snapshot.Location{Owner: profiles.OwnerOf("ada"), Session: session, Scope: "agent", ScopeID: "browser"}
}

// save stores snapshot n, whose archive contains words.
func (r *rig) save(n int, session, words string) snapshot.Snapshot {
	r.Helper()
	s, err := r.vault.Save(r.Context(), snapshot.Draft{ID: id(n), Location: location(session), Mode: snapshot.Filesystem, CreatedAt: r.at,
		Entries: []snapshot.Entry{{Name: "state.json", Data: []byte(words)}}, Private: json.RawMessage(`{}`)})
	r.must(err)
	r.archives[n], err = snapshot.ArchiveKey(s.Archive.ID)
	r.must(err)
	return s
}

// commit saves snapshot n and records it as the user's default.
func (r *rig) commit(n int, words string) {
	r.Helper()
	s := r.save(n, "s", words)
	_, err := r.catalogue.Snapshots.Commit(r.Context(), profiles.Commit{Move: &profiles.Move{Overwrite: true}, Snapshot: profiles.Snapshot{
		ID: s.ID, SessionID: "s", UserID: "ada", Mode: string(s.Mode), CreatedAt: r.at, ArchiveID: s.Archive.ID}})
	r.must(err)
}

func (r *rig) document(n int, session string) snapshot.Key {
	key, err := location(session).DocumentKey(id(n))
	r.must(err)
	return key
}

func (r *rig) drop(key snapshot.Key) {
	r.Helper()
	r.must(r.store.Delete(r.Context(), key))
}

func (r *rig) has(key snapshot.Key) bool {
	_, err := r.store.Stat(r.Context(), key)
	return err == nil
}

// records are the records of the rig's catalogue.
func (r *rig) records() *audit.Records {
	return &audit.Records{Sessions: r.catalogue.Sessions, Snapshots: r.catalogue.Snapshots, Defaults: r.catalogue.Defaults}
}

// run makes an audit. found has a line for each finding: severity, kind, snapshot, what
// was done.
func (r *rig) run(records *audit.Records, o audit.Options) (found []string, sum audit.Summary, err error) {
	r.Helper()
	sum, err = audit.Run(r.Context(), r.vault, records, r.now, o, func(f audit.Finding) error {
		words := []string{string(f.Severity), string(f.Kind)}
		if f.Snapshot != "" {
			words = append(words, strings.TrimLeft(f.Snapshot[24:], "0"))
		}
		if f.Removed {
			words = append(words, "removed")
		}
		if f.Repaired {
			words = append(words, "repaired")
		}
		found = append(found, strings.Join(words, " "))
		return nil
	})
	return found, sum, err
}

func (r *rig) want(o audit.Options, want ...string) audit.Summary {
	r.Helper()
	found, sum, err := r.run(r.records(), o)
	r.must(err)
	if diff := cmp.Diff(want, found); diff != "" {
		r.Errorf("findings (-want +got):\n%s", diff)
	}
	return sum
}

var clean = audit.Options{Grace: time.Hour, Repair: true, Remove: true}

// If the catalogue names a snapshot that the store lacks, the snapshot is lost. Its
// remaining parts stay, because a backup may have the others.
func TestLostSnapshot(t *testing.T) {
	r := newRig(t)
	r.commit(1, "one")
	r.commit(2, "two")
	r.at = r.at.Add(2 * time.Hour)
	var done []int
	o := clean
	o.Progress = func(archives int) { done = append(done, archives) }
	if sum := r.want(o); !sum.OK() || sum.Recorded != 2 || sum.Snapshots != 2 || !slices.Equal(done, []int{1, 2}) {
		t.Errorf("a store without damage: %+v, progress %v", sum, done)
	}
	r.drop(r.document(2, "s")) // latest still has it
	if sum := r.want(clean, "damaged latest_damaged 2 repaired"); !sum.OK() || sum.Repaired != 1 {
		t.Errorf("repaired from latest: %+v", sum)
	}
	r.drop(r.document(1, "s"))
	sum := r.want(clean, "lost document_missing 1")
	if sum.OK() || sum.Found[audit.Lost] != 1 || !r.has(r.archives[1]) {
		t.Errorf("%+v, its archive is there: %t", sum, r.has(r.archives[1]))
	}
	r.drop(r.archives[2])
	r.want(audit.Options{}, "lost archive_missing 2", "damaged latest_damaged 2", "lost document_missing 1", "lost default_broken 2")
}

// What nothing names is removed once it is old enough, and nothing else is.
func TestOrphans(t *testing.T) {
	r := newRig(t)
	r.commit(1, "one")
	r.save(2, "s", "two")         // a save that died before its commit
	r.save(3, "s", "one")         // shares its archive with snapshot 1
	r.save(4, "elsewhere", "for") // its session is not in the catalogue
	r.save(5, "s", "five")
	r.drop(r.document(5, "s")) // a save that died before its document; latest still has it
	r.want(clean, "damaged latest_damaged 5 repaired")

	r.at = r.at.Add(2 * time.Hour)
	found := []string{"leftover document_unrecorded 4", "leftover document_unrecorded 2", "leftover document_unrecorded 3", "leftover document_unrecorded 5"}
	r.want(audit.Options{Grace: time.Hour}, found...)
	r.want(audit.Options{Grace: 3 * time.Hour})
	sum := r.want(clean, found[0], found[1]+" removed", found[2]+" removed", found[3]+" removed",
		"leftover archive_orphaned removed", "leftover archive_orphaned removed")
	if !sum.OK() || sum.Removed != 5 {
		t.Errorf("%+v", sum)
	}
	for n, stays := range map[int]bool{1: true, 2: false, 4: true, 5: false} {
		if r.has(r.archives[n]) != stays {
			t.Errorf("the archive of snapshot %d is there: %t", n, !stays)
		}
	}
	latest, err := r.vault.Latest(t.Context(), location("s"))
	if err != nil || latest.ID != id(1) {
		t.Errorf("latest is %s, %v", latest.ID, err)
	}
	r.want(clean, found[0])
}

// The remains of an interrupted delete do not count as a loss.
func TestHalfDeleted(t *testing.T) {
	r := newRig(t)
	r.commit(1, "one")
	r.save(2, "s", "two")
	r.commit(3, "three")
	r.drop(r.archives[2])
	r.want(audit.Options{}, "leftover archive_missing 2", "leftover document_unrecorded 2")
}

// While a document cannot be read, it may name any archive.
func TestUnclear(t *testing.T) {
	r := newRig(t)
	r.commit(1, "one")
	r.commit(2, "two")
	r.at = r.at.Add(2 * time.Hour)
	key := r.document(1, "s")
	r.drop(key)
	if _, err := r.store.Create(t.Context(), key, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	r.want(clean, "unchecked version_unknown 1", "leftover archive_orphaned")
	if !r.has(r.archives[1]) {
		t.Error("the archive of a document that cannot be read was removed")
	}
}

// unlisted is a store that cannot list one folder.
type unlisted struct {
	*memstore.Store
	folder snapshot.Key
}

func (u unlisted) List(ctx context.Context, folder snapshot.Key, limit int, after string) ([]string, error) {
	if folder == u.folder {
		return nil, fault.New(fault.StoreFailed, "test", "planned")
	}
	return u.Store.List(ctx, folder, limit, after)
}

// A folder that cannot be listed may contain the document of any archive.
func TestUnlisted(t *testing.T) {
	r := newRig(t)
	r.must(r.catalogue.Sessions.CreateSession(t.Context(), profiles.Session{ID: "t", UserID: "ada", Status: profiles.StatusReady, CreatedAt: r.at}))
	r.commit(1, "one")
	s := r.save(2, "t", "two")
	_, err := r.catalogue.Snapshots.Commit(t.Context(), profiles.Commit{Snapshot: profiles.Snapshot{
		ID: s.ID, SessionID: "t", UserID: "ada", Mode: string(s.Mode), CreatedAt: r.at, ArchiveID: s.Archive.ID}})
	r.must(err)
	r.save(3, "t", "three") // latest has this one
	r.at = r.at.Add(2 * time.Hour)
	folder, err := location("t").HistoryFolder()
	r.must(err)
	r.vault = snapshot.NewVault(unlisted{r.store, folder}, r.keys, snapshot.Options{Now: r.now})
	r.want(audit.Options{Grace: time.Hour, Remove: true}, "unchecked unreadable", "leftover archive_orphaned")
	if !r.has(r.archives[2]) {
		t.Error("the archive of a snapshot whose folder cannot be listed was removed")
	}
}

// An error of the found callback ends the audit and is returned.
func TestCallbackErrorEndsTheAudit(t *testing.T) {
	r := newRig(t)
	r.commit(1, "one")
	r.drop(r.archives[1])
	boom := errors.New("on purpose")
	_, err := audit.Run(t.Context(), r.vault, r.records(), r.now, audit.Options{}, func(audit.Finding) error { return boom })
	if !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}
