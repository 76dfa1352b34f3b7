package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/apps/probe"
	"github.com/stasisd/stasis/e2e/daemon"
)

// planted is a line in a file that no client may read.
const planted = "planted-8f1d2c"

// attackSetup is the setting of the attacks: the attacker's session and, on the same daemon,
// another user's session, with a file and a login.
type attackSetup struct {
	d      *daemon.Daemon
	site   *probe.Site
	own    liveSession
	ownDir string
	w      *wire
	page   string // CDP session of the attacker's page, which shows the site
	target string

	other    liveSession
	otherDir string
	otherW   *wire
	otherTab string // target of the other's page
	secret   string // path of the other user's file
}

// TestAttack attacks over CDP, from pages and over the API, on one daemon.
func TestAttack(t *testing.T) {
	t.Parallel()
	p := startAttack(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *attackSetup)
	}{
		{"addresses that show files", filesByAddress},
		{"scripts that read files", filesByScript},
		{"commands that read files", filesByCommand},
		{"files given to a page", filesByInput},
		{"downloads to other places", downloadsElsewhere},
		{"commands that reach Chrome", chromeItself},
		{"other people's targets", othersTargets},
		{"messages past the policy", messagesPastThePolicy},
		{"storage of another session", othersStorage},
		{"keys and tickets of another", othersByTheAPI},
		{"processes and folders of another", othersByTheSystem},
		{"links among the files", linksAmongFiles},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.w.t, p.otherW.t = t, t
			c.test(t, p)
		})
	}
	p.w.t, p.otherW.t = t, t
	// Both sessions still work.
	if got := p.w.eval(p.page, "1+1"); got != "2" {
		t.Errorf("the attacker's page gives %s, want 2", got)
	}
	finish(t, p.d, p.own.ID, throwAway)
	finish(t, p.d, p.other.ID, throwAway)
	nothingLeft(t, p.d)
}

// startAttack creates both sessions.
func startAttack(t *testing.T) *attackSetup {
	p := &attackSetup{d: daemon.Start(t, attacked(t, daemon.Options{NoSpares: true})), site: apps.StartProbe(t)}
	p.other = begin(t, p.d, obj{"user_id": "bob"})
	p.otherDir = onlyRunDir(t, p.d)
	p.own = begin(t, p.d, obj{"user_id": "alice"})
	for _, name := range runDirs(t, p.d) {
		if name != filepath.Base(p.otherDir) {
			p.ownDir = filepath.Join(p.d.Dir, "run", name)
		}
	}
	p.secret = filepath.Join(p.otherDir, "files", "secret.txt")
	uid := ownerOf(t, p.otherDir)
	if err := os.WriteFile(p.secret, []byte(planted), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(p.secret, uid, uid); err != nil {
		t.Fatal(err)
	}
	p.otherW = dial(t, p.other.CDP)
	var s string
	s, p.otherTab = p.otherW.page()
	p.otherW.open(s, p.site.URL+"/set?v="+planted)
	p.otherW.eval(s, `localStorage.setItem("mine", "`+planted+`"); document.cookie = "mine=`+planted+`"`)
	p.w = dial(t, p.own.CDP)
	p.page, p.target = p.w.page()
	p.w.open(p.page, p.site.URL+"/")
	return p
}

// ownerOf returns the ID of the user who owns a file.
func ownerOf(t testing.TB, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return statUID(info)
}
