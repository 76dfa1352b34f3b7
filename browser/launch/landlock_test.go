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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
)

// The results of a navigation to a file that Chrome cannot open, and to a folder: the
// error, or the number of entries in the listing.
const (
	deniedFile   = "net::ERR_ACCESS_DENIED"
	deniedFolder = "0 entries"
)

// listingDeadline bounds the wait for the page of a folder, deniedDeadline for that of one that
// Chrome cannot read.
const (
	listingDeadline = 30 * time.Second
	deniedDeadline  = 5 * time.Second
)

// fileReader is a daemon with two sessions. The first has one Chrome of each engine, which
// get commands over their pipes, without the CDP policy, to open files. It returns the
// result for each engine and file.
func fileReader(root string) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*deadline)
	defer cancel()
	l, err := New(Config{Root: root, UIDs: testUIDs})
	if err != nil {
		return o, err
	}
	other, err := l.NewDir("other")
	if err != nil {
		return o, err
	}
	// Open the permissions, so that only Landlock refuses.
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
		if err := errors.Join(os.WriteFile(files["an own file"], []byte("own"), 0o644), dir.Chown()); err != nil {
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

// open navigates a separate tab to each of the files and returns what the tab shows.
func (p *Process) open(ctx context.Context, files map[string]string) (map[string]string, error) {
	defer context.AfterFunc(ctx, p.cutLifeline)() // end a Chrome that does not answer
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
		return nil, fmt.Errorf("open a tab: %w", err)
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
			return found, fmt.Errorf("open %s: %w", what, err)
		}
		if found[what] = navigated.ErrorText; !strings.HasSuffix(path, "/") {
			continue
		}
		// The listing grows while the page loads. Chrome 156 sometimes never ends the load of a
		// folder that it cannot read: such a page stays empty and "loading".
		var listing struct{ Result struct{ Value string } }
		most := deniedDeadline
		if what == "the own folder" {
			most = listingDeadline
		}
		for loading := time.Now(); time.Since(loading) < most; {
			err := call("Runtime.evaluate", map[string]any{
				"expression": `document.readyState + " " + (document.documentElement.outerHTML.match(/addRow\("/g) ?? []).length + " entries"`}, &listing)
			if err != nil {
				return found, fmt.Errorf("list %s: %w", what, err)
			}
			if strings.HasPrefix(listing.Result.Value, "complete ") {
				break
			}
		}
		_, entries, _ := strings.Cut(listing.Result.Value, " ")
		found[what] += entries
	}
	return found, nil
}

// No Chrome opens a file that it does not need, even if the file is world-readable or
// belongs to its user. This holds for a daemon of root and of an ordinary user.
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

// If the grants include something that must be refused, Chrome is not started. Here its
// binary's folder contains the run directories.
func TestLandlockTooWide(t *testing.T) {
	above := shortTemp(t)
	binary := filepath.Join(above, "chrome")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho Chromium 156.0.1.2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := New(Config{Binary: binary, Root: above + "/run", UIDs: testUIDs})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Preflight(within(t))
	if !fault.Is(err, fault.SandboxFailed) || !strings.Contains(fault.MessageOf(err), "nothing but Chrome") {
		t.Errorf("preflight: %v", err)
	}
	if left, err := os.ReadDir(l.Root()); err != nil || len(left) != 0 {
		t.Errorf("remaining: %v, %v", left, err)
	}
}

// A denied path that can be opened or does not exist is not refused by Landlock, so the
// warden starts no Chrome.
func TestLandlockCanary(t *testing.T) {
	l := newLauncher(t, "")
	dir := newDir(t, l, "c")
	for _, path := range []string{filepath.Join(dir.Files()), "/etc/hosts", filepath.Join(dir.Files(), "missing")} {
		p, err := l.Start(within(t), Options{Dir: dir, denied: []string{path}})
		if p != nil || !fault.Is(err, fault.SandboxFailed) {
			t.Errorf("%s: %v, %v", path, p, err)
		}
	}
}

// A missing or too old Landlock is reported with what to do.
func TestCheckLandlock(t *testing.T) {
	for abi, want := range map[int]string{0: "has no Landlock", 1: "too old (ABI 1", 2: "", 7: ""} {
		err := checkLandlock(abi)
		if want == "" && err == nil {
			continue
		}
		if message := fault.MessageOf(err); !fault.Is(err, fault.SandboxFailed) || !strings.Contains(message, want) || !strings.Contains(message, "--no-landlock") {
			t.Errorf("ABI %d: %v", abi, err)
		}
	}
}

// The folder of a linked resolv.conf is granted only if it is below /run.
func TestResolverFolder(t *testing.T) {
	folder := shortTemp(t)
	if err := errors.Join(os.WriteFile(folder+"/plain", nil, 0o644), os.Symlink(folder+"/plain", folder+"/link")); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{folder + "/plain", folder + "/link", folder + "/missing"} {
		if got := resolverFolder(link); len(got) != 0 {
			t.Errorf("%s: %q", link, got)
		}
	}
	managed, err := os.MkdirTemp("/run", "resolver-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(managed); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(os.WriteFile(managed+"/stub", nil, 0o644), os.Symlink(managed+"/stub", folder+"/managed")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{managed}, resolverFolder(folder+"/managed")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
