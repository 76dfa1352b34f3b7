package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
)

// Archive keys are rotated, sealed to a second recipient, used on a node that can only
// write, and given by the environment. At each step, age and zstd open the archives as
// docs/storage.md shows.
func TestKeys(t *testing.T) {
	t.Parallel()
	escrow := filepath.Join(t.TempDir(), "escrow")
	tool(t, "age-keygen", "-o", escrow)
	public := strings.TrimSpace(tool(t, "age-keygen", "-y", escrow))
	dir := daemon.DataDir(t)
	const cookies = "127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\tc-42\n"

	shell := []string{"--engine", browser.EngineShell} // the subject is not the browser
	d := daemon.Start(t, daemon.Options{Dir: dir, NoSpares: true})
	a := imports(t, d, "netscape", []byte(cookies), "user_id", "ada", "save_as_default", "true")
	d.Stop(t)
	id := archiveIn(t, dir)
	stock(t, dir, "identity", id)

	if output := tool(t, daemon.Binary(t), "identity", "rotate", "--data-dir", dir, "--recipient", public); !strings.Contains(output, "1 archives, 2 documents") {
		t.Errorf("rotate: %s", output)
	}
	if archiveIn(t, dir) != id {
		t.Error("the archive has another name")
	}
	stock(t, dir, "identity", id)
	stock(t, dir, escrow, id)
	if out, err := exec.Command("age", "-d", "-i", filepath.Join(dir, "identity.old"), filepath.Join(dir, "snapshots/archives", id)).CombinedOutput(); err == nil || !strings.Contains(string(out), "no identity matched") {
		t.Errorf("the retired identity: %v, %.200s", err, out)
	}

	// Without the identity a node can still save. A restore fails and names the missing
	// recipient.
	identity := filepath.Join(t.TempDir(), "identity")
	if err := os.Rename(filepath.Join(dir, "identity"), identity); err != nil {
		t.Fatal(err)
	}
	d = daemon.Start(t, daemon.Options{Dir: dir, Args: append([]string{"--recipient", public}, shell...), NoSpares: true, Standby: 1})
	refused := d.Call(t, http.MethodPost, "/v1/sessions", body{"restore_default_environment_from_user_id": "ada"})
	if wants(t, refused, http.StatusInternalServerError, "identity_missing"); !strings.Contains(string(refused.Body), public) {
		t.Errorf("the refusal names no recipient: %s", refused.Body)
	}
	s := create(t, d, body{"user_id": "eve"})
	saved := save(t, d, s.ID, "filesystem", "save_as_default=true")
	if refused := d.Call(t, http.MethodGet, "/v1/snapshots/"+saved.ID+"/archive", nil); refused.Code() != "identity_missing" {
		t.Errorf("its archive: %d %s", refused.Status, refused.Body)
	}
	d.Stop(t)
	if _, err := os.Stat(filepath.Join(dir, "identity")); err == nil {
		t.Error("an identity was made")
	}

	// With the identity in the environment, where child processes cannot see it, every
	// save can be restored.
	given := textOf(t, identity) + textOf(t, escrow)
	d = daemon.Start(t, daemon.Options{Dir: dir, Args: shell, Env: []string{"STASIS_IDENTITY=" + given}, NoSpares: true})
	for user, want := range map[string]string{"ada": a.Snapshot.ID, "eve": saved.ID} {
		s := create(t, d, body{"restore_default_environment_from_user_id": user})
		if s.Restored == nil || s.Restored.SnapshotID != want {
			t.Errorf("%s: restored %+v, want %s", user, s.Restored, want)
		}
	}
	// Export into one file for the escrow key alone, and import of that file, which
	// opens it.
	sealed := filepath.Join(t.TempDir(), "sealed")
	tool(t, daemon.Binary(t), "snapshot", "export", a.Snapshot.ID, "--url", d.URL, "--key", daemon.Key, "--recipient", public, "--out", sealed)
	if listed := tool(t, "bash", "-o", "pipefail", "-c", "age -d -i '"+escrow+"' '"+sealed+"' | zstd -d | tar t"); listed != "state.json\n" {
		t.Errorf("the exported file holds %q", listed)
	}
	for user, flag := range map[string]string{"mia": "--identity=" + escrow, "leo": "--label=opened by the daemon"} {
		made := strings.TrimSpace(tool(t, daemon.Binary(t), "snapshot", "import", sealed, "--url", d.URL, "--key", daemon.Key, "--user", user, flag))
		if jar, _ := exports(t, d, made, "format=netscape"); !strings.Contains(string(jar), cookies) {
			t.Errorf("%s: %s", user, jar)
		}
	}
	children := 0
	for _, p := range d.Processes() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
		if err != nil {
			continue // the process has just ended
		}
		if children++; strings.Contains(string(environ), "AGE-SECRET-KEY") {
			t.Errorf("process %d (%s) has the identity in its environment", p.PID, p.Command)
		}
	}
	if children < 4 { // at least two wardens and two Chromes
		t.Errorf("checked only %d processes", children)
	}
	if strings.Contains(d.Log(), "AGE-SECRET-KEY") {
		t.Error("the log holds the identity")
	}
}

// stock lists an archive with the commands of docs/storage.md.
func stock(t *testing.T, dir, identity, id string) {
	t.Helper()
	shown := regexp.MustCompile(`(?m)^age -d -i identity .*$`).FindString(textOf(t, "../docs/storage.md"))
	command := strings.NewReplacer("-i identity", "-i '"+identity+"'", "/ID", "/"+id).Replace(shown)
	cmd := exec.Command("bash", "-o", "pipefail", "-c", command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains("\n"+string(out), "\nstate.json\n") {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
}

// archiveIn returns the only archive of a data directory.
func archiveIn(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(dir, "snapshots/archives"))
	if err != nil || len(list) != 1 {
		t.Fatalf("%d archives, %v", len(list), err)
	}
	return list[0].Name()
}

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
