package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// consentPage asks for consent like HubSpot's banner, which Autoconsent knows. Its title
// says what was clicked.
const consentPage = `<!doctype html><title>asked</title><body>
	<div id="hs-eu-cookie-confirmation">We value your privacy.
		<button id="hs-eu-confirmation-button">Accept</button><button id="hs-eu-decline-button">Decline</button></div>
	<script>for (const [button, title] of [["confirmation", "accepted"], ["decline", "declined"]])
		document.querySelector("#hs-eu-" + button + "-button").onclick = () => { document.title = title }</script>`

// publishedExtension is a published extension, DuckDuckGo's Autoconsent, in a daemon.
type publishedExtension struct {
	id, settings string // settings is the address of its settings page
	site         string // whose page asks for consent
}

// addPublished adds the extension with the command line.
func addPublished(t *testing.T, d *daemon.Daemon) publishedExtension {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, consentPage)
	}))
	t.Cleanup(site.Close)
	add := exec.CommandContext(t.Context(), daemon.Binary(t), "extension", "add", "--url", d.URL, "--key", daemon.Key,
		"clients/node_modules/@duckduckgo/autoconsent/dist/addon-mv3")
	out, err := add.Output()
	id, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || len(id) != 32 {
		t.Fatalf("%s: %v", out, err)
	}
	return publishedExtension{id, "chrome-extension://" + id + "/popup.html", site.URL}
}

// clicked waits until the extension has clicked. Its value is the page's title.
var clicked = await(`document.title !== "asked" && document.title`)

// declines checks that the extension declines on a page, by rules that its worker has
// stored. Then it sets the extension to accept in its own settings page. It opens a tab,
// because the first one may be another extension's, behind.
func (e publishedExtension) declines(t *testing.T, cdpURL string) {
	t.Helper()
	got := drive(t, puppeteer, cdpURL, openTab(e.settings), await(`chrome.storage.local.get().then((kept) => !!kept.fullRules && !!kept.config)`),
		visit(e.site), clicked,
		visit(e.settings), await(`document.querySelector("#optout").checked`), click("#optin"),
		await(`chrome.storage.local.get("config").then(({config}) => config.autoAction === "optIn")`))
	if title := text(t, got[3]); title != "declined" {
		t.Errorf("the extension %s", title)
	}
}

// accepts checks that the extension is still set to accept.
func (e publishedExtension) accepts(t *testing.T, cdpURL string) {
	t.Helper()
	got := drive(t, puppeteer, cdpURL, openTab(e.site), clicked, visit(e.settings), await(`document.querySelector("#optin").checked`))
	if title := text(t, got[1]); title != "accepted" {
		t.Errorf("after the restore the extension %s", title)
	}
}
