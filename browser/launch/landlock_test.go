package launch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a navigation to a file shows that Chrome cannot open, and one to a folder:
// the error, or the number of entries of the listing.
const (
	deniedFile   = "net::ERR_ACCESS_DENIED"
	deniedFolder = "0 entries"
)

// beReader is a daemon with two sessions. Chromes of the first one, one of each
// engine, are told over their pipes, with nothing between, to open files. It
// returns what became of each, by engine and file.
func beReader(root string) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*deadline)
	defer cancel()
	l, err := New(Config{Root: root, UIDs: testUIDs})
	if err != nil {
		return o, err
	}
	other, err := l.NewDir("other")
	if err != nil {
		return o, err
	}
	// Let everybody in, so that the system's own permissions refuse nothing.
	for _, folder := range []string{root, other.Path, other.Files()} {
		if err := os.Chmod(folder, 0o755); err != nil {
			return o, err
		}
	}
	files := map[string]string{
		"a world-readable file":    root + ".txt",
		"the data directory":       filepath.Join(root, "identity"),
		"another session's file":   filepath.Join(other.Files(), "upload.txt"),
		"another session's folder": other.Files() + "/",
		"the daemon's environment": fmt.Sprintf("/proc/%d/environ", os.Getpid()),
		"the machine's users":      "/etc/passwd",
		"the root folder":          "/",
		"the machine's hosts":      "/etc/hosts",
	}
	for _, path := range files {
		if strings.HasPrefix(path, root) && !strings.HasSuffix(path, "/") {
			if err := os.WriteFile(path, []byte("secret"), 0o644); err != nil {
				return o, err
			}
		}
	}
	o.Opened = map[string]string{}
	for _, shell := range []bool{false, true} {
		name := "chrome"
		if shell {
			name = "shell"
		}
		dir, err := l.NewDir(name)
		if err != nil {
			return o, err
		}
		files["an own file"], files["the own folder"] = filepath.Join(dir.Files(), "own.txt"), dir.Files()+"/"
		if err := errors.Join(os.WriteFile(files["an own file"], []byte("own"), 0o644), dir.Own()); err != nil {
			return o, err
		}
		p, err := l.Start(ctx, Options{Dir: dir, Shell: shell, URL: "about:blank"})
		if err != nil {
			return o, err
		}
		opened, err := p.open(ctx, files)
		for what, found := range opened {
			o.Opened[name+": "+what] = found
		}
		if err := errors.Join(err, p.Kill(ctx), p.Pipe().Close()); err != nil {
			return o, err
		}
	}
	return o, nil
}

// open navigates a tab of its own to each of the files and returns what it shows.
func (p *Process) open(ctx context.Context, files map[string]string) (map[string]string, error) {
	defer context.AfterFunc(ctx, p.cutLifeline)() // a Chrome that does not answer is ended
	in, session := bufio.NewReader(p.pipe), ""
	call := func(method string, params map[string]any, result any) error {
		command := map[string]any{"id": 1, "method": method, "params": params}
		if session != "" {
			command["sessionId"] = session
		}
		message, err := json.Marshal(command)
		if err != nil {
			return err
		}
		if _, err := p.pipe.Write(append(message, 0)); err != nil {
			return err
		}
		for {
			message, err := in.ReadBytes(0)
			if err != nil {
				return err
			}
			var answer struct {
				ID     int
				Result json.RawMessage
				Error  any
			}
			if err := json.Unmarshal(message[:len(message)-1], &answer); err != nil {
				return err
			}
			switch {
			case answer.ID == 0: // an event
			case answer.Error != nil:
				return fmt.Errorf("%s: %v", method, answer.Error)
			default:
				return json.Unmarshal(answer.Result, result)
			}
		}
	}
	var target struct{ TargetID string }
	if err := call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct{ SessionID string }
	if err := call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	session = attached.SessionID
	found := map[string]string{}
	for what, path := range files {
		var navigated struct{ ErrorText string }
		if err := call("Page.navigate", map[string]any{"url": "file://" + path}, &navigated); err != nil {
			return found, err
		}
		if found[what] = navigated.ErrorText; !strings.HasSuffix(path, "/") {
			continue
		}
		// The listing grows while the page loads.
		var counted struct{ Result struct{ Value string } }
		err := call("Runtime.evaluate", map[string]any{"awaitPromise": true, "expression": `new Promise(whole => {
			const count = () => whole((document.documentElement.outerHTML.match(/addRow\("/g) ?? []).length + " entries");
			document.readyState == "complete" ? count() : addEventListener("load", count);
		})`}, &counted)
		if err != nil {
			return found, err
		}
		found[what] += counted.Result.Value
	}
	return found, nil
}

// No Chrome opens a file outside of what it needs, be it world-readable or its own
// user's, run by root or by an ordinary user.
func TestLandlock(t *testing.T) {
	const uid = 310901
	want := map[string]string{}
	for _, engine := range []string{"chrome: ", "shell: "} {
		for _, what := range []string{"a world-readable file", "the data directory", "another session's file", "the daemon's environment", "the machine's users"} {
			want[engine+what] = deniedFile
		}
		want[engine+"another session's folder"], want[engine+"the root folder"] = deniedFolder, deniedFolder
		want[engine+"an own file"], want[engine+"the machine's hosts"], want[engine+"the own folder"] = "", "", "1 entries"
	}
	for name, attr := range map[string]*syscall.SysProcAttr{
		"root":          nil,
		"ordinary user": {Credential: &syscall.Credential{Uid: uid, Gid: uid}},
	} {
		t.Run(name, func(t *testing.T) {
			above := shortTemp(t)
			if err := os.Chmod(above, 0o755); err != nil {
				t.Fatal(err)
			}
			if attr != nil {
				if err := os.Chown(above, uid, uid); err != nil {
					t.Fatal(err)
				}
			}
			_, o := startHelper(t, "reader", above+"/run", attr)
			if o.Code != "" {
				t.Fatal(o.Detail)
			}
			if diff := cmp.Diff(want, o.Opened); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
