package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// TestShown: what targets may show, and what still works beside it, on one daemon.
func TestShown(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	for _, c := range []struct {
		name   string
		engine string
		test   func(*thief)
	}{
		{"a drop zone takes files", "chrome", dropZone},
		{"a drop zone takes files in the shell", "shell", dropZone},
		{"a PDF is shown", "chrome", showsPDF},
		{"an extension opens a page of Chrome", "chrome", turnsForeign},
		{"a back list leads to no file", "chrome", prunedBackList},
		{"an added script keeps its scope", "chrome", addedScript},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newThief(t, d)
			x.engine = c.engine
			c.test(x)
			x.leave()
		})
	}
}

// dropZone drops a file where a page takes it, in a frame of it, and beside.
func dropZone(x *thief) {
	x.enter(obj{"engine": x.engine})
	upload(x.t, x.d, x.s.ID, "mine.txt", "hello")
	page, _ := x.newPage()
	x.w.open(page, x.site.URL+"/")
	x.w.eval(page, `document.body.innerHTML = '<div id=zone style="position:absolute;left:0;top:0;width:200px;height:200px">zone</div>' +
			'<input id=field type=file style="position:absolute;left:200px;top:200px;width:150px;height:150px">';
		field.onchange = async () => { window.chosen = field.files[0].name + " " + await field.files[0].text() };
		zone.ondragover = (e) => e.preventDefault();
		zone.ondrop = async (e) => { e.preventDefault(); window.got = e.dataTransfer.files[0].name + " " + await e.dataTransfer.files[0].text() }; 1`)
	before := len(x.w.targets())
	drop := func(at int) {
		for _, kind := range []string{"dragEnter", "dragOver", "drop"} {
			x.w.call(page, "Input.dispatchDragEvent", obj{"type": kind, "x": at, "y": at,
				"data": obj{"items": []obj{}, "files": []string{"mine.txt"}, "dragOperationsMask": 1}}, nil)
		}
	}
	drop(50)
	daemon.Eventually(x.t, grace, "the zone has the file", func() bool { return x.w.eval(page, `window.got`) == "mine.txt hello" })
	drop(250)
	daemon.Eventually(x.t, grace, "the file input has the file", func() bool { return x.w.eval(page, `window.chosen`) == "mine.txt hello" })
	drop(400)
	if got := x.w.eval(page, `new Promise((ok) => requestAnimationFrame(() => setTimeout(ok, 0, location.href)))`); got != x.site.URL+"/" {
		x.t.Errorf("after a drop beside the zone the page is at %s", got)
	}
	if after := x.w.targets(); len(after) != before {
		x.t.Errorf("a drop opened something: %+v", after)
	}
}

// showsPDF has Puppeteer open a PDF, which Chrome shows in a frame of its own.
func showsPDF(x *thief) {
	x.enter(obj{"engine": x.engine})
	got := drive(x.t, puppeteer, x.s.CDP, visit(x.site.URL+"/paper.pdf"), evaluate("document.contentType"))
	if is := text(x.t, got[len(got)-1]); is != "application/pdf" && is != "text/html" {
		x.t.Errorf("it is %q", is)
	}
	for _, info := range x.w.targets() {
		if strings.HasPrefix(info.URL, viewer[:40]) {
			x.t.Errorf("a client sees %+v", info)
		}
	}
	if x.find(x.site.URL+"/paper.pdf") == "" {
		x.t.Error("the PDF's page has gone")
	}
}

// turnsForeign has an extension send a client's page to one of Chrome's own.
func turnsForeign(x *thief) {
	id := x.install()
	own, _ := x.w.page()
	x.w.open(own, "chrome-extension://"+id+"/page.html")
	page, target := x.newPage()
	x.w.open(page, x.site.URL+"/")
	x.w.forget()
	x.eval(own, `new Promise(ok => chrome.tabs.query({}, t => chrome.tabs.update(t.find(t => t.url == "`+x.site.URL+`/").id, {url: "chrome://version"}, ok)))`)
	var gone struct{ SessionID string }
	if err := json.Unmarshal(x.w.await("", "Target.detachedFromTarget"), &gone); err != nil || gone.SessionID != page {
		x.t.Errorf("%v: detached from %q, not from %q", err, gone.SessionID, page)
	}
	daemon.Eventually(x.t, grace, "the page is blank again", func() bool {
		return slices.ContainsFunc(x.w.targets(), func(i targetInfo) bool { return i.ID == target && i.URL == "about:blank" })
	})
	again := x.w.attach(target)
	daemon.Eventually(x.t, grace, "it says that it is blank", func() bool { return x.eval(again, `location.href`) == "about:blank" })
	daemon.Eventually(x.t, grace, "the list of its back entries is empty", func() bool {
		var list struct{ Entries []struct{ URL string } }
		_ = json.Unmarshal(x.step(again, "Page.getNavigationHistory", nil).Result, &list) // refused while the page loads
		return len(list.Entries) == 1
	})
	daemon.Eventually(x.t, grace, "the run says why", func() bool {
		return slices.Contains(historyOf(x.t, x.d, x.s.ID)[0].types(), "page_blocked")
	})
	if got := x.w.eval(own, `document.title`); got != "opener" {
		x.t.Errorf("the extension's own page says %q", got)
	}
}

// prunedBackList restores a tab that has a file among its entries.
func prunedBackList(x *thief) {
	x.imported(x.url(), x.site.URL+"/")
	page, _ := x.w.page()
	var list struct{ Entries []struct{ URL string } }
	x.w.call(page, "Page.getNavigationHistory", nil, &list)
	for _, e := range list.Entries {
		if strings.HasPrefix(e.URL, "file:") {
			x.t.Errorf("the tab can go back to %s", e.URL)
		}
	}
	if got := x.w.eval(page, `location.href`); got != x.site.URL+"/" {
		x.t.Errorf("the tab is at %s", got)
	}
}

// addedScript adds scripts that declare and that are strict.
func addedScript(x *thief) {
	x.enter(obj{"engine": x.engine})
	page, _ := x.newPage()
	x.w.call(page, "Page.addScriptToEvaluateOnNewDocument", obj{"source": `const declared = 1; var kept = 2`}, nil)
	x.w.call(page, "Page.addScriptToEvaluateOnNewDocument", obj{"source": `"use strict"; window.strict = (function() { return this === undefined })()`}, nil)
	x.w.open(page, x.site.URL+"/")
	if got := x.w.eval(page, `[declared, kept, strict].join()`); got != "1,2,true" {
		x.t.Errorf("the scripts left %q", got)
	}
}
