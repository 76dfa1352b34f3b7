package audit_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/stasisd/stasis/profiles/sqldbtest"
	"github.com/stasisd/stasis/session/library/audit"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// logged returns what LogMismatch logs for the rig's catalogue and a vault.
func (r *rig) logged(vault *snapshot.Vault) string {
	var log bytes.Buffer
	audit.LogMismatch(r.Context(), vault, r.catalogue.Sessions, r.catalogue.Snapshots, slog.New(slog.NewTextHandler(&log, nil)))
	return log.String()
}

// LogMismatch reports whether the catalogue, the store and the keys belong together.
func TestLogMismatch(t *testing.T) {
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	emptied := func(r *rig) { r.catalogue = sqldbtest.Open(r, r.now) }
	newStore := func(r *rig) { r.store = memstore.New(0, time.Now) }
	for name, test := range map[string]struct {
		change func(r *rig)
		want   []string // in the log; none: nothing is logged
	}{
		"all is well": {func(*rig) {}, nil},
		"another archive-key": {func(r *rig) { r.keys = snapshot.NewKeys(r.identity, [32]byte{2}) },
			[]string{"ERROR", "archive-key is probably not the one", "from a backup"}},
		"another identity": {func(r *rig) { r.keys = snapshot.NewKeys(other, [32]byte{1}) },
			[]string{"ERROR", "no identity of this daemon can open", "sealed to NEEDED"}},
		"a node that only writes": {func(r *rig) { r.keys = snapshot.NewKeys(nil, [32]byte{1}, r.identity.Recipient()) }, nil},
		"another store":           {newStore, []string{"ERROR", "the store has none", "mem://"}},
		"no catalogue":            {emptied, []string{"WARN", "the catalogue was lost", "stasis snapshot import"}},
		"a first start":           {func(r *rig) { emptied(r); newStore(r) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for n := range 6 { // more than are opened
				r.commit(n+1, "words")
			}
			test.change(r)
			logged := r.logged(snapshot.NewVault(r.store, r.keys, snapshot.Options{Now: r.now}))
			if len(test.want) == 0 && logged != "" {
				t.Errorf("it logs %s", logged)
			}
			for _, want := range test.want {
				want = strings.ReplaceAll(want, "NEEDED", r.identity.Recipient().String())
				if !strings.Contains(logged, want) {
					t.Errorf("no %q in %s", want, logged)
				}
			}
		})
	}
}

// One snapshot that can be opened proves that the keys and the store are right. The
// others are damaged for their own reasons, which a verification reports.
func TestOneReadableSnapshotIsEnough(t *testing.T) {
	r := newRig(t)
	r.commit(1, "one")
	r.commit(2, "two")
	r.drop(r.document(2, "s"))
	if logged := r.logged(r.vault); logged != "" {
		t.Errorf("it logs %s", logged)
	}
}
