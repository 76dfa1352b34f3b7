package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/stasisd/stasis/e2e/apps/blank"
)

// overrides returns the overrides of the first browser's pages, as fields of a create. The
// restore does not name them again.
func overrides(site *blank.Site) obj {
	return obj{
		"user_agent":    "Mozilla/5.0 (X11; Linux x86_64) Own/1.0",
		"viewport":      obj{"width": 801, "height": 602},
		"timezone":      "Asia/Tokyo",
		"locale":        "de-CH",
		"geolocation":   obj{"latitude": 48.25, "longitude": 16.5, "accuracy": 7},
		"extra_headers": obj{"X-Extra": mark},
		"proxy":         obj{"server": site.ProxyURL(), "username": blank.ProxyUser, "password": blank.ProxyPassword, "bypass": site.ProxyBypass()},
		// Chrome asks the user for this permission.
		"permission_policy": obj{"rules": []obj{{"permission": "clipboard-read", "decision": "allow"}}},
	}
}

// siteSettings stands for the settings of sites, which no field of a create makes. The first
// user data directory has them.
const siteSettings = "settings of sites"

// fieldOf maps a kind's name to the field of a create that makes it.
var fieldOf = map[string]string{
	"content setting of a site":            siteSettings,
	"zoom of a site":                       siteSettings,
	"override: user agent":                 "user_agent",
	"override: time zone":                  "timezone",
	"override: locale":                     "locale",
	"override: geolocation":                "geolocation",
	"override: permission policy":          "permission_policy",
	"override: proxy":                      "proxy",
	"override: proxy, with its password":   "proxy",
	"extension, with storage and database": "extensions",
}

// session returns the kinds that belong to the session and not to a page.
func session() []kind {
	return []kind{
		{"override: user agent", inPage, nil, script(`
			const { user_agent } = await (await fetch("/agent")).json();
			return navigator.userAgent.includes("Own") && user_agent === navigator.userAgent ? user_agent : ""`)},
		{"override: viewport", inPage, nil, script(`
			return innerWidth === 801 ? innerWidth + " " + innerHeight : ""`)},
		{"override: time zone", inPage, nil, script(`
			const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
			return zone === "Asia/Tokyo" ? zone + new Date(0) : ""`)},
		{"override: locale", inPage, nil, script(`
			const locale = Intl.DateTimeFormat().resolvedOptions().locale;
			return locale === "de-CH" ? [locale, navigator.language, (1234.5).toLocaleString()].join() : ""`)},
		{"override: geolocation", inPage, nil, readPosition},
		{"override: extra headers", inPage, nil, script(`return (await (await fetch("/agent")).json()).extra`)},
		{"override: proxy", inPage, nil, reach(blank.OpenURL)},
		{"override: proxy, with its password", inPage, nil, reach(blank.GuardedURL)},
		{"override: permission policy", inPage, nil, script(`
			const { state } = await navigator.permissions.query({ name: "clipboard-read" });
			return state === "granted" ? state : ""`)},
		{"permission set over CDP", inPage,
			func(ctx context.Context, at *visit) (string, error) {
				return "", at.Call(ctx, "", "Browser.setPermission", obj{"permission": obj{"name": "notifications"},
					"setting": "granted", "origin": at.site.Origin("a"), "browserContextId": at.context}, nil)
			},
			script(`
				const { state } = await navigator.permissions.query({ name: "notifications" });
				return state === "granted" ? state : ""`)},
		{"passkey, with its counter", inPage, seedPasskey, readPasskey},
		{"extension, with storage and database", inPage,
			script(extension + `await extension({ do: "keep", value: mark })`),
			script(extension + `return extension({ do: "give" })`)},
	}
}

// extension is a script function that sends a message to the test extension, if it runs.
const extension = `
	const extension = async (message) => {
		const { port1, port2 } = new MessageChannel();
		const answer = new Promise((resolve, reject) => {
			port1.onmessage = ({ data }) => ("error" in data ? reject(new Error(data.error)) : resolve(data.value));
		});
		if (!document.documentElement.dataset.keeper) return;
		postMessage({ extension: message }, "*", [port2]);
		return answer;
	};`

