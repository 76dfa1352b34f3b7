package browser

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// hoard keeps some data, and leaves much garbage and many decoded images.
const hoard = `<script>
let kept = {answer: 42}, clicks = 0, ready = false;
addEventListener("click", () => { clicks++; });
const worker = new Worker(URL.createObjectURL(new Blob(["onmessage = e => postMessage(e.data + 1)"])));
const asked = n => new Promise(done => { worker.onmessage = e => done(e.data); worker.postMessage(n); });
(async () => {
	const claimed = new Promise(done => { navigator.serviceWorker.oncontrollerchange = done; });
	await navigator.serviceWorker.register("/sw.js");
	await claimed;
	const canvas = document.createElement("canvas");
	canvas.width = canvas.height = 1000;
	canvas.getContext("2d").fillRect(0, 0, 500, 500);
	for (let i = 0; i < 15; i++) {
		const picture = new Image();
		picture.src = URL.createObjectURL(await new Promise(done => canvas.toBlob(done)));
		document.body.append(picture);
		await picture.decode();
	}
	let garbage = [];
	for (let i = 0; i < 1e6; i++) garbage.push({i, text: "number " + i});
	garbage = null;
	ready = true;
})();
</script>`

// A parked Chrome has released memory that its pages do not need, and uses no CPU time.
// Nothing of its pages is lost: neither what their scripts hold, nor their workers, nor
// the tabs in the background.
func TestTrimAndFreeze(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/": hoard, "/back": `<script>var held = "still"</script>`,
		"/sw.js": `onactivate = e => e.waitUntil(clients.claim());
			onfetch = e => { if (e.request.url.endsWith("/asked")) e.respondWith(new Response("by the worker")); }`})
	b := r.fresh()
	ctx := within(t)
	if _, err := b.Navigate(ctx, s.url+"/back"); err != nil {
		t.Fatal(err)
	}
	r.open(b, s.url+"/")
	await(t, "the page has filled its memory", func() bool { return r.eval(b, s.url+"/", "ready") == "true" })

	before := b.Memory()
	for range 3 { // on a busy machine a trim may end at its deadline
		b.Trim(ctx)
		if before-b.Memory() >= 40<<20 {
			break
		}
	}
	// Chrome may have collected some of the 150 MB on its own.
	if after := b.Memory(); before-after < 40<<20 {
		t.Errorf("Chrome used %d MB, and %d MB after it was trimmed", before>>20, after>>20)
	}
	if err := b.Freeze(ctx); err != nil {
		t.Fatal(err)
	}
	for _, pid := range b.process.Processes() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, rest, _ := strings.Cut(string(line), ") "); err != nil || !strings.HasPrefix(rest, "T ") {
			t.Errorf("%v: %s", err, line)
		}
	}
	used := b.process.CPUTime()
	r.copied(b) // as a save does meanwhile
	if more := b.process.CPUTime() - used; more != 0 {
		t.Errorf("a frozen Chrome has used %v", more)
	}

	if err := b.Thaw(ctx); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		"kept.answer": "42", "document.body.click(), clicks": "1", "asked(1)": "2",
		`fetch("/asked").then(answer => answer.text())`:                           "by the worker",
		"document.images[3].decode().then(() => document.images[3].naturalWidth)": "1000",
	} {
		if got := r.eval(b, s.url+"/", script); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
	if got := r.eval(b, s.url+"/back", "held"); got != "still" {
		t.Errorf("the tab in the background has %s", got)
	}
	// Chrome keeps no page that is left: going back loads it again, with the events that
	// clients wait for.
	r.eval(b, s.url+"/back", `held = "kept", setTimeout(() => { location = "/on"; }), 1`)
	r.eval(b, s.url+"/on", `setTimeout(() => history.back()), 1`)
	if got := r.eval(b, s.url+"/back", "held"); got != "still" {
		t.Errorf("after going back, the page has %s", got)
	}
}
