package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
)

// TestAttackImportChild looks at the process that reads an upload and kills it, with a daemon
// of root and one of an ordinary user. It then imports files that are made to exhaust or break
// their readers. Each is refused as the caller's error, and nothing is left of it.
func TestAttackImportChild(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root", "ordinary"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			o := daemon.Options{NoSpares: true, Unraced: true, Args: []string{"--max-unpack", strconv.Itoa(maxUnpack)}}
			if user == "ordinary" {
				o = byOrdinaryUser(t, o)
			}
			if o.Dir == "" {
				o.Dir = daemon.DataDir(t)
			}
			d := daemon.Start(t, o)
			x := importAttacker{t, d, o.Dir}
			t.Run("its rights", x.rights)
			before := x.stored()
			t.Run("killed", x.killed)
			for name, body := range x.hostileFiles() {
				t.Run(name, func(t *testing.T) {
					a := x.send(t, body)
					if a.Status != http.StatusUnprocessableEntity || a.Code() != "invalid_import" {
						t.Errorf("%d %.500s", a.Status, a.Body)
					}
				})
			}
			if after := x.stored(); after != before {
				t.Errorf("something is left:\n%s\nbefore:\n%s", after, before)
			}
			// The daemon lives on, and reads the next upload.
			imports(t, d, "datadir", zipFiles(t, map[string][]byte{"Default/Preferences": []byte("{}")}))
			t.Run("its daemon is killed", x.deserted)
		})
	}
}

// maxUnpack is the largest environment of these daemons, in bytes.
const maxUnpack = 512 << 20

type importAttacker struct {
	t   *testing.T
	d   *daemon.Daemon
	dir string
}

func (x importAttacker) send(t *testing.T, body []byte) daemon.Answer {
	t.Helper()
	return x.d.Send(t, daemon.Key, http.MethodPost, "/v1/snapshots?format=datadir", bytes.NewReader(body), http.Header{"Content-Type": {"application/octet-stream"}})
}

// stored lists what the daemon keeps: snapshots of its catalogue, archives, run directories.
func (x importAttacker) stored() string {
	var all bytes.Buffer
	all.Write(x.d.Must(x.t, http.StatusOK, http.MethodGet, "/v1/sessions?limit=100", nil).Body)
	for _, part := range []string{"snapshots", "run"} {
		err := filepath.WalkDir(filepath.Join(x.dir, part), func(path string, _ os.DirEntry, err error) error {
			fmt.Fprintln(&all, path)
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			x.t.Fatal(err)
		}
	}
	return all.String()
}

// stopped imports a file and stops the process that reads it. It returns that process and
// what waits for the answer.
func (x importAttacker) stopped(t *testing.T) (pid int, answer func() daemon.Answer) {
	t.Helper()
	got := make(chan daemon.Answer, 1)
	body := slowProfile(t)
	go func() { got <- x.send(t, body) }()
	return x.stop(t), func() daemon.Answer { return <-got }
}

// stop stops the process that reads an upload, once it has given up its rights. It looks often,
// because that process lives for less than a second.
func (x importAttacker) stop(t *testing.T) (pid int) {
	t.Helper()
	for deadline := time.After(grace); ; {
		pid = x.child()
		if slices.Equal(procStatus(pid, "Seccomp"), []string{"2"}) && syscall.Kill(pid, syscall.SIGSTOP) == nil {
			return pid
		}
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal("timed out: a process reads the upload")
		}
	}
}

// child returns the process that reads an upload of the daemon; 0 if there is none.
func (x importAttacker) child() int {
	for _, entry := range childrenOf(x.d.PID()) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", entry))
		if err == nil && strings.Contains(string(line), "\x00confined\x00") {
			return entry
		}
	}
	return 0
}

// childrenOf returns the children of a process.
func childrenOf(pid int) (children []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		raw, _ := os.ReadFile(task) // the thread may have ended
		for _, field := range strings.Fields(string(raw)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// procStatus returns the values of a line in a process's status.
func procStatus(pid int, name string) []string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

// rights looks at the process while it reads.
func (x importAttacker) rights(t *testing.T) {
	pid, answer := x.stopped(t)
	defer func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
		if a := answer(); a.Status != http.StatusCreated {
			t.Errorf("%d %.500s", a.Status, a.Body)
		}
	}()
	for name, want := range map[string]string{"CapInh": none, "CapPrm": none, "CapEff": none, "CapAmb": none, "NoNewPrivs": "1", "Seccomp": "2"} {
		if got := procStatus(pid, name); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	uids, daemons := procStatus(pid, "Uid"), procStatus(x.d.PID(), "Uid")
	if slices.Contains(uids, "0") || daemons[0] == "0" && uids[0] == daemons[0] {
		t.Errorf("it has the users %s, the daemon %s", uids, daemons)
	}
	if groups := procStatus(pid, "Groups"); len(groups) > 0 {
		t.Errorf("it has the groups %s", groups)
	}
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", x.d.PID())); err != nil || own == theirs {
		t.Errorf("its network is the daemon's: %s %v", own, err)
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		t.Fatal(err)
	}
	limits := []string{"Max cpu time 600 600", "Max core file size 0 0", "Max open files 256 256", "Max data size 1073741824 1073741824",
		fmt.Sprintf("Max file size %d %[1]d", maxUnpack)}
	spaced := strings.Join(strings.Fields(string(raw)), " ")
	for _, want := range limits {
		if !strings.Contains(spaced, want) {
			t.Errorf("no %q in\n%s", want, raw)
		}
	}
	// It holds nothing open but its pipes, the upload, and files of the run directory.
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())) // it may be closed by now
		if !strings.HasPrefix(to, "pipe:") && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, filepath.Join(x.dir, "run")+"/") && to != "" {
			t.Errorf("it has %s open", to)
		}
	}
}

