package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

const (
	registers = `navigator.credentials.create({publicKey: {challenge: new Uint8Array(16), rp: {name: "x", id: "localhost"},
		user: {id: new Uint8Array([1]), name: "ada", displayName: "Ada"}, pubKeyCredParams: [{type: "public-key", alg: -7}],
		authenticatorSelection: {residentKey: "required"}}}).then(() => 1)`
	// signsIn signs in until window.enough is set, and records whether it ever succeeded.
	signsIn = `(async () => {
		do {
			await navigator.credentials.get({publicKey: {challenge: new Uint8Array(16), rpId: "localhost"}});
			window.signed = true;
		} while (!window.enough);
		return 1;
	})()`
)

// A tab of a thawed Chrome navigates to another page and signs in there repeatedly while
// the daemon reads the tab. If the authenticator ended with the reader's session, a
// running sign-in would never be answered.
func TestPasskeysAfterThaw(t *testing.T) {
	t.Parallel()
	r, s, yes := newRig(t), newSite(t, nil), true
	b, err := r.Fresh(within(t), r.dir(), Options{Passkeys: &yes})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	at := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	r.open(b, at+"/one")
	// These sessions are created and closed as a client's are.
	attach := func(path string) (cdp.Session, func()) {
		t.Helper()
		b.passkeys.authenticators.ClientJoining(within(t))
		got, err := cdp.Call(within(t), b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: r.page(b, at+path), Flatten: &yes})
		if err != nil {
			t.Fatal(err)
		}
		return b.driver.Session(got.SessionID), func() {
			t.Helper()
			if _, err := cdp.Call(within(t), b.driver, target.DetachFromTarget, target.DetachFromTargetParams(got)); err != nil {
				t.Error(err)
			}
		}
	}
	tries := func(tab cdp.Session, script string) bool {
		t.Helper()
		got, err := cdp.Call(within(t), tab, runtime.Evaluate, runtime.EvaluateParams{Expression: script, AwaitPromise: &yes, ReturnByValue: &yes})
		if err == nil && got.ExceptionDetails != nil {
			t.Errorf("%s: %s", script, got.ExceptionDetails.Exception.Description)
			return false
		}
		return err == nil && string(got.Result.Value) != "false"
	}
	goesTo := func(tab cdp.Session, path string) {
		t.Helper()
		if _, err := cdp.Call(within(t), tab, page.Navigate, page.NavigateParams{URL: at + path}); err != nil {
			t.Fatal(err)
		}
		await(t, path+" is loaded", func() bool { return tries(tab, `location.pathname == "`+path+`" && document.readyState == "complete"`) })
	}
	tab, leave := attach("/one")
	if !tries(tab, registers) {
		t.Fatal("no passkey")
	}
	goesTo(tab, "/two")
	leave() // the authenticator that ends with it is being repaired when Chrome is frozen
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := b.Thaw(within(t)); err != nil {
		t.Fatal(err)
	}
	tab, _ = attach("/two")
	goesTo(tab, "/three")
	answered := make(chan bool, 1)
	go func() { answered <- tries(tab, signsIn) }()
	await(t, "it has signed in", func() bool { return tries(tab, "!!window.signed") })
	if v, err := b.VerifyThawed(within(t), doc); err != nil || len(v.Differences) != 1 {
		t.Errorf("after the navigation: %+v, %v", v, err)
	}
	tries(tab, "window.enough = true")
	if !<-answered {
		t.Error("a sign-in was never answered")
	}
}
