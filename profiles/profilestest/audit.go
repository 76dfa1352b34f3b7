package profilestest

import (
	"fmt"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// audited adds entries to the audit log, one second apart, as one batch.
func (f *fixture) audited(entries ...profiles.AuditEntry) []profiles.AuditEntry {
	f.Helper()
	head, err := f.c.Audit.AuditHead(f.ctx)
	f.must(err)
	for i := range entries {
		e := &entries[i]
		if e.At.IsZero() {
			e.At = start.Add(time.Duration(head.Number+1) * time.Second)
		}
		e.Count = 1
		e.Follow(head)
		head = *e
	}
	f.must(f.c.Audit.AddAudit(f.ctx, entries, 0))
	return entries
}

// Every field is kept as it was hashed, and only what continues the log is added.
func testAudit(f *fixture) {
	head, err := f.c.Audit.AuditHead(f.ctx)
	f.must(err)
	f.same(head, profiles.AuditEntry{})
	all := f.audited(
		profiles.AuditEntry{By: "key", KeyID: "k", KeyUser: "ключ\x00", Address: "::1", Call: "createSession", UserID: "ada\"\n", SessionID: "s",
			SnapshotID: "snap", Object: "o", Detail: "d\x00é", Outcome: profiles.AuditRefused, Code: "forbidden"},
		profiles.AuditEntry{By: "daemon", Call: "daemon_started", Outcome: profiles.AuditOK})
	got, next, err := f.c.Audit.AuditPage(f.ctx, profiles.AuditFilter{OldestFirst: true})
	f.must(err)
	f.same(got, all)
	f.same(next, int64(0))
	var chain profiles.AuditChain
	for _, e := range got {
		f.must(chain.Add(e))
	}
	f.must(chain.CheckBegin())
	head, err = f.c.Audit.AuditHead(f.ctx)
	f.must(err)
	f.same(head, all[1])

	after := profiles.AuditEntry{At: start, Call: "a"}
	after.Follow(head)
	next2 := profiles.AuditEntry{At: start, Call: "b"}
	next2.Follow(after)
	other := profiles.AuditEntry{At: start, Call: "b"}
	other.Follow(profiles.AuditEntry{Number: after.Number})
	for _, wrong := range [][]profiles.AuditEntry{{all[1]}, {next2}, {after, other}} {
		f.code(f.c.Audit.AddAudit(f.ctx, wrong, 1), fault.StoreFailed)
	}
	got, _, err = f.c.Audit.AuditPage(f.ctx, profiles.AuditFilter{OldestFirst: true})
	f.must(err)
	f.same(got, all)
}

func testAuditPages(f *fixture) {
	var entries []profiles.AuditEntry
	for i := range 6 {
		e := profiles.AuditEntry{By: "key", KeyID: fmt.Sprint("k", i%2), KeyUser: "ada", Call: "createSession", UserID: []string{"ada", "bob", ""}[i%3],
			SessionID: fmt.Sprint("s", i), SnapshotID: fmt.Sprint("snap", i), Object: fmt.Sprint("o", i), Outcome: profiles.AuditOK}
		if i == 4 {
			e.Call, e.Outcome = "deleteKey", profiles.AuditFailed
		}
		entries = append(entries, e)
	}
	entries[5].Object = profiles.AuditEverybody
	f.audited(entries...)
	for _, x := range []struct {
		filter profiles.AuditFilter
		want   []int64
	}{
		{profiles.AuditFilter{}, []int64{6, 5, 4, 3, 2, 1}},
		{profiles.AuditFilter{Limit: 4}, []int64{6, 5, 4, 3, 2, 1}},
		{profiles.AuditFilter{Limit: 2, OldestFirst: true}, []int64{1, 2, 3, 4, 5, 6}},
		{profiles.AuditFilter{UserID: "ada", Limit: 1}, []int64{4, 1}},
		{profiles.AuditFilter{KeyID: "k1"}, []int64{6, 4, 2}},
		{profiles.AuditFilter{Call: "deleteKey"}, []int64{5}},
		{profiles.AuditFilter{SessionID: "s2"}, []int64{3}},
		{profiles.AuditFilter{Object: "o2"}, []int64{3}},
		{profiles.AuditFilter{Object: "snap3"}, []int64{4}},
		{profiles.AuditFilter{Outcome: profiles.AuditFailed}, []int64{5}},
		{profiles.AuditFilter{Since: start.Add(2 * time.Second), Until: start.Add(4 * time.Second)}, []int64{3, 2}},
		{profiles.AuditFilter{Others: true}, []int64{6, 5, 2}},
		{profiles.AuditFilter{Call: "none"}, nil},
		{profiles.AuditFilter{StartAfter: 3}, []int64{2, 1}},
		{profiles.AuditFilter{StartAfter: 99, OldestFirst: true}, nil},
	} {
		var got []int64
		for more := true; more; more = x.filter.StartAfter != 0 {
			page, next, err := f.c.Audit.AuditPage(f.ctx, x.filter)
			f.must(err)
			for _, e := range page {
				got = append(got, e.Number)
			}
			x.filter.StartAfter = next
		}
		f.same(got, x.want)
	}
}

// Old entries are those before the first that is young, and are deleted with what is added.
func testOldAudit(f *fixture) {
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	old, err := f.c.Audit.OldAudit(f.ctx, at(9))
	f.must(err)
	f.same(old, profiles.AuditEntry{})
	all := f.audited(profiles.AuditEntry{At: at(1)}, profiles.AuditEntry{At: at(2)}, profiles.AuditEntry{At: at(8)}, profiles.AuditEntry{At: at(1)})
	for before, want := range map[int]profiles.AuditEntry{0: {}, 1: {}, 2: all[0], 3: all[1], 8: all[1], 9: all[3]} {
		old, err := f.c.Audit.OldAudit(f.ctx, at(before))
		f.must(err)
		f.same(old, want)
	}
	e := profiles.AuditEntry{At: at(10)}
	e.Follow(all[3])
	f.must(f.c.Audit.AddAudit(f.ctx, []profiles.AuditEntry{e}, 4))
	got, _, err := f.c.Audit.AuditPage(f.ctx, profiles.AuditFilter{})
	f.must(err)
	f.same(got, []profiles.AuditEntry{e})
}
