package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// honest is a session beside a hostile one.
type honest struct {
	w    *wire
	page string
}

func newHonest(t *testing.T, d *daemon.Daemon) *honest {
	t.Helper()
	w := dial(t, begin(t, d, obj{"user_id": "honest", "engine": "chrome"}).CDP)
	page, _ := w.page()
	return &honest{w, page}
}

// goesOn fails the test unless the session answers and its page gets frames.
func (h *honest) goesOn() {
	h.w.t.Helper()
	h.w.call("", "Browser.getVersion", nil, nil)
	if got := h.w.eval(h.page, fourFrames); got != "4" {
		h.w.t.Fatalf("the page of the honest session: %s", got)
	}
}

// fourFrames waits for four animation frames. A page that always asks for the next one takes
// processor time from the test.
const fourFrames = `new Promise(done => { let n = 0; (function next() { ++n < 5 ? requestAnimationFrame(next) : done(n - 1) })() })`

// reachedLimits returns the limits that a session's events name, with their values.
func reachedLimits(t *testing.T, d *daemon.Daemon, id string) (all []string) {
	t.Helper()
	for _, run := range historyOf(t, d, id) {
		for _, e := range run.events {
			if e.Type == "limit_reached" {
				all = append(all, fmt.Sprintf("%v %.0f", e.Data["limit"], e.Data["value"]))
			}
		}
	}
	return slices.Compact(all)
}

// bomb is a page that takes more than it may.
type bomb struct {
	name   string
	limits obj
	want   string // the event
	reason profiles.ReasonCode
	dies   bool   // the session ends; otherwise it may, for this reason
	script string // in a page of the site
	first  bool   // the kernel kills Chrome's main process first
	long   bool   // only in the long form
}

const takeMemory = `const all = []; for (;;) { const part = new Uint8Array(8 << 20); part.fill(1 + all.length % 200); all.push(part) }`

var bombs = []bomb{
	{name: "memory of a page", limits: obj{"memory_bytes": 768 << 20}, want: "memory 805306368", reason: profiles.ReasonMemoryLimit,
		script: `setTimeout(() => { ` + takeMemory + ` })`},
	{name: "memory of a worker", limits: obj{"memory_bytes": 768 << 20}, want: "memory 805306368", reason: profiles.ReasonMemoryLimit, long: true,
		script: `globalThis.kept = new Worker(URL.createObjectURL(new Blob(["` + takeMemory + `"])))`},
	{name: "memory of the browser process", limits: obj{"memory_bytes": 768 << 20}, want: "memory 805306368", reason: profiles.ReasonMemoryLimit, dies: true,
		first: true, script: `setTimeout(() => { ` + takeMemory + ` })`},
	{name: "workers", limits: obj{"processes": 400}, want: "processes 400", reason: profiles.ReasonTaskLimit,
		script: `globalThis.kept = []; (async () => { for (;;) { kept.push(new Worker(URL.createObjectURL(new Blob(["setInterval(() => {}, 1000)"]))));
			await new Promise(next => setTimeout(next, 1)) } })()`},
	{name: "files", limits: obj{"disk_bytes": 256 << 20}, want: "disk 268435456", reason: profiles.ReasonDiskLimit, dies: true,
		script: `(async () => { const part = new Uint8Array(16 << 20).fill(7), root = await navigator.storage.getDirectory();
			for (let n = 0;; n++) { const file = await (await root.getFileHandle("f" + n, {create: true})).createWritable(); await file.write(part); await file.close() } })()`},
	{name: "empty files", limits: obj{"disk_bytes": 64 << 20}, want: "disk 67108864", reason: profiles.ReasonDiskLimit, dies: true, long: true,
		script: `(async () => { const root = await navigator.storage.getDirectory(); for (let n = 0;; n += 50)
			await Promise.all(Array.from({length: 50}, (_, i) => root.getFileHandle("e" + (n + i), {create: true}))) })()`},
	{name: "IndexedDB", limits: obj{"disk_bytes": 256 << 20}, want: "disk 268435456", reason: profiles.ReasonDiskLimit, dies: true, long: true,
		script: `{ const open = indexedDB.open("filler"); open.onupgradeneeded = () => open.result.createObjectStore("s", {autoIncrement: true});
			open.onsuccess = () => { (function more() { const part = new Uint8Array(8 << 20); for (let i = 0; i < part.length; i += 65536) crypto.getRandomValues(part.subarray(i, i + 65536));
				const t = open.result.transaction("s", "readwrite"); t.objectStore("s").put(part); t.oncomplete = more })() } }`},
	{name: "caches", limits: obj{"disk_bytes": 256 << 20}, want: "disk 268435456", reason: profiles.ReasonDiskLimit, dies: true, long: true,
		script: `(async () => { const part = new Uint8Array(16 << 20).fill(7), cache = await caches.open("c"); for (let n = 0;; n++) await cache.put("/f" + n, new Response(part)) })()`},
}

