package main

import (
	"context"
	"encoding/json"
)

// lasting is the attribute that makes a cookie persistent.
const lasting = "; Max-Age=31536000"

// cookies returns the kinds of cookie. Their readings contain every attribute that CDP
// reports.
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

// cookie is a cookie that the page's own server sets.
func cookie(row, name, attributes string) kind {
	set := "const line = `" + name + "=" + mark + attributes + "`; await fetch('/cookie?set=' + encodeURIComponent(line))"
	return kind{row, inPage, script(set), jar(name)}
}

// partitioned is a cookie that a site gets only below another site's page.
func partitioned(row, name, attributes string) kind {
	set := "const line = '" + name + "=" + mark + "; Partitioned; Secure; SameSite=None" + attributes + "'; await fetch('/cookie?set=' + encodeURIComponent(line))"
	sent := framed("return (await (await fetch('/sent')).json())." + name)
	whole := jar(name)
	read := func(ctx context.Context, at *visit) (string, error) {
		// Without its partition the cookie would also be sent. So the reading checks
		// that it is sent and that it is listed with its partition.
		if value, err := sent(ctx, at); value != mark || err != nil {
			return "", err
		}
		return whole(ctx, at)
	}
	return kind{row, inPage, framed(set), read}
}

// jar reads the cookie with a name, with all its attributes.
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
