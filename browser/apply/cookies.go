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

// Cookies makes the jar hold exactly the given cookies, and returns a report
// line for each domain, as read back.
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
			reasons[c.Identity()] = report.Unnamed.With("its partition has no name that can be set")
		}
	}
	jar, err := capture.Cookies(ctx, conn)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "the cookies could not be read back")
	}
	return state.CompareCookies(cookies, jar, now, reasons), nil
}

// toCDP is the inverse of how capture reads it. A host cookie is set by URL, for a domain
// would make it a domain cookie, and __Host- names refuse one.
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

// replaceCookies makes the jar hold exactly the given cookies, but for those
// that come back.
func replaceCookies(ctx context.Context, conn cdp.Session, jar []state.Cookie) (refused []state.Cookie, err error) {
	if _, err := cdp.Call(ctx, conn, storage.ClearCookies, storage.ClearCookiesParams{}); err != nil {
		return nil, err
	}
	return AddCookies(ctx, conn, jar)
}

// AddCookies puts cookies into the jar, but for those whose partition has no
// name (opaque). Chrome takes a batch whole or not at all, so a refused batch is
// set one by one, and the refused ones come back.
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
