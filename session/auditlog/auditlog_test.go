package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Log on a catalogue in memory that can fail, with a clock that stands still.
type rig struct {
	profiles.AuditStore
	*Log
	out bytes.Buffer

	mu     sync.Mutex
	at     time.Time
	refuse error // of AddAudit
	after  error // of AddAudit, after it has added, and of AuditHead
	adds   int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: sqldb.Memory, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &rig{AuditStore: db.Audit, at: time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)}
}

func (r *rig) AddAudit(ctx context.Context, entries []profiles.AuditEntry, drop int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.adds++
	if r.refuse != nil {
		return r.refuse
	}
	return errors.Join(r.AuditStore.AddAudit(ctx, entries, drop), r.after)
}

func (r *rig) AuditHead(ctx context.Context) (profiles.AuditEntry, error) {
	head, err := r.AuditStore.AuditHead(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	return head, errors.Join(err, r.after)
}

func (r *rig) Session(_ context.Context, id string) (profiles.Session, error) {
	if id == "none" {
		return profiles.Session{}, access.NoSession(id)
	}
	return profiles.Session{UserID: "user of " + id}, nil
}

func (r *rig) Snapshot(_ context.Context, id string) (profiles.Snapshot, error) {
	return profiles.Snapshot{UserID: "user of " + id}, nil
}

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// set changes the rig while its goroutine may use it.
func (r *rig) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *rig) open(t *testing.T, keep time.Duration, sinks ...Sink) {
	t.Helper()
	l, err := Open(t.Context(), Config{Store: r, Owners: r, Keep: keep, Sinks: sinks, Now: r.now, Log: slog.New(slog.NewTextHandler(&r.out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	r.Log = l
	t.Cleanup(r.close)
}

func (r *rig) close() { _ = r.Close(context.Background()) }

// entries returns all entries and checks their chain.
func (r *rig) entries(t *testing.T) []profiles.AuditEntry {
	t.Helper()
	page, _, err := r.Page(t.Context(), admin, profiles.AuditFilter{OldestFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	verify(t, page)
	return page
}

func verify(t *testing.T, entries []profiles.AuditEntry) {
	t.Helper()
	var chain profiles.AuditChain
	for _, e := range entries {
		if err := chain.Add(e); err != nil {
			t.Error(err)
		}
	}
	if err := chain.CheckBegin(); err != nil {
		t.Error(err)
	}
}

// shown returns calls with their counts, of entries after the start of the daemon.
func shown(entries []profiles.AuditEntry) string {
	var all []string
	for _, e := range entries {
		if e.Call != Started && e.Call != Stopped {
			all = append(all, fmt.Sprint(e.Call, "x", e.Count))
		}
	}
	return strings.Join(all, " ")
}

var admin = access.Caller{KeyID: "k", Rights: []access.Right{access.RightAdmin}}

func TestRecord(t *testing.T) {
	r := newRig(t)
	r.open(t, 0)
	r.Record(Act{By: ByKey, KeyID: "k", KeyUser: "ada", Address: netip.MustParseAddr("::1"), Call: "createKey", UserID: "bob", SessionID: "s", SnapshotID: "n",
		Object: access.NewSecret(), Detail: strings.Repeat("é", 200) + "\xff", Err: fault.New(fault.Forbidden, "test", ""), Refused: true})
	r.Record(Act{By: ByKey, Call: "b", Object: strings.Repeat("A", access.RandomLength), Err: fault.New(fault.StoreFull, "test", "")})
	all := r.entries(t)
	if len(all) != 3 || all[0].Call != Started || all[0].By != ByDaemon {
		t.Fatalf("%+v", all)
	}
	got := all[1]
	got.Number, got.Previous, got.Hash, got.At = 0, profiles.AuditHash{}, profiles.AuditHash{}, time.Time{}
	want := profiles.AuditEntry{By: "key", KeyID: "k", KeyUser: "ada", Address: "::1", Call: "createKey", UserID: "bob", SessionID: "s", SnapshotID: "n",
		Object: "***", Detail: strings.Repeat("é", 128), Outcome: profiles.AuditRefused, Code: "forbidden", Count: 1}
	if got != want {
		t.Errorf("got %+v", got)
	}
	if e := all[2]; e.Object != "***" || e.Outcome != profiles.AuditFailed || e.Code != "store_full" {
		t.Errorf("got %+v", e)
	}
	if _, _, err := r.Page(t.Context(), access.Caller{Rights: []access.Right{access.RightUse, access.RightSecrets}}, profiles.AuditFilter{}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a key without admin: %v", err)
	}
	if a, b, c := r.UserOf(t.Context(), "s", "n"), r.UserOf(t.Context(), "", "n"), r.UserOf(t.Context(), "none", ""); a != "user of s" || b != "user of n" || c != "" {
		t.Errorf("users %q %q %q", a, b, c)
	}
}

// Of acts that repeat, the first has an entry, and the others have one together.
func TestRepeats(t *testing.T) {
	r := newRig(t)
	r.open(t, 0)
	act := func(key string, varies bool) {
		r.Record(Act{Call: "refused", Object: key, SessionID: "s", Repeats: &Repeats{In: "s", Most: 3, Key: key, Window: time.Minute, Varies: varies}})
	}
	pass := func(by time.Duration) { r.set(func() { r.at = r.at.Add(by) }); r.sweep(false) }
	for range 5 {
		act("a", false)
		act("b", true)
	}
	if got := shown(r.entries(t)); got != "refusedx1 refusedx1" {
		t.Errorf("within the window: %s", got)
	}
	pass(time.Minute)
	all := r.entries(t)
	if got := shown(all); got != "refusedx1 refusedx1 refusedx4 refusedx4" {
		t.Fatalf("after the window: %s", got)
	}
	for _, e := range all[3:] {
		if of := map[string]bool{"a": true, "": true}; !of[e.Object] {
			t.Errorf("an entry with a count names %q", e.Object)
		}
	}
	// However many keys a source has, it has a bounded number of entries.
	for i := range 1000 {
		act(strconv.Itoa(i), false)
	}
	pass(time.Minute)
	all = r.entries(t)[5:]
	if got := shown(all); got != "refusedx1 refusedx1 refusedx1 refusedx1 refusedx996" || all[3].Object != "" || all[4].SessionID != "" {
		t.Errorf("of a thousand: %s", got)
	}
	if len(r.repeats.groups) != 0 || len(r.repeats.of) != 0 {
		t.Errorf("groups are left: %v", r.repeats)
	}
	// The end of the daemon does not lose a count.
	act("z", false)
	act("z", false)
	r.close()
	head, err := r.AuditHead(t.Context())
	if err != nil || head.Call != Stopped {
		t.Errorf("the last entry is %+v, %v", head, err)
	}
	page, _, err := r.AuditPage(t.Context(), profiles.AuditFilter{Limit: 3})
	if err != nil || shown(page) != "refusedx1 refusedx1" {
		t.Errorf("at the end: %s, %v", shown(page), err)
	}
}

// Nothing is lost silently while the catalogue accepts no entries.
func TestCatalogueRefuses(t *testing.T) {
	r := newRig(t)
	r.open(t, 0)
	r.entries(t)
	r.set(func() { r.refuse = fault.New(fault.StoreFull, "test", "") })
	r.Record(Act{Call: "first"})
	r.flush(t.Context())
	for range maxQueued + 7 {
		r.Record(Act{Call: "more"})
	}
	if s := r.State(); !s.Failing || s.Waiting != maxQueued+1 || s.Lost != 7 {
		t.Errorf("%+v", s)
	}
	r.set(func() { r.refuse = nil })
	all := r.entries(t)
	if last := all[len(all)-1]; len(all) != maxQueued+3 || all[1].Call != "first" || last.Call != Lost || last.Count != 7 || last.Outcome != profiles.AuditFailed {
		t.Errorf("%d entries, the last %+v", len(all), last)
	}
	if s := r.State(); s.Failing || s.Waiting != 0 || s.Lost != 7 {
		t.Errorf("%+v", s)
	}
	r.close()
	if log := r.out.String(); strings.Count(log, "cannot write the audit log") != 1 || !strings.Contains(log, "written again") {
		t.Errorf("the log:\n%s", log)
	}
}

// An error after the catalogue has the entries adds none twice.
func TestCatalogueAnswersLate(t *testing.T) {
	r := newRig(t)
	r.open(t, 0)
	r.entries(t)
	r.set(func() { r.after = errors.New("cancelled") })
	r.Record(Act{Call: "once"})
	r.flush(t.Context())
	if s := r.State(); !s.Failing {
		t.Errorf("%+v", s)
	}
	r.set(func() { r.after = nil })
	r.Record(Act{Call: "next"})
	if got := shown(r.entries(t)); got != "oncex1 nextx1" {
		t.Errorf("got %s", got)
	}
}

// Old entries go, and the rest of the log proves which.
func TestPrune(t *testing.T) {
	r := newRig(t)
	r.open(t, 0)
	for range 5 {
		r.Record(Act{Call: "old"})
	}
	r.close()
	old, err := r.AuditHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.set(func() { r.at = r.at.Add(48 * time.Hour) })
	r.open(t, 24*time.Hour)
	r.Record(Act{Call: "young"})
	all := r.entries(t) // checks the chain
	if all[0].Call != Started || all[0].Number != old.Number+1 {
		t.Fatalf("the log begins with %+v", all[0])
	}
	// It is removed when the first entries are written: "young" may be one of them, or follow.
	pruned := slices.IndexFunc(all, func(e profiles.AuditEntry) bool { return e.Call == profiles.AuditPruned })
	if pruned < 0 || all[pruned].Detail != old.Hash.String() {
		t.Errorf("no entry says what was removed: %+v", all)
	}
}