// readPosition asks for the position on a host that has the permission. A library may
// apply its override shortly after the load.
func readPosition(ctx context.Context, at *visit) (string, error) {
	return inNewTab(ctx, at, at.site.Origin(settingsHost)+"/", `
		const ask = () => new Promise((answer) => navigator.geolocation.getCurrentPosition(
			({ coords }) => answer(coords), () => answer({}), { timeout: 500 }));
		for (let i = 0; i < 20; i++) {
			const { latitude, longitude, accuracy } = await ask();
			if (latitude === 48.25) return [latitude, longitude, accuracy].join();
			await new Promise((later) => setTimeout(later, 50));
		}`)
}

// reach visits an address that only the proxy can reach. A library may provide the
// credentials shortly after the first request.
func reach(url string) step {
	return func(ctx context.Context, at *visit) (string, error) {
		t, err := at.open(ctx, blankPage)
		if err != nil {
			return "", err
		}
		var went error
		_ = eventually(ctx, backDeadline, "the proxy accepts the credentials", func() (bool, error) {
			went = t.visit(ctx, url)
			return went == nil || !strings.Contains(went.Error(), "AUTH"), nil
		})
		if went != nil {
			return "", went // the tab stays: the failed page may still be loading in it
		}
		// The proxy's error response is a page too.
		there, err := t.run(ctx, `return (await fetch("/agent")).ok ? location.href : ""`)
		return there, errors.Join(err, t.shut(ctx))
	}
}

// seedPasskey registers a passkey with the authenticator that the method gives its
// pages. If there is none, it makes one over CDP.
func seedPasskey(ctx context.Context, at *visit) (string, error) {
	if err := at.giveAuthenticator(ctx); err != nil {
		return "", err
	}
	return at.work.run(ctx, `
		const made = await navigator.credentials.create({ publicKey: {
			challenge: new Uint8Array(16), rp: { id: "a.localhost", name: "a" },
			user: { id: new TextEncoder().encode(mark), name: "ada", displayName: "Ada" },
			pubKeyCredParams: [{ type: "public-key", alg: -7 }],
			authenticatorSelection: { residentKey: "required", userVerification: "required" },
		} });
		if (!made) throw new Error("no credential");`)
}

// readPasskey signs in. Each sign-in increases the counter, so the reading subtracts
// earlier readings.
func readPasskey(ctx context.Context, at *visit) (string, error) {
	if err := at.giveAuthenticator(ctx); err != nil {
		return "", err
	}
	return at.work.run(ctx, `
		const taken = await navigator.credentials.get({ signal: AbortSignal.timeout(5000), publicKey: {
			challenge: new Uint8Array(16), rpId: "a.localhost", userVerification: "required",
		} });
		const { authenticatorData, userHandle } = taken.response;
		const count = new DataView(authenticatorData).getUint32(33) - `+strconv.Itoa(at.readings)+`;
		return [taken.id, new TextDecoder().decode(userHandle), count].join();`)
}

// giveAuthenticator adds a virtual authenticator to the page, unless the method gives it
// one. It also gives the page the focus, without which no authenticator answers.
func (at *visit) giveAuthenticator(ctx context.Context) error {
	if err := at.work.do(ctx, "Emulation.setFocusEmulationEnabled", obj{"enabled": true}, nil); err != nil {
		return err
	}
	if at.passkeys {
		return nil
	}
	if err := at.work.do(ctx, "WebAuthn.enable", nil, nil); err != nil {
		return err
	}
	at.passkeys = true // as long as the tab is open
	return at.work.do(ctx, "WebAuthn.addVirtualAuthenticator", obj{"options": obj{
		"protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true, "isUserVerified": true,
	}}, nil)
}
