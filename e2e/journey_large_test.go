package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
	"github.com/stasisd/stasis/state"
)

// largeSize returns how many items of 10 MB the test stores, and the most memory of the
// daemon in bytes. The long form has the limit of docs/restore.md, with the race
// detector's share.
func largeSize() (items int, memory int64) {
	if storetest.Long() {
		return 30, 256 << 20
	}
	return 15, 192 << 20
}

// keepLarge stores items of 10 MB in a site's caches. The data compresses well, so that
// the test is not slow.
const keepLarge = `(async () => {
	const megabyte = new Uint8Array(1 << 20);
	for (let at = 0; at < megabyte.length; at += 65536) crypto.getRandomValues(megabyte.subarray(at, at + 65536));
	const body = new Blob(Array(10).fill(megabyte));
	const cache = await caches.open("large");
	for (let i = 0; i < %d; i++) await cache.put("/large/" + i, new Response(body));
	return "kept";
})()`

// readLarge adds up the size of the caches.
const readLarge = `(async () => {
	let bytes = 0;
	const cache = await caches.open("large");
	for (const request of await cache.keys()) bytes += (await (await cache.match(request)).blob()).size;
	return String(bytes);
})()`

// TestLargeProfile: an environment of 150 MB, in the long form of 300 MB, is saved and
// restored whole, the report counts it, and the daemon's memory does not grow with it.
func TestLargeProfile(t *testing.T) {
	t.Parallel()
	items, memory := largeSize()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	site := apps.StartProbe(t)
	s := create(t, d, body{"user_id": "ada"})
	drive(t, chromeDP, s.CDP, visit(site.URL+"/set?v=one"), evaluate(fmt.Sprintf(keepLarge, items)))
	snap := save(t, d, s.ID, "filesystem")
	r := create(t, d, body{"restore_from_environment_id": snap.ID})
	report := verified(t, d, r.ID)
	if report.Verification != "ok" {
		t.Errorf("%s: %v", report.Verification, report.Warnings)
	}
	for _, c := range report.Components {
		if c.Name == state.ComponentCacheStorage && c.Origin == site.URL+"/" && (c.Saved < items || c.Restored != c.Saved) {
			t.Errorf("%+v", c)
		}
	}
	got := drive(t, chromeDP, r.CDP, visit(site.URL+"/me"), evaluate(readLarge))
	if bytes := text(t, got[1]); bytes != strconv.Itoa(items*10<<20) {
		t.Errorf("%s bytes were restored", bytes)
	}
	if peak := peakMemory(t, d.PID()); peak > memory {
		t.Errorf("the daemon took %d MB", peak>>20)
	}
}

// peakMemory returns the peak of a process's memory, in bytes.
func peakMemory(t testing.TB, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