// TestAttackBombs has pages that take all memory, processes, and disk. Each reaches the limit of its
// session, which the run's events name. If its Chrome dies of it, the session's reason and the
// webhook name the limit. A session beside it works throughout. The long form has more ways.
func TestAttackBombs(t *testing.T) {
	t.Parallel()
	needGroups(t)
	hooks := newReceiver(t)
	d := daemon.Start(t, daemon.Options{Args: []string{"--session-limits", "required", "--webhook-url", hooks.URL, "--webhook-allow-private"}})
	hooks.trust(t, d.Dir)
	site := newVictimAt(t, "127.0.0.1")
	beside := newHonest(t, d)
	for _, b := range bombs {
		if b.long && !storetest.Long() {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			s := begin(t, d, obj{"user_id": "hostile", "engine": "chrome", "limits": b.limits})
			w := dial(t, s.CDP)
			page, _ := w.page()
			w.open(page, site.url("localhost", "page"))
			if b.first {
				killFirst(t, d, "805306368")
			}
			w.post(page, "Runtime.evaluate", obj{"expression": b.script})
			daemon.Eventually(t, grace, "the limit is reached", func() bool {
				beside.goesOn()
				return slices.Contains(reachedLimits(t, d, s.ID), b.want)
			})
			if b.dies {
				daemon.Eventually(t, grace, "the session ends", func() bool { return ended(look(t, d, s.ID).Status) })
			}
			if now := look(t, d, s.ID); ended(now.Status) {
				t.Logf("the session ended: %s", now.Reason)
				daemon.Eventually(t, grace, "the webhook names the limit", func() bool {
					return slices.ContainsFunc(hooks.of("session.status_changed", s.ID), func(h receivedWebhook) bool {
						return h.Session.Status == "error" && h.Session.Why == b.reason
					})
				})
				if now.Status != "error" || now.Why != b.reason {
					t.Errorf("status %s, reason %s: %s", now.Status, now.Why, now.Reason)
				}
			} else {
				finish(t, d, s.ID, throwAway)
			}
			beside.goesOn()
		})
	}
	beside.w.close()
	d.Must(t, http.StatusOK, http.MethodDelete, "/v1/sessions?all=true", nil)
}

