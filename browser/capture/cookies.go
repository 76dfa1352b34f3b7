package capture

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"

	"github.com/stasisd/stasis/state"
)

func fromCDP(c *network.Cookie) state.Cookie {
	out := state.Cookie{
		Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path, Expires: c.Expires,
		HTTPOnly: c.HTTPOnly, Secure: c.Secure, Session: c.Session,
		SameSite: string(c.SameSite), Priority: string(c.Priority),
		SourceScheme: string(c.SourceScheme), SourcePort: c.SourcePort,
		Opaque: c.PartitionKeyOpaque,
	}
	if c.PartitionKey != nil {
		out.Partition = &state.PartitionKey{
			TopLevelSite:         c.PartitionKey.TopLevelSite,
			HasCrossSiteAncestor: c.PartitionKey.HasCrossSiteAncestor,
		}
	}
	return out
}

// toCDP is the inverse of fromCDP. A host cookie is set by URL, for a domain
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
func replaceCookies(ctx context.Context, conn Conn, jar []state.Cookie) (refused []state.Cookie, err error) {
	if _, err := cdp.Call(ctx, conn, storage.ClearCookies, storage.ClearCookiesParams{}); err != nil {
		return nil, err
	}
	return AddCookies(ctx, conn, jar)
}

// AddCookies puts cookies into the jar, but for those whose partition has no
// name (opaque). Chrome takes a batch whole or not at all, so a refused batch is
// set one by one, and the refused ones come back.
func AddCookies(ctx context.Context, conn Conn, jar []state.Cookie) (refused []state.Cookie, err error) {
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
