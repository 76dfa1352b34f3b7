// Package profilestest is the conformance suite of the stores of package profiles. Every
// adapter passes it.
package profilestest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Catalogue holds the stores that the suite tests, all on one database.
type Catalogue struct {
	Keys       profiles.KeyStore
	Users      profiles.UserStore
	Sessions   profiles.SessionStore
	Snapshots  profiles.SnapshotStore
	Retention  profiles.RetentionStore
	Defaults   profiles.DefaultStore
	Extensions profiles.ExtensionStore
	Packed     profiles.PackedExtensionStore
	Runs       profiles.RunStore
	Events     profiles.EventStore
	Messages   profiles.MessageStore
	Notes      profiles.NoteStore
	Deliveries profiles.DeliveryStore
	Receivers  profiles.WebhookSecretStore
	Answers    profiles.AnswerStore
	Audit      profiles.AuditStore
	Database   Database
}

// Database has the methods of the database as a whole.
type Database interface {
	// Health reports whether the database can be read: store_failed or timeout if not.
	Health(ctx context.Context) error
	// Close closes the database. Afterwards every method of a store returns store_failed.
	Close() error
}

// Run runs the suite. open returns an empty catalogue for each test and closes it when
// the test ends.
func Run(t *testing.T, open func(t *testing.T) Catalogue) {
	tests := []struct {
		name string
		run  func(*fixture)
	}{
		{"keys", testKeys},
		{"users", testUsers},
		{"user update fails", testUserUpdateFails},
		{"user race", testUserRace},
		{"sessions", testSessions},
		{"session exists", testSessionExists},
		{"session update", testSessionUpdate},
		{"sealed ends", testSealedEnds},
		{"session pages", testSessionPages},
		{"session filter", testSessionFilter},
		{"user IDs", testUserIDs},
		{"commit", testCommit},
		{"commit is atomic", testCommitAtomic},
		{"commit refuses mismatched parts", testCommitBelongs},
		{"commit with its session", testCommitSession},
		{"commit moves the base", testCommitBase},
		{"commit race", testCommitRace},
		{"stored", testStored},
		{"end", testEnd},
		{"snapshots", testSnapshots},
		{"snapshot order", testSnapshotOrder},
		{"snapshot pages", testSnapshotPages},
		{"expired snapshots", testExpiredSnapshots},
		{"delete snapshot", testDeleteSnapshot},
		{"retire snapshot", testRetireSnapshot},
		{"users with snapshots", testUsersWithSnapshots},
		{"shared archive", testSharedArchive},
		{"default moves", testDefaultMoves},
		{"last used", testLastUsed},
		{"default renewed", testDefaultRenewed},
		{"set default", testSetDefault},
		{"default history", testDefaultHistory},
		{"set default race", testSetDefaultRace},
		{"default of another user", testDefaultOfAnother},
		{"extensions", testExtensions},
		{"extensions in use", testExtensionsInUse},
		{"packed extensions", testPackedExtensions},
		{"runs", testRuns},
		{"runs of many sessions", testOpenRuns},
		{"events", testEvents},
		{"event pages", testEventPages},
		{"event bounds", testEventBounds},
		{"events expire", testEventsExpire},
		{"event race", testEventRace},
		{"sealed events", testSealedEvents},
		{"messages", testMessages},
		{"going back", testGoingBack},
		{"message race", testMessageRace},
		{"notes", testNotes},
		{"note race", testNoteRace},
		{"deliveries", testDeliveries},
		{"resend", testResend},
		{"webhook secrets", testWebhookSecrets},
		{"deliveries are written with their change", testNotices},
		{"delivery pages", testDeliveryPages},
		{"answers", testAnswers},
		{"answer race", testAnswerRace},
		{"answers expire", testAnswersExpire},
		{"audit", testAudit},
		{"audit pages", testAuditPages},
		{"old audit", testOldAudit},
		{"cancelled context", testCancelled},
		{"panic in a callback", testPanic},
		{"readers and writers", testConcurrent},
		{"health and close", testHealthClose},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.run(&fixture{T: t, c: open(t), ctx: t.Context()})
		})
	}
}

// start is the time of the suite's first records. It has milliseconds, the precision that
// a catalogue must keep.
var start = time.Date(2026, 3, 29, 1, 59, 59, 987_000_000, time.UTC)

// fixture is a test with its empty catalogue.
type fixture struct {
	*testing.T
	c     Catalogue
	other *Catalogue // a second one on the same database; nil: there is none
	ctx   context.Context
	n     int // number of records so far; each is a second older than the one before
}

// session creates a ready session with every field set.
func (f *fixture) session(id, user string) profiles.Session {
	f.Helper()
	f.n++
	s := profiles.Session{
		ID: id, UserID: user, KeyID: "key", AgentName: "agi-0", Goal: "goal", Engine: "chrome",
		Status: profiles.StatusReady, Reason: profiles.ReasonCrashed.With("reason"),
		CreatedAt: start.Add(time.Duration(f.n) * time.Second), ExpiresAt: start.Add(time.Hour),
		Labels: map[string]string{"": "empty", "ключ": "значение\n\"'", "n": "\x00"}, RequestHash: "hash", RunDir: "abcdefgh", Discard: true,
		Restored: []byte(`{"mode": "filesystem"}`), BaseSnapshotID: "base", BaseVersion: 7, SealedRequest: []byte("asked"), WebhookURL: "https://hooks.example/a", FromDefault: true,
	}
	f.must(f.c.Sessions.CreateSession(f.ctx, s))
	return s
}

// snapshot returns an uncommitted snapshot of a session, with every field set.
func (f *fixture) snapshot(id string, s profiles.Session) profiles.Snapshot {
	f.n++
	return profiles.Snapshot{
		ID: id, SessionID: s.ID, UserID: s.UserID, Mode: "memory", Label: "label",
		CreatedAt: start.Add(time.Duration(f.n) * time.Second), ArchiveID: "archive-" + id, SizeBytes: 1 << 40,
		Datadir: "clean", Chrome: "156.0.1", Engine: "chrome", Report: []byte(`{"cookies": 3}`),
	}
}

// commit commits a snapshot of the session.
func (f *fixture) commit(id string, s profiles.Session, move *profiles.Move) profiles.MoveResult {
	f.Helper()
	moved, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: f.snapshot(id, s), Move: move})
	f.must(err)
	return moved
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// code checks an error's code; "" means no error.
func (f *fixture) code(err error, want fault.Code) {
	f.Helper()
	if fault.CodeOf(err) != want {
		f.Errorf("got error %v, want code %q", err, want)
	}
}

// same compares two values, without the commit sequence, which the catalogue sets.
func (f *fixture) same(got, want any) {
	f.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(profiles.Snapshot{}, "Sequence"), cmpopts.EquateEmpty()); diff != "" {
		f.Errorf("-want +got:\n%s", diff)
	}
}

// together runs do n times concurrently, on each of the test's catalogues in turn.
func (f *fixture) together(n int, do func(i int, c Catalogue)) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gate
			if c := f.c; i%2 == 0 || f.other == nil {
				do(i, c)
			} else {
				do(i, *f.other)
			}
		})
	}
	close(gate)
	wg.Wait()
}

// ids returns n IDs whose sort order differs from their order in the list.
func ids(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%02d", prefix, (i*7)%n)
	}
	return all
}
