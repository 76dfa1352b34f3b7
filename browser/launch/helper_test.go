package launch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stasisd/stasis/fault"
)

// helperArg makes the test binary a helper. The next two arguments are its task and the
// root.
const helperArg = "helper"

// outcome is the line that a helper prints.
type outcome struct {
	Code    fault.Code
	Message string
	Detail  string
	UIDs    []int
	Major   int
	Opened  map[string]string // by engine and file: the error of a navigation to the file
}

func helperMain(verb, root string) int {
	switch verb {
	case "network":
		found, err := networkHelper(root)
		return exitStatus(errors.Join(err, json.NewEncoder(os.Stdout).Encode(found)))
	case "network-missing":
		return exitStatus(networkMissing(root))
	case "network-quiet":
		return exitStatus(networkQuiet(root))
	case "network-lives":
		if err := networkLives(root); err != nil {
			return exitStatus(err)
		}
		select {} // until it is killed
	case "start-processes":
		return exitStatus(startProcesses())
	case "flush":
		return exitStatus(flush())
	case "probe":
		return exitStatus(probeHelper())
	}
	var o outcome
	var err error
	switch verb {
	case "daemon":
		o, err = daemon(root)
	case "reader":
		o, err = fileReader(root)
	case "hold-below-a-listener":
		err = holdBelowAListener(root)
	case "hold-order":
		err = holdOrder(root)
	case "open-database":
		err = openDatabase(root)
	case "preflight":
		o, err = preflight(root)
	case "preflight-without-namespaces":
		if err = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err == nil {
			o, err = preflight(root)
		}
	}
	if err != nil {
		o.Code, o.Message, o.Detail = fault.CodeOf(err), fault.MessageOf(err), err.Error()
	}
	if json.NewEncoder(os.Stdout).Encode(o) != nil {
		return 1
	}
	if verb == "daemon" {
		select {} // until it is killed
	}
	return 0
}

// exitStatus prints an error and returns the status of a helper.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// daemon starts one running and one frozen Chrome.
func daemon(root string) (o outcome, err error) {
	ctx := context.Background()
	l, err := New(Config{Root: root, UIDs: testUIDs})
	if err != nil {
		return o, err
	}
	for _, name := range []string{"running", "frozen"} {
		dir, err := l.NewDir(name)
		if err != nil {
			return o, err
		}
		p, err := l.Start(ctx, Options{Dir: dir, URL: "about:blank"})
		if err != nil {
			return o, err
		}
		if err := p.try(ctx); err != nil {
			return o, err
		}
		o.UIDs = append(o.UIDs, dir.UID)
		if name == "frozen" {
			err = p.Freeze(ctx)
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

func preflight(root string) (outcome, error) {
	l, err := New(Config{Root: root, UIDs: testUIDs})
	if err != nil {
		return outcome{}, err
	}
	v, err := l.Preflight(context.Background())
	return outcome{Major: v.Major}, err
}

// startHelper starts a helper and returns it with the line that it printed.
func startHelper(t *testing.T, verb, root string, attr *syscall.SysProcAttr) (*exec.Cmd, outcome) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", helperArg, verb, root)
	cmd.SysProcAttr, cmd.Stderr, cmd.Dir = attr, os.Stderr, "/"
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()         // the error says that it was killed
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var o outcome
	if err := json.Unmarshal(line, &o); err != nil {
		t.Fatal(err)
	}
	return cmd, o
}

// namedUnder returns the processes that have a path under root on their command line, as
// all Chromes there do.
func namedUnder(root string, uids []int) (found []int) {
	for _, p := range processes() {
		named := bytes.Contains(commandLine(p.pid), []byte(userDataDirFlag+root))
		for _, uid := range uids {
			named = named || uidOf(p.pid) == uid
		}
		if named && !p.dead() {
			found = append(found, p.pid)
		}
	}
	return found
}

// After kill -9 of the daemon no Chrome survives, not even a frozen one. The next daemon
// finds the directories that it left.
func TestDaemonKilled(t *testing.T) {
	root := shortTemp(t) + "/run"
	daemon, o := startHelper(t, "daemon", root, nil)
	if o.Code != "" {
		t.Fatal(o.Detail)
	}
	if n := len(namedUnder(root, o.UIDs)); n < 10 {
		t.Fatalf("only %d processes of two Chromes", n)
	}
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "all processes have ended", func() bool { return len(namedUnder(root, o.UIDs)) == 0 })

	l, err := New(Config{Root: root, UIDs: testUIDs})
	if err != nil {
		t.Fatal(err)
	}
	left, err := l.Sweep(within(t))
	if diff := cmp.Diff([]string{"frozen", "running"}, left); err != nil || diff != "" {
		t.Errorf("remaining: %v (-want +got):\n%s", err, diff)
	}
}

// A sweep ends processes that even the warden missed, and nothing else.
func TestSweep(t *testing.T) {
	l := newLauncher(t, "")
	p := start(t, l, Options{URL: "about:blank"})
	newClient(t, p).version()
	await(t, "a renderer", func() bool { return hasRenderer(p) })
	if err := p.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}
	elsewhere := newLauncher(t, "")
	bystander := start(t, elsewhere, Options{URL: "about:blank"})
	c := newClient(t, bystander)
	if err := os.Mkdir(l.root+"/"+scratchPrefix+"x", 0o700); err != nil {
		t.Fatal(err)
	}
	left, err := l.Sweep(within(t))
	if diff := cmp.Diff([]string{"s"}, left); err != nil || diff != "" {
		t.Fatalf("remaining: %v (-want +got):\n%s", err, diff)
	}
	if found := namedUnder(l.root, nil); len(found) != 0 {
		t.Errorf("still running: %v", found)
	}
	if _, err := os.Stat(l.root + "/" + scratchPrefix + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("scratch directory: %v", err)
	}
	c.version()
}

// A daemon that is not root runs Chrome as its own user, with the sandbox on.
func TestUnprivilegedDaemon(t *testing.T) {
	const uid = 310900
	root := shortTemp(t)
	if err := os.Chown(root, uid, uid); err != nil {
		t.Fatal(err)
	}
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if _, o := startHelper(t, "preflight", root+"/run", attr); o.Code != "" || o.Major < MinMajor {
		t.Errorf("preflight: %+v", o)
	}
	daemon, o := startHelper(t, "daemon", root+"/run", attr)
	if o.Code != "" || !cmp.Equal(o.UIDs, []int{uid, uid}) {
		t.Fatalf("daemon: %+v", o)
	}
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait() // the error says that it was killed
	await(t, "all processes have ended", func() bool { return len(namedUnder(root, o.UIDs)) == 0 })
}

// If user namespaces are not allowed, the preflight reports that and how to allow them.
func TestPreflightWithoutNamespaces(t *testing.T) {
	same := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1 << 20}}
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: same, GidMappings: same, GidMappingsEnableSetgroups: true,
	}
	_, o := startHelper(t, "preflight-without-namespaces", shortTemp(t)+"/run", attr)
	if o.Code != fault.SandboxFailed || !strings.Contains(o.Message, "sysctl -w user.max_user_namespaces=") {
		t.Errorf("%+v", o)
	}
}
