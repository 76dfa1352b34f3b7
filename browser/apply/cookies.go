package apply

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// Cookies makes the cookie jar hold exactly the given cookies. It reads the jar back and
// returns a report line for each domain.
func Cookies(ctx context.Context, conn cdp.Session, cookies []state.Cookie, now time.Time) ([]state.Component, error) {
	const op = "apply.cookies"
	refused, err := replaceCookies(ctx, conn, cookies)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "the cookies could not be written")
	}
	reasons := map[string]report.Reason{}
	for _, c := range refused {
		reasons[c.Identity()] = report.Refused.With("Chrome refused the cookie")
		if c.Opaque {
			reasons[c.Identity()] = report.Unnamed.With("its partition has no name, so the cookie cannot be set")
		}
	}
	jar, err := capture.Cookies(ctx, conn)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "the cookies could not be read back")
	}
	return state.CompareCookies(cookies, jar, now, reasons), nil
}

// toCDP is the inverse of fromCDP in package capture. A host cookie is set by URL: a
// domain would make it a domain cookie, and __Host- names must not have one.
func toCDP(c state.Cookie) *network.CookieParam {
	p := &network.CookieParam{
		Name: c.Name, Value: c.Value, Path: c.Path, Secure: c.Secure, HTTPOnly: c.HTTPOnly,
		SameSite: network.CookieSameSite(c.SameSite), Priority: network.CookiePriority(c.Priority),
		SourceScheme: network.CookieSourceScheme(c.SettableScheme()), SourcePort: c.SourcePort,
	}
	if len(c.Domain) > 0 && c.Domain[0] == '.' {
		p.Domain = c.Domain
	} else {
		scheme := "http"
		if c.Secure || c.SourceScheme == "Secure" {
			scheme = "https"
		}
		p.URL = scheme + "://" + c.Domain + c.Path
	}
	if !c.Session {
		p.Expires = cdp.TimeSinceEpoch(c.Expires)
	}
	if c.Partition != nil {
		p.PartitionKey = &network.CookiePartitionKey{
			TopLevelSite:         c.Partition.TopLevelSite,
			HasCrossSiteAncestor: c.Partition.HasCrossSiteAncestor,
		}
	}
	return p
}

// replaceCookies makes the cookie jar hold exactly the given cookies, except those that
// it returns as refused.
func replaceCookies(ctx context.Context, conn cdp.Session, jar []state.Cookie) (refused []state.Cookie, err error) {
	if _, err := cdp.Call(ctx, conn, storage.ClearCookies, storage.ClearCookiesParams{}); err != nil {
		return nil, err
	}
	return AddCookies(ctx, conn, jar)
}

// AddCookies adds cookies to the jar, except those whose partition has no name (opaque).
// Chrome accepts or rejects a batch as a whole. So AddCookies sets the cookies of a
// rejected batch one by one, and returns the refused ones.
func AddCookies(ctx context.Context, conn cdp.Session, jar []state.Cookie) (refused []state.Cookie, err error) {
	var batch []*network.CookieParam
	var settable []state.Cookie
	for _, c := range jar {
		if c.Opaque {
			refused = append(refused, c)
			continue
		}
		batch, settable = append(batch, toCDP(c)), append(settable, c)
	}
	if _, err := cdp.Call(ctx, conn, storage.SetCookies, storage.SetCookiesParams{Cookies: batch}); err == nil {
		return refused, nil
	}
	for i, p := range batch {
		_, err := cdp.Call(ctx, conn, storage.SetCookies, storage.SetCookiesParams{Cookies: []*network.CookieParam{p}})
		if err != nil {
			if ctx.Err() != nil {
				return refused, ctx.Err()
			}
			refused = append(refused, settable[i])
		}
	}
	return refused, nil
}