// killFirst makes the kernel choose the main process of the Chrome with this limit of memory if
// memory is short.
func killFirst(t *testing.T, d *daemon.Daemon, limit string) {
	t.Helper()
	for _, pid := range mains(d) {
		for _, folder := range groupsOf(t, []int{pid}) {
			if raw, err := os.ReadFile(filepath.Join(folder, "memory.limit_in_bytes")); err == nil && strings.TrimSpace(string(raw)) == limit {
				if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
	}
	t.Fatal("no Chrome has the limit")
}

// TestAttackTabBomb opens tabs until no process can be started any more. Stasis has no limit of tabs;
// that of processes holds.
func TestAttackTabBomb(t *testing.T) {
	t.Parallel()
	needGroups(t)
	d := daemon.Start(t, daemon.Options{Args: []string{"--session-limits", "required", "--session-processes", "400"}})
	site := newVictimAt(t, "127.0.0.1")
	beside := newHonest(t, d)
	s := begin(t, d, obj{"user_id": "hostile"})
	w := dial(t, s.CDP)
	groups := groupsOf(t, mains(d))
	most := 0
	for n := 0; n < 300 && len(reachedLimits(t, d, s.ID)) == 0; n++ {
		for range 10 { // a site of its own for each tab, so that each has a process
			w.post("", "Target.createTarget", obj{"url": site.url(fmt.Sprintf("site%d.localhost", n), "page")})
			n++
		}
		beside.goesOn()
		most = max(most, mostTasks(groups))
	}
	daemon.Eventually(t, grace, "the limit is reached", func() bool {
		most = max(most, mostTasks(groups))
		return most > 400 || slices.Contains(reachedLimits(t, d, s.ID), "processes 400")
	})
	beside.goesOn()
	if most == 0 || most > 400 {
		t.Errorf("a Chrome had %d processes and threads at once", most)
	}
	if now := look(t, d, s.ID); ended(now.Status) && now.Why != profiles.ReasonTaskLimit {
		t.Errorf("status %s, reason %s: %s", now.Status, now.Why, now.Reason)
	}
}

// mostTasks returns how many processes and threads the largest of these control groups has now.
// Only the kernel's own number is exact: processes end and start while a test counts them.
func mostTasks(folders []string) (most int) {
	for _, folder := range folders {
		raw, err := os.ReadFile(filepath.Join(folder, "pids.current"))
		if err != nil {
			continue // the group is another controller's, or its Chrome has ended
		}
		n, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
		most = max(most, n)
	}
	return most
}

// needGroups skips the test if this machine has no control groups of version 1, or for an
// ordinary user.
func needGroups(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/sys/fs/cgroup/pids"); err != nil || os.Geteuid() != 0 {
		t.Skip("this machine has no control groups of version 1 for this user")
	}
}

// groupsOf returns the folders of the control groups of processes.
func groupsOf(t *testing.T, all []int) (folders []string) {
	t.Helper()
	for _, pid := range all {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if mount := filepath.Join("/sys/fs/cgroup", parts[1]); slices.Contains([]string{"memory", "pids", "cpu"}, parts[1]) {
				folders = append(folders, filepath.Join(mount, parts[2]))
			}
		}
	}
	return folders
}

// TestControlGroups looks at the control groups of Chromes: each has one while it lives, also
// parked and as a spare, and none outlives its Chrome, its daemon's death included.
func TestControlGroups(t *testing.T) {
	t.Parallel()
	needGroups(t)
	d := daemon.Start(t, daemon.Options{Args: []string{"--session-limits", "required"}})
	if body := string(d.Must(t, http.StatusOK, http.MethodGet, "/readyz", nil).Body); !strings.Contains(body, `"limits":{"enforced":true}`) {
		t.Errorf("/readyz: %s", body)
	}
	s := begin(t, d, obj{"user_id": "ada", "limits": obj{"memory_bytes": 1 << 30, "processes": 1000}})
	ofSession := groupsOf(t, mains(d))
	limits := map[string]int{}
	for _, folder := range ofSession {
		for _, file := range []string{"memory.limit_in_bytes", "pids.max"} {
			if raw, err := os.ReadFile(filepath.Join(folder, file)); err == nil {
				limits[strings.TrimSpace(string(raw))]++
			}
		}
		if !strings.HasPrefix(filepath.Base(folder), "stasis-") {
			t.Errorf("a Chrome is in %s", folder)
		}
	}
	if limits["1073741824"] != 1 || limits["1000"] != 1 {
		t.Errorf("limits %v", limits)
	}
	finish(t, d, s.ID, "save_snapshot_mode=memory&save_as_default=true")
	back := begin(t, d, obj{"restore_default_environment_from_user_id": "ada"})
	if back.Restored == nil || back.Restored.Path != "parked" {
		t.Errorf("restored as %+v", back.Restored)
	}
	all := groupsOf(t, mains(d))
	if len(all) < 3 {
		t.Fatalf("groups %v", all)
	}
	finish(t, d, back.ID, throwAway)
	begin(t, d, obj{"user_id": "ada"})
	all = append(all, groupsOf(t, mains(d))...)
	d.Kill(t)
	nothingRuns(t, d, grace)
	d.Restart(t)
	d.Rescued(t)
	left := func() (found []string) {
		now := groupsOf(t, mains(d))
		for _, folder := range all {
			if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) && !slices.Contains(now, folder) {
				found = append(found, folder)
			}
		}
		return found
	}
	daemon.Eventually(t, grace, "the groups of the dead daemon are removed", func() bool { return len(left()) == 0 })
	all = append(all, groupsOf(t, mains(d))...)
	d.Stop(t)
	for _, folder := range all {
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a group outlived its daemon: %s", folder)
		}
	}
}

