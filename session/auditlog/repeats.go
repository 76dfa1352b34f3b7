package auditlog

import (
	"time"

	"github.com/stasisd/stasis/profiles"
)

// Repeats bounds the entries of acts that somebody can repeat at will. The first act of a
// group is recorded at once. Those that follow within the window are counted, and one entry
// with their count is recorded when the window ends.
type Repeats struct {
	// In is the source of the acts, such as a session or an address. It has at most Most
	// groups at once. Further acts share one group, whose entries have no object.
	In     string
	Most   int
	Key    string // the group within In
	Window time.Duration
	// Varies says that acts of a group can have different objects. The entry with the
	// count then has none.
	Varies bool
	// OfSession says that all acts of In are of one session, which every entry names.
	OfSession bool
}

// groupID identifies a group. Its key is "" for the acts that share one.
type groupID struct{ in, key string }

// group counts the repeats of an act.
type group struct {
	act   Act
	until time.Time
	count int64
}

// repeats holds the groups whose window has not ended.
type repeats struct {
	groups map[groupID]*group
	of     map[string]int // number of groups by source
}

func newRepeats() repeats { return repeats{groups: map[groupID]*group{}, of: map[string]int{}} }

// withoutObject removes from an act what differs between the acts of a group.
func (a Act) withoutObject() Act {
	a.SnapshotID, a.Object, a.Detail = "", "", ""
	if !a.Repeats.OfSession {
		a.UserID, a.SessionID = "", ""
	}
	return a
}

// add returns the entries to record now: none if the act is only counted.
func (r *repeats) add(a Act, now time.Time) []profiles.AuditEntry {
	id := groupID{a.Repeats.In, a.Repeats.Key}
	if r.groups[id] == nil && r.of[id.in] >= a.Repeats.Most {
		id.key = ""
		a = a.withoutObject()
	}
	g := r.groups[id]
	if g != nil && now.Before(g.until) {
		g.count++
		return nil
	}
	var due []profiles.AuditEntry
	if g != nil {
		due = r.end(id, now)
	}
	r.groups[id] = &group{act: a, until: now.Add(a.Repeats.Window)}
	r.of[id.in]++
	return append(due, a.entry(now, 1))
}

// end removes a group and returns the entry with its count, if it has one.
func (r *repeats) end(id groupID, now time.Time) []profiles.AuditEntry {
	g := r.groups[id]
	delete(r.groups, id)
	if r.of[id.in]--; r.of[id.in] == 0 {
		delete(r.of, id.in)
	}
	if g.count == 0 {
		return nil
	}
	if g.act.Repeats.Varies {
		g.act = g.act.withoutObject()
	}
	return []profiles.AuditEntry{g.act.entry(now, g.count)}
}

// sweep ends the groups whose window has ended, or all of them.
func (r *repeats) sweep(now time.Time, all bool) []profiles.AuditEntry {
	var due []profiles.AuditEntry
	for id, g := range r.groups {
		if all || !now.Before(g.until) {
			due = append(due, r.end(id, now)...)
		}
	}
	return due
}