// none is an empty set of capabilities.
const none = "0000000000000000"

// killed kills the process that reads.
func (x importAttacker) killed(t *testing.T) {
	pid, answer := x.stopped(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a := answer()
	if a.Status != http.StatusUnprocessableEntity || a.Code() != "invalid_import" || !bytes.Contains(a.Body, []byte("1024 MiB of memory")) {
		t.Errorf("%d %.500s", a.Status, a.Body)
	}
}

// deserted kills the daemon while an upload is read. The process that reads it ends too, even
// if it is stopped.
func (x importAttacker) deserted(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.d.URL+"/v1/snapshots?format=datadir", bytes.NewReader(slowProfile(t)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+daemon.Key)
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		if res, err := http.DefaultClient.Do(req); err == nil { // it is an error: the daemon is killed
			_ = res.Body.Close()
		}
	}()
	pid := x.stop(t)
	x.d.Kill(t)
	<-lost
	daemon.Eventually(t, grace, "the process has ended", func() bool {
		state := procStatus(pid, "State")
		return len(state) == 0 || state[0] == "Z"
	})
}

// slowProfile is a profile that takes its reader a while: many small files.
func slowProfile(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := range 20_000 {
		name := "Default/Preferences"
		if i > 0 {
			name = fmt.Sprintf("Default/IndexedDB/%d", i)
		}
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Typeflag: tar.TypeReg, Size: 2})
		if err == nil {
			_, err = io.WriteString(w, "{}")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// hostileFiles are made to exhaust or to break their readers.
func (x importAttacker) hostileFiles() map[string][]byte {
	tarWith := func(headers ...tar.Header) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		// A profile that is imported without the other entries, so that only they are refused.
		preferences := "{}"
		for _, h := range append([]tar.Header{{Name: "Default/Preferences", Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(preferences))}}, headers...) {
			if err := w.WriteHeader(&h); err != nil {
				x.t.Fatal(err)
			}
			if _, err := io.WriteString(w, preferences[:h.Size]); err != nil {
				x.t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			x.t.Fatal(err)
		}
		return out.Bytes()
	}
	return map[string][]byte{
		"a zip bomb": x.zipBomb(), "a gzip bomb": x.gzipBomb(),
		"a deep path": tarWith(tar.Header{Name: "Default/" + strings.Repeat("a/", 1000) + "b", Typeflag: tar.TypeReg}),
		"a link":      tarWith(tar.Header{Name: "Default/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}),
		"a hard link": tarWith(tar.Header{Name: "Default/x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}),
		"a device":    tarWith(tar.Header{Name: "Default/x", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}),
		"a path out":  tarWith(tar.Header{Name: "Default/../../x", Typeflag: tar.TypeReg}),
		"a cut tar":   tarWith(tar.Header{Name: "Default/x", Typeflag: tar.TypeReg})[:1300],
	}
}

// zipBomb is a zip of a gigabyte of zeros.
func (x importAttacker) zipBomb() []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for name, size := range map[string]int64{"Default/Preferences": 2, "Default/History": 1 << 30} {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.CopyN(w, zeros{}, size)
		}
		if err != nil {
			x.t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		x.t.Fatal(err)
	}
	return out.Bytes()
}

// gzipBomb is a tar.gz whose one file claims and has more than may be unpacked.
func (x importAttacker) gzipBomb() []byte {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		x.t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, h := range []tar.Header{{Name: "Default/Preferences", Typeflag: tar.TypeReg}, {Name: "Default/History", Typeflag: tar.TypeReg, Size: 1 << 30}} {
		if err := w.WriteHeader(&h); err != nil {
			x.t.Fatal(err)
		}
		if _, err := io.CopyN(w, zeros{}, h.Size); err != nil {
			x.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || z.Close() != nil {
		x.t.Fatal(err)
	}
	return out.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
