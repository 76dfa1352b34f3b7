package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
)

// TestShown checks which targets a session may show, and that allowed features still
// work. One session of full Chrome, with an extension, takes most steps.
func TestShown(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	l := makeWantedFiles(t)
	t.Run("chrome", func(t *testing.T) {
		x := newFileAttacker(t, d, l)
		x.engine = browser.EngineChrome
		_, own := x.install()
		turnsForeign(x, own) // first, because it needs the only tab at its address
		dropZone(x)
		showsPDF(x)
		addedScript(x)
		x.leave()
	})
	t.Run("a drop zone takes files in the shell", func(t *testing.T) {
		x := newFileAttacker(t, d, l)
		x.enter(obj{"engine": browser.EngineShell})
		dropZone(x)
		x.leave()
	})
	t.Run("a back list leads to no file", func(t *testing.T) {
		x := newFileAttacker(t, d, l)
		prunedBackList(x)
		x.leave()
	})
}

// dropZone drops a file where a page accepts it, in a frame of the page, and next to it.
func dropZone(x *fileAttacker) {
	upload(x.t, x.d, x.s.ID, "mine.txt", "hello")
	page, _ := x.newPage("/")
	x.w.eval(page, `document.body.innerHTML = '<div id=zone style="position:absolute;left:0;top:0;width:200px;height:200px">zone</div>' +
			'<input id=field type=file style="position:absolute;left:200px;top:200px;width:150px;height:150px">';
		field.onchange = async () => { window.chosen = field.files[0].name + " " + await field.files[0].text() };
		zone.ondragover = (e) => e.preventDefault();
		zone.ondrop = async (e) => { e.preventDefault(); window.got = e.dataTransfer.files[0].name + " " + await e.dataTransfer.files[0].text() }; 1`)
	before := len(x.w.targets())
	// Chrome delivers a drop to what it has drawn, so a drop before that may be lost.
	drop := func(at int) {
		x.w.eval(page, `new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))`)
		for _, kind := range []string{"dragEnter", "dragOver", "drop"} {
			x.w.call(page, "Input.dispatchDragEvent", obj{"type": kind, "x": at, "y": at,
				"data": obj{"items": []obj{}, "files": []string{"mine.txt"}, "dragOperationsMask": 1}}, nil)
		}
	}
	daemon.Eventually(x.t, grace, "the zone has the file", func() bool { drop(50); return x.w.eval(page, `window.got`) == "mine.txt hello" })
	daemon.Eventually(x.t, grace, "the file input has the file", func() bool { drop(250); return x.w.eval(page, `window.chosen`) == "mine.txt hello" })
	drop(400)
	if got := x.w.eval(page, `new Promise((ok) => requestAnimationFrame(() => setTimeout(ok, 0, location.href)))`); got != x.site.URL+"/" {
		x.t.Errorf("after a drop next to the zone the page is at %s", got)
	}
	if after := x.w.targets(); len(after) != before {
		x.t.Errorf("a drop opened a target: %+v", after)
	}
}

// showsPDF opens a PDF with Puppeteer. Chrome shows it in a separate frame.
func showsPDF(x *fileAttacker) {
	got := drive(x.t, puppeteer, x.s.CDP, openTab(x.site.URL+"/paper.pdf"), evaluate("document.contentType"))
	if is := text(x.t, got[len(got)-1]); is != "application/pdf" && is != "text/html" {
		x.t.Errorf("the PDF's page gives %q", is)
	}
	for _, info := range x.w.targets() {
		if strings.HasPrefix(info.URL, viewer[:40]) {
			x.t.Errorf("a client sees the target %+v", info)
		}
	}
	if x.find(x.site.URL+"/paper.pdf") == "" {
		x.t.Error("the PDF's page was closed")
	}
}

// turnsForeign makes the extension of the page own navigate a client's page to a page of Chrome. When
// clients see the page again, it is blank and has no history.
func turnsForeign(x *fileAttacker, own string) {
	page, target := x.newPage("/")
	x.w.forget()
	x.sendTab(own, "chrome://version")
	var gone struct{ SessionID string }
	if err := json.Unmarshal(x.w.await("", "Target.detachedFromTarget"), &gone); err != nil || gone.SessionID != page {
		x.t.Errorf("error %v: detached from %q, want %q", err, gone.SessionID, page)
	}
	daemon.Eventually(x.t, grace, "the page is blank again", func() bool {
		return slices.ContainsFunc(x.w.targets(), func(i targetInfo) bool { return i.ID == target && i.URL == "about:blank" })
	})
	again := x.w.attach(target)
	if got := x.w.eval(again, `location.href`); got != "about:blank" {
		x.t.Errorf("the page is at %s", got)
	}
	var list struct{ Entries []struct{ URL string } }
	x.w.call(again, "Page.getNavigationHistory", nil, &list)
	if len(list.Entries) != 1 {
		x.t.Errorf("the page has history entries: %+v", list.Entries)
	}
	daemon.Eventually(x.t, grace, "the run has an event with the reason", func() bool {
		return slices.Contains(historyOf(x.t, x.d, x.s.ID)[0].types(), "page_blocked")
	})
	if got := x.w.eval(own, `document.title`); got != "opener" {
		x.t.Errorf("the extension's page shows %q", got)
	}
}

// prunedBackList restores a tab with a file in its history.
func prunedBackList(x *fileAttacker) {
	last := x.restore()
	page := x.w.attach(x.w.tab(last))
	x.w.awaitRestored(page)
	var list struct{ Entries []struct{ URL string } }
	x.w.call(page, "Page.getNavigationHistory", nil, &list)
	for _, e := range list.Entries {
		if strings.HasPrefix(e.URL, "file:") {
			x.t.Errorf("the tab can go back to %s", e.URL)
		}
	}
	if got := x.w.eval(page, `location.href`); got != last {
		x.t.Errorf("the tab is at %s", got)
	}
}

// addedScript adds scripts with declarations and in strict mode.
func addedScript(x *fileAttacker) {
	page, _ := x.newPage("/")
	x.w.call(page, "Page.addScriptToEvaluateOnNewDocument", obj{"source": `const declared = 1; var kept = 2`}, nil)
	x.w.call(page, "Page.addScriptToEvaluateOnNewDocument", obj{"source": `"use strict"; window.strict = (function() { return this === undefined })()`}, nil)
	x.w.call(page, "Page.addScriptToEvaluateOnNewDocument", obj{"source": "/* first */ 'use strict'; window.commented = (function() { return this === undefined })()"}, nil)
	// As the other branch of the check, the script would run before the check is
	// complete.
	x.w.call(page, "Page.addScriptToEvaluateOnNewDocument", obj{"source": `else { window.branch = true; i = 1e9 }`}, nil)
	x.w.open(page, x.site.URL+"/")
	if got := x.w.eval(page, `[declared, kept, strict, commented, window.branch].join()`); got != "1,2,true,true," {
		x.t.Errorf("after the scripts the page has %q", got)
	}
}
