package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/state"
)

const (
	largeItems = 30        // of 10 MB each
	memory     = 256 << 20 // bytes at most, as docs/restore.md says; here with the race detector's share
)

// keepLarge stores 300 MB in a site's caches. The data compresses well, so that the test
// is not slow.
const keepLarge = `(async () => {
	const megabyte = new Uint8Array(1 << 20);
	for (let at = 0; at < megabyte.length; at += 65536) crypto.getRandomValues(megabyte.subarray(at, at + 65536));
	const body = new Blob(Array(10).fill(megabyte));
	const cache = await caches.open("large");
	for (let i = 0; i < 30; i++) await cache.put("/large/" + i, new Response(body));
	return "kept";
})()`

// readLarge adds up the size of the caches.
const readLarge = `(async () => {
	let bytes = 0;
	const cache = await caches.open("large");
	for (const request of await cache.keys()) bytes += (await (await cache.match(request)).blob()).size;
	return String(bytes);
})()`

// TestLargeProfile: an environment of 300 MB is saved and restored whole, the report
// counts it, and the daemon's memory does not grow with it.
func TestLargeProfile(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	site := apps.StartProbe(t)
	s := create(t, d, body{"user_id": "ada"})
	drive(t, puppeteer, s.CDP, visit(site.URL+"/set?v=one"), evaluate(keepLarge))
	snap := save(t, d, s.ID, "filesystem")
	r := create(t, d, body{"restore_from_environment_id": snap.ID})
	report := verified(t, d, r.ID)
	if report.Verification != "ok" {
		t.Errorf("%s: %v", report.Verification, report.Warnings)
	}
	for _, c := range report.Components {
		if c.Name == state.ComponentCacheStorage && c.Origin == site.URL+"/" && (c.Saved < largeItems || c.Restored != c.Saved) {
			t.Errorf("%+v", c)
		}
	}
	got := drive(t, puppeteer, r.CDP, visit(site.URL+"/me"), evaluate(readLarge))
	if bytes := text(t, got[1]); bytes != strconv.Itoa(largeItems*10<<20) {
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
