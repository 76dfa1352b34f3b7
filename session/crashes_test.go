package session

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/datadir"
	"github.com/stasisd/stasis/state"
)

// restored makes a session from another's snapshot that has one cookie, and is
// started again after crashes.
func (r *rig) restored() (id string) {
	r.t.Helper()
	from, _ := r.saved(alice, filesystem)
	return r.create(alice, func(c *Create) { onCrash(c); c.FromSession = from }).ID
}

// wroteJar writes a cookie jar into a Chrome's profile that nobody can read.
func (r *rig) wroteJar(at time.Time) {
	r.t.Helper()
	path := filepath.Join(datadir.Path(r.browsers.last().dir.Profile()), "Cookies")
	if err := errors.Join(os.WriteFile(path, []byte("half of it"), 0o600), os.Chtimes(path, at, at)); err != nil {
		r.t.Fatal(err)
	}
}

// Each crash of a session brings back what its snapshot had read, as long as Chrome
// has not written it: the report of the first restart does not hide the snapshot.
func TestCrashesBringBackWhatWasRead(t *testing.T) {
	r := newRig(t, nil)
	id := r.restored()
	for n := range maxRestarts {
		r.crashes(id)
		if doc := r.browsers.last().restored; !doc.Complete || len(doc.Cookies) != 1 || len(doc.Doubts) > 0 {
			t.Errorf("crash %d brings %d cookies, complete: %t, doubts %q", n+1, len(doc.Cookies), doc.Complete, doubts(doc))
		}
	}
}

// So does a rescue after a restart.
func TestKilledAfterARestart(t *testing.T) {
	r := newRig(t, nil)
	id := r.restored()
	r.crashes(id)
	r.kill()
	r.Service = r.daemon(nil)
	if err := r.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	row, err := r.catalogue.NewestSnapshot(t.Context(), id)
	if err != nil || row.Label == "" {
		t.Fatalf("%+v, %v", row, err)
	}
	if doc, err := r.document(t.Context(), row, "read"); err != nil || !doc.Complete || len(doc.Cookies) != 1 {
		t.Errorf("%+v, %v", doc, err)
	}
}

// What Chrome wrote before a restart is newer than what the session began with:
// here it is a jar that cannot be read, so that the reading is taken with a doubt.
func TestJarWrittenBeforeARestart(t *testing.T) {
	r := newRig(t, nil)
	id := r.restored()
	r.wroteJar(r.clock.add(time.Minute))
	r.clock.add(time.Minute)
	for n := range 2 {
		r.crashes(id)
		if got := doubts(r.browsers.last().restored); len(got) != 1 || got[0] != state.ComponentCookies {
			t.Errorf("crash %d: doubts %q", n+1, got)
		}
	}
	// One that was laid down with the snapshot is not.
	id = r.restored()
	r.wroteJar(r.clock.add(-time.Hour))
	r.clock.add(time.Hour)
	r.crashes(id)
	if got := doubts(r.browsers.last().restored); len(got) > 0 {
		t.Errorf("a jar that was there before: doubts %q", got)
	}
}

// Where no Chrome comes up after a crash, what is saved has what was read, although
// the one that failed has written since.
func TestFailedRestartSavesWhatWasRead(t *testing.T) {
	r := newRig(t, nil)
	id := r.restored()
	r.browsers.on("restored", func(c *fakeChrome) error {
		path := filepath.Join(datadir.Path(c.dir.Profile()), "Cookies")
		return errors.Join(errBroken, os.WriteFile(path, []byte("an empty one"), 0o600))
	})
	r.crashes(id)
	row, err := r.catalogue.NewestSnapshot(t.Context(), id)
	if err != nil || !row.Rescue || row.Label == "" {
		t.Fatalf("%+v, %v", row, err)
	}
	doc, err := r.document(t.Context(), row, "read")
	if err != nil || !doc.Complete || len(doc.Cookies) != 1 || len(doc.Doubts) > 0 {
		t.Errorf("%d cookies, doubts %q, %v", len(doc.Cookies), doubts(doc), err)
	}
}
