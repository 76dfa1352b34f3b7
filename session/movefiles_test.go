package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/files"
	"github.com/stasisd/stasis/session/request"
)

// downloads has the Chrome of a session write a part of a download.
func (r *rig) downloads(id, name string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.sessions.Find(id).dir.Incoming(), name), []byte("data of "+name), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

const (
	firstGUID  = "11111111-1111-4111-8111-111111111111"
	secondGUID = "22222222-2222-4222-8222-222222222222"
)

// withFiles creates a session with two downloads of one name and an upload.
func (r *rig) withFiles(c access.Caller, change func(*request.Create)) string {
	r.t.Helper()
	id := r.create(c, change).ID
	for _, guid := range []string{firstGUID, secondGUID} {
		r.downloads(id, guid)
		if _, err := r.sessions.Find(id).dir.Downloads().Finish(guid, "report.txt"); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.PutFile(r.t.Context(), c, id, "an upload.bin", bytes.NewReader(make([]byte, 300_000))); err != nil {
		r.t.Fatal(err)
	}
	return id
}

// fileTexts returns the files of a session as its owner lists and reads them, by name and GUID.
func (r *rig) fileTexts(c access.Caller, id string) (list []files.Info, texts []string) {
	r.t.Helper()
	list, err := r.ListFiles(r.t.Context(), c, id)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range list {
		for _, name := range []string{f.Name, f.GUID} {
			if name == "" {
				continue
			}
			file, err := r.OpenFile(r.t.Context(), c, id, name)
			if err != nil {
				r.t.Fatal(err)
			}
			text, err := io.ReadAll(file)
			if err = errors.Join(err, file.Close()); err != nil {
				r.t.Fatal(err)
			}
			texts = append(texts, name+": "+string(text))
		}
	}
	return list, texts
}

// runDirs returns the run directories of a node.
func (r *rig) runDirs() (names []string) {
	r.t.Helper()
	for _, c := range r.browsers.all() {
		if _, err := os.Stat(c.dir.Path); err == nil && !slices.Contains(names, c.dir.Name()) {
			names = append(names, c.dir.Name())
		}
	}
	return names
}

// wantFiles checks that a session lives on r, with the same files, and that the node has no other
// run directories than those of n sessions.
func (r *rig) wantFiles(c access.Caller, id string, list []files.Info, texts []string, n int) {
	r.t.Helper()
	now, nowTexts := r.fileTexts(c, id)
	if !slices.Equal(now, list) || !slices.Equal(nowTexts, texts) {
		r.t.Errorf("the files are %+v, and were %+v", now, list)
	}
	if dirs := r.runDirs(); len(dirs) != n {
		r.t.Errorf("run directories: %q", dirs)
	}
}

// The downloads and uploads of a session move with it: by the same names and GUIDs, with the same
// times. Nothing of it stays on the drained node.
func TestMoveFiles(t *testing.T) {
	a, b, drained, _, _ := twoNodes(t, nil)
	id := a.withFiles(alice, nil)
	list, texts := a.fileTexts(alice, id)
	if len(list) != 3 || len(texts) != 5 {
		t.Fatalf("%+v", list)
	}
	drained.Move(t.Context())
	b.wantFiles(alice, id, list, texts, 1)
	if dirs := a.runDirs(); len(dirs) != 0 {
		t.Errorf("left on the drained node: %q", dirs)
	}
	if err := b.DeleteFile(t.Context(), alice, id, firstGUID); err != nil {
		t.Error(err)
	}
	if err := drained.Give(t.Context(), id, io.Discard); !fault.Is(err, fault.FileNotFound) {
		t.Errorf("the drained node still gives the files: %v", err)
	}
}

// A transfer that fails loses nothing: the session continues where it was, with its files. Later
// it moves.
func TestMoveFilesFails(t *testing.T) {
	for what, x := range map[string]struct {
		limit  int64                             // of the disk, on the other node
		damage func(stream []byte) (sent []byte) // of what arrives
		err    error                             // of the call
		reason string
	}{
		"no answer":   {err: fault.New(fault.NodeUnavailable, "test", "broken on purpose"), reason: "broken on purpose"},
		"cut":         {damage: func(s []byte) []byte { return s[:len(s)-100_000] }, reason: "it ends too early"},
		"cut between": {damage: func(s []byte) []byte { return s[:bytes.IndexByte(s, '\n')+1] }, reason: "it ends too early"},
		"more":        {damage: func(s []byte) []byte { return append(s, 'x') }, reason: "it is not as long"},
		"other bytes": {damage: func(s []byte) []byte { s[len(s)-1] ^= 1; return s }, reason: "SHA-256"},
		"a path": {damage: func(s []byte) []byte { return bytes.Replace(s, []byte("an upload.bin"), []byte("../upload.bin"), 1) },
			reason: "a file that is not valid"},
		"a path for a GUID": {damage: func(s []byte) []byte {
			return bytes.Replace(s, []byte(firstGUID), []byte("../1111-1111-4111-8111-111111111111"), 1)
		},
			reason: "GUID"},
		"no room": {limit: 200_000, reason: "may use 200000 bytes of the disk here"},
	} {
		t.Run(what, func(t *testing.T) {
			nodes := 0
			a, b, drained, _, to := twoNodes(t, func(c *Config) {
				if nodes++; nodes == 2 {
					c.Limits.Disk = x.limit
				}
			})
			id := a.withFiles(alice, nil)
			list, texts := a.fileTexts(alice, id)
			usual := to.files
			to.files = func(ctx context.Context, node, id string) (io.ReadCloser, error) {
				if x.err != nil {
					return nil, x.err
				}
				r, err := usual(ctx, node, id)
				if err != nil || x.damage == nil {
					return r, err
				}
				all, err := io.ReadAll(r)
				return io.NopCloser(bytes.NewReader(x.damage(all))), err
			}
			drained.Move(t.Context())
			if staying := drained.Status().Staying; len(staying) != 1 || !strings.Contains(staying[0].Reason, x.reason) {
				t.Errorf("staying: %+v", staying)
			}
			a.wantFiles(alice, id, list, texts, 1)
			if dirs := b.runDirs(); len(dirs) != 0 {
				t.Errorf("left on the other node: %q", dirs)
			}
			if x.limit > 0 {
				return
			}
			to.files = usual
			a.clock.add(2 * movePause)
			drained.Move(t.Context())
			b.wantFiles(alice, id, list, texts, 1)
			if dirs := a.runDirs(); len(dirs) != 0 {
				t.Errorf("left on the drained node: %q", dirs)
			}
		})
	}
}

// A save that fails leaves a session with its files where it is.
func TestMoveFilesWhenTheSaveFails(t *testing.T) {
	a, _, drained, _, _ := twoNodes(t, nil)
	id := a.withFiles(alice, nil)
	list, texts := a.fileTexts(alice, id)
	a.catalogue.fails(errBroken, "Commit")
	drained.Move(t.Context())
	a.catalogue.works()
	a.wantFiles(alice, id, list, texts, 1)
	a.end(alice, id, filesystem)
	if dirs := a.runDirs(); len(dirs) != 0 {
		t.Errorf("left: %q", dirs)
	}
}

// The node that has the files of a session keeps them until another one has them, also if its
// call ends without an answer.
func TestMoveFilesLate(t *testing.T) {
	a, b, drained, other, to := twoNodes(t, nil)
	id := a.withFiles(alice, nil)
	list, texts := a.fileTexts(alice, id)
	to.take = func(context.Context, string, string) error { return fault.New(fault.RequestInProgress, "test", "") }
	drained.Move(t.Context())
	if dirs := a.runDirs(); len(dirs) != 1 || a.Counts().Live != 0 {
		t.Errorf("the drained node has %q", dirs)
	}
	if err := other.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantFiles(alice, id, list, texts, 1)
	drained.Move(t.Context())
	if dirs := a.runDirs(); len(dirs) != 0 {
		t.Errorf("left on the drained node: %q", dirs)
	}
}

// A node that stops gives the files of its sessions away before it ends, also if the others do not
// answer its calls.
func TestLeaveGivesFiles(t *testing.T) {
	a, b, drained, other, to := twoNodes(t, nil)
	id := a.withFiles(alice, nil)
	a.downloads(id, "x.crdownload")
	list, texts := a.fileTexts(alice, id)
	to.take = func(context.Context, string, string) error { return errBroken }
	left := make(chan struct{})
	go func() {
		defer close(left)
		drained.Leave(t.Context())
	}()
	await(t, "the session is ended as moved", func() bool {
		at, err := b.node.Nodes.NodeOf(t.Context(), id)
		return err == nil && at.Moving
	})
	if err := other.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-left
	b.wantFiles(alice, id, list, texts, 1)
	if dirs := a.runDirs(); len(dirs) != 0 {
		t.Errorf("left on the node that stops: %q", dirs)
	}
}

// The node that had the files has ended. Others wait for it for a while. Then the session continues
// without them, and its report says so.
func TestMoveFilesLost(t *testing.T) {
	a, b, drained, other, to := twoNodes(t, nil)
	id := a.withFiles(alice, nil)
	to.take = func(context.Context, string, string) error { return errBroken }
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		drained.Leave(ctx)
	}()
	await(t, "the session is ended as moved", func() bool {
		at, err := b.node.Nodes.NodeOf(t.Context(), id)
		return err == nil && at.Moving
	})
	cancel() // its time is over
	<-left
	a.kill()
	to.files = func(context.Context, string, string) (io.ReadCloser, error) {
		return nil, fault.New(fault.NodeNotFound, "test", "node a has no lease")
	}
	if err := other.Restart(t.Context()); err != nil || b.Counts().Live != 0 {
		t.Errorf("continued without its files at once: %v", err)
	}
	b.clock.add(2 * movePause)
	if err := other.Restart(t.Context()); err != nil || b.status(id) != profiles.StatusReady {
		t.Fatalf("not continued: %v", err)
	}
	report, err := b.RestoreReport(t.Context(), alice, id)
	if err != nil || !slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.HasPrefix(w, "the downloads and uploads of the session are lost") }) {
		t.Errorf("the report: %+v, %v", report, err)
	}
}

