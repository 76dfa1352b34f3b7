package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// withNote creates a session with noteExtension, which runs and stores a text.
func withNote(t *testing.T, d *daemon.Daemon, id string, site *httptest.Server) liveSession {
	t.Helper()
	s := begin(t, d, obj{"engine": "chrome", "extensions": []string{id}})
	saysNote(t, s, id, site, "kept")
	return s
}

// saysNote checks that noteExtension runs in a session and has a text. With said it stores that.
func saysNote(t *testing.T, s liveSession, id string, site *httptest.Server, said string) {
	t.Helper()
	got := drive(t, chromeDP, s.CDP, visit(site.URL), askNote(said))
	if now := text(t, got[len(got)-1]); now != id+" "+id+" kept kept kept" {
		t.Errorf("the extension says %q", now)
	}
}

// filesIn counts what is in a folder of a data directory.
func filesIn(d *daemon.Daemon, folder string) int {
	entries, _ := os.ReadDir(filepath.Join(d.Dir, folder)) // no folder: nothing is in it
	return len(entries)
}

// An extension that node a took runs in a session on b. After a has deleted it, b refuses it, and
// b's copy goes. A snapshot that has it is restored on either node.
func TestClusterExtension(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	site := noteSite(t)
	id := uploadExtension(t, a.Daemon, noteExtension)
	if again := uploadExtension(t, b.Daemon, noteExtension); again != id {
		t.Errorf("on b it is %q, on a %q", again, id)
	}
	c.only(t, 1)
	s := withNote(t, b.Daemon, id, site)
	saved := finish(t, b.Daemon, s.ID, toFiles).Snapshot.ID

	wants(t, b.Call(t, http.MethodDelete, "/v1/extensions/"+id, nil), http.StatusConflict, "extension_in_use")
	a.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/extensions/"+id+"?force=true", nil)
	wants(t, b.Call(t, http.MethodPost, "/v1/sessions", obj{"engine": "chrome", "extensions": []string{id}}), http.StatusNotFound, "extension_not_found")
	b.Stop(t)
	b.Restart(t)
	daemon.Eventually(t, grace, "b's copy is removed", func() bool { return filesIn(b.Daemon, "extension-cache") == 0 })
	for i, n := range c.nodes {
		c.only(t, i)
		back := begin(t, n.Daemon, obj{"restore_from_environment_id": saved})
		saysNote(t, back, id, site, "")
		finish(t, n.Daemon, back.ID, throwAway)
	}
}

// An extension that a daemon took before it was a node runs in a session on another node. A backup
// of that node has it too.
func TestClusterExtensionOfOneDaemon(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	site := noteSite(t)
	alone := daemon.Start(t, c.options())
	id := uploadExtension(t, alone, noteExtension)
	if n := filesIn(alone, "extensions"); n != 1 {
		t.Errorf("one daemon has %d extensions", n)
	}
	alone.Stop(t)
	a, b := c.add(t, alone.Dir), c.add(t, "")
	if own, copies := filesIn(a.Daemon, "extensions"), filesIn(a.Daemon, "extension-cache"); own != 0 || copies != 1 {
		t.Errorf("the node has %d extensions as one daemon has them, and %d copies", own, copies)
	}
	c.only(t, 1)
	finish(t, b.Daemon, withNote(t, b.Daemon, id, site).ID, throwAway)

	target, dir := filepath.Join(t.TempDir(), "backup"), daemon.DataDir(t)
	if code, said := stasis(t, nil, "backup", target, "--data-dir", b.Dir, "--database", c.server.URL("stasis"), "--keys"); code != 0 {
		t.Fatalf("the backup ended with %d:\n%s", code, said)
	}
	if code, said := stasis(t, nil, "backup", "restore", target, "--data-dir", dir); code != 0 {
		t.Fatalf("the restore ended with %d:\n%s", code, said)
	}
	d := daemon.Start(t, daemon.Options{Dir: dir, NoSpares: true})
	finish(t, d, withNote(t, d, id, site).ID, throwAway)
}
