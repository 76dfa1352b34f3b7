package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/state"
)

// consentPage asks for consent like HubSpot's banner, which Autoconsent knows. Its title
// says what was clicked.
const consentPage = `<!doctype html><title>asked</title><body>
	<div id="hs-eu-cookie-confirmation">We value your privacy.
		<button id="hs-eu-confirmation-button">Accept</button><button id="hs-eu-decline-button">Decline</button></div>
	<script>for (const [button, title] of [["confirmation", "accepted"], ["decline", "declined"]])
		document.querySelector("#hs-eu-" + button + "-button").onclick = () => { document.title = title }</script>`

// This uses a published extension, DuckDuckGo's Autoconsent. It declines on a page, by
// rules that its worker has stored. After it is set to accept in its own settings page,
// it accepts in the restored session, although its upload is gone.
func TestPublishedExtension(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
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
	settings := "chrome-extension://" + id + "/popup.html"
	clicked := await(`document.title !== "asked" && document.title`)

	s := create(t, d, body{"extensions": []string{id}})
	got := drive(t, puppeteer, s.CDP, visit(settings), await(`chrome.storage.local.get().then((kept) => !!kept.fullRules && !!kept.config)`),
		visit(site.URL), clicked,
		visit(settings), await(`document.querySelector("#optout").checked`), click("#optin"),
		await(`chrome.storage.local.get("config").then(({config}) => config.autoAction === "optIn")`))
	if title := text(t, got[3]); title != "declined" {
		t.Errorf("the extension %s", title)
	}
	saved := save(t, d, s.ID, "filesystem")
	d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/extensions/"+id+"?force=true", nil)
	restart(t, d)

	back := create(t, d, body{"restore_from_environment_id": saved.ID})
	got = drive(t, puppeteer, back.CDP, visit(site.URL), clicked, visit(settings), await(`document.querySelector("#optin").checked`))
	if title := text(t, got[1]); title != "accepted" {
		t.Errorf("after the restore the extension %s", title)
	}
	for _, c := range back.Restored.Components {
		if c.Name == state.ComponentExtensions && (c.Origin != "chrome-extension://"+id || c.Saved != 1 || c.Restored != 1) {
			t.Errorf("%+v", c)
		}
	}
	end(t, d, back.ID, "")
}