// A daemon without control groups says so, does not start if they are required, and starts no
// session that needs them. Open files and the disk are limited all the same.
func TestNoControlGroups(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--session-limits", "off", "--session-files", "2000"}})
	if body := string(d.Must(t, http.StatusOK, http.MethodGet, "/readyz", nil).Body); !strings.Contains(body, `"limits":{"enforced":false}`) {
		t.Errorf("/readyz: %s", body)
	}
	for field, limits := range map[string]obj{"memory_bytes": {"memory_bytes": 1 << 30}, "processes": {"processes": 999}, "cpus": {"cpus": 1.5}} {
		a := d.Call(t, http.MethodPost, "/v1/sessions", obj{"limits": limits})
		wants(t, a, http.StatusUnprocessableEntity, "unsupported")
		if !strings.Contains(string(a.Body), "limits."+field) {
			t.Errorf("%s", a.Body)
		}
	}
	s := begin(t, d, obj{"limits": obj{"disk_bytes": 300 << 20}, "engine": "shell"})
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", mains(d)[0]))
	if err != nil || !strings.Contains(string(raw), "Max open files            2000                 2000 ") {
		t.Errorf("%s, %v", raw, err)
	}
	finish(t, d, s.ID, throwAway)
}

// A create cannot ask for more than its user has, nor a user's settings for more than the
// daemon. Only admins change a user's.
func TestLimitsOfUsers(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--session-memory", "2147483648", "--session-disk", "none"}})
	alice := newKey(t, d, "alice")
	wants(t, d.CallAs(t, alice, http.MethodPatch, "/v1/users/alice", obj{"limits": obj{"memory_bytes": 1 << 30}}), http.StatusForbidden, "forbidden")
	wants(t, d.Call(t, http.MethodPatch, "/v1/users/alice", obj{"limits": obj{"memory_bytes": 3 << 30}}), http.StatusUnprocessableEntity, "invalid_field")
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/alice", obj{"limits": obj{"disk_bytes": 1 << 30}})
	for field, limits := range map[string]obj{
		"limits.memory_bytes": {"memory_bytes": 3 << 30}, "limits.disk_bytes": {"disk_bytes": 2 << 30},
		"limits.processes": {"processes": 255}, "limits.cpus": {"cpus": 0.01},
	} {
		a := d.CallAs(t, alice, http.MethodPost, "/v1/sessions", obj{"limits": limits})
		wants(t, a, http.StatusUnprocessableEntity, "invalid_field")
		if !strings.Contains(string(a.Body), field) {
			t.Errorf("%s is not named: %s", field, a.Body)
		}
	}
	wants(t, d.CallAs(t, alice, http.MethodPost, "/v1/sessions", obj{"limits": obj{"memory": 1}}), http.StatusUnprocessableEntity, "unknown_field")
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/alice", obj{"limits": nil})
	a := d.CallAs(t, alice, http.MethodPost, "/v1/sessions", obj{"limits": obj{"disk_bytes": 2 << 30}, "engine": "shell"})
	wants(t, a, http.StatusCreated, "")
}