// A restored page has downloaded a file of the same name before the files arrive. That one gets a
// number.
func TestMoveFilesOverADownload(t *testing.T) {
	a, b, drained, _, _ := twoNodes(t, nil)
	id := a.withFiles(alice, nil)
	const third = "33333333-3333-4333-8333-333333333333"
	b.browsers.on("restored", func(c *fakeChrome) error {
		err := os.WriteFile(filepath.Join(c.dir.Incoming(), third), []byte("new"), 0o600)
		_, failed := c.dir.Downloads().Finish(third, "report.txt")
		return errors.Join(err, failed)
	})
	_, texts := a.fileTexts(alice, id)
	drained.Move(t.Context())
	_, now := b.fileTexts(alice, id)
	for _, text := range append(texts, third+": new") {
		if !slices.Contains(now, text) {
			t.Errorf("%.60q is missing", text)
		}
	}
}

// While a session is being ended as moved, its node looks which files are still needed. Those are.
func TestMoveFilesAreKeptDuringTheSave(t *testing.T) {
	a, b, drained, _, _ := twoNodes(t, nil)
	id := a.withFiles(alice, nil)
	list, texts := a.fileTexts(alice, id)
	a.catalogue.once("Commit", func() {
		if err := drained.Restart(t.Context()); err != nil {
			t.Error(err)
		}
	})
	drained.Move(t.Context())
	b.wantFiles(alice, id, list, texts, 1)
	if dirs := a.runDirs(); len(dirs) != 0 {
		t.Errorf("left on the drained node: %q", dirs)
	}
}

// Nobody continues a session for so long that the nodes give it up, and its files with it. The
// report of a later resume says so.
func TestMoveFilesGivenUp(t *testing.T) {
	a, b, drained, other, to := twoNodes(t, nil)
	id := a.withFiles(alice, nil)
	to.take = func(context.Context, string, string) error { return errBroken }
	left := make(chan struct{})
	go func() {
		defer close(left)
		drained.Leave(t.Context())
	}()
	await(t, "the session is ended as moved", func() bool {
		at, err := b.node.Nodes.NodeOf(t.Context(), id)
		return err == nil && at.Moving
	})
	b.clock.add(2 * moveTime)
	if err := other.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-left
	if dirs := a.runDirs(); len(dirs) != 0 {
		t.Errorf("left on the node that stops: %q", dirs)
	}
	a.kill()
	if _, err := b.resumes(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	report, err := b.RestoreReport(t.Context(), alice, id)
	if err != nil || !slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.HasPrefix(w, "the downloads and uploads of the session are lost") }) {
		t.Errorf("the report: %+v, %v", report, err)
	}
}
