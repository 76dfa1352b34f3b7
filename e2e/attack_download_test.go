package e2e

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"github.com/stasisd/stasis/e2e/daemon"
)

// byResumedDownload imports a profile with an interrupted download whose partial file is
// the wanted file. An uploaded extension resumes the download. Chrome would then move
// that file to the session's downloads.
func byResumedDownload(x *fileAttacker) {
	file := x.wanted[0]
	for _, path := range []string{file.path, filepath.Dir(file.path)} {
		if err := os.Chown(path, unprivileged, unprivileged); err != nil {
			x.t.Fatal(err)
		}
	}
	dir := profileOf(x.t, func(w *wire, page string) {
		w.keepRaw()
		w.open(page, x.site.URL+"/")
		w.call("", "Browser.setDownloadBehavior", obj{"behavior": "default", "eventsEnabled": true}, nil)
		w.eval(page, `document.body.append(Object.assign(document.createElement("a"), {href: "/file.bin"})); document.querySelector("a").click(); 1`)
		daemon.Eventually(x.t, grace, "Chrome reports the download as completed", func() bool { return w.rawContains(`"state":"completed"`) })
	})
	db, err := sql.Open("sqlite", filepath.Join(dir, "Default", "History"))
	if err != nil {
		x.t.Fatal(err)
	}
	changed, err := db.ExecContext(x.t.Context(), `UPDATE downloads SET current_path = ?, target_path = ?, state = 4, interrupt_reason = 20,
		received_bytes = ?, total_bytes = ?, hash = x''`, file.path, filepath.Join(dir, "x.bin"), len(file.text), len(file.text)+1)
	if err = errors.Join(err, db.Close()); err != nil {
		x.t.Fatal(err)
	}
	if n, err := changed.RowsAffected(); err != nil || n != 1 {
		x.t.Fatalf("%d downloads, %v", n, err)
	}
	id, entry := x.uploaded()
	page := x.enterWith(dir, []string{id}, obj{"extensions": obj{"ui": obj{"developer_mode": true}, "settings": obj{id: entry}}})
	x.w.call(page, "Page.navigate", obj{"url": "chrome-extension://" + id + "/page.html"}, nil)
	// Chrome reads its list of downloads some time after its start.
	got := x.w.eval(page, `(async () => { let d; while (!d) [d] = await chrome.downloads.search({}); return d.filename + " " + await chrome.downloads.resume(d.id).then(() => "resumed", String) })()`)
	if want := "/nonexistent/x.bin Error: DownloadItem.canResume must be true"; got != want {
		x.t.Errorf("the extension got %s, want %s", got, want)
	}
	if _, err := os.Stat(file.path); err != nil {
		x.t.Error(err)
	}
}
