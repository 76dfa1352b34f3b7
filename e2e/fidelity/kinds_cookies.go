package main

import (
	"context"
	"encoding/json"
)

// lasting makes a cookie persistent.
const lasting = "; Max-Age=31536000"

// cookies are the kinds of cookie. Their readings hold every attribute that
// CDP tells.
func cookies() []kind {
	return []kind{
		cookie("persistent cookie", "persistent", lasting),
		cookie("session cookie", "session", ""),
		cookie("HttpOnly cookie, of a path", "httponly", "; HttpOnly; Path=/deep"+lasting),
		cookie("cookie of a domain", "domain", "; Domain=a.localhost"+lasting),
		cookie("SameSite=Strict cookie", "strict", "; SameSite=Strict"+lasting),
		cookie("SameSite=Lax cookie", "lax", "; SameSite=Lax"+lasting),
		cookie("SameSite=None cookie, secure", "none", "; SameSite=None; Secure"+lasting),
		cookie("cookie with a priority", "priority", "; Priority=High"+lasting),
		partitioned("partitioned (CHIPS) cookie", "chips", lasting),
		partitioned("partitioned session cookie", "chips_session", ""),
	}
}

// cookie is one that the page's own server sets.
func cookie(row, name, attributes string) kind {
	set := "const line = `" + name + "=" + mark + attributes + "`; await fetch('/cookie?set=' + encodeURIComponent(line))"
	return kind{row, inPage, script(set), jar(name)}
}

// partitioned is one that belongs to a site only below another site's page.
func partitioned(row, name, attributes string) kind {
	set := "const line = '" + name + "=" + mark + "; Partitioned; Secure; SameSite=None" + attributes + "'; await fetch('/cookie?set=' + encodeURIComponent(line))"
	sent := framed("return (await (await fetch('/sent')).json())." + name)
	whole := jar(name)
	read := func(ctx context.Context, at *visit) (string, error) {
		// Set without its partition it would be sent all the same, and listed
		// with it and never sent is no use.
		if value, err := sent(ctx, at); value != mark || err != nil {
			return "", err
		}
		return whole(ctx, at)
	}
	return kind{row, inPage, framed(set), read}
}

// jar reads a cookie by its name, with all its attributes.
func jar(name string) step {
	return func(ctx context.Context, at *visit) (string, error) {
		var got struct{ Cookies []map[string]any }
		if err := at.Call(ctx, "", "Storage.getCookies", obj{"browserContextId": at.context}, &got); err != nil {
			return "", err
		}
		for _, c := range got.Cookies {
			if c["name"] == name {
				all, err := json.Marshal(c)
				return string(all), err
			}
		}
		return "", nil
	}
}
