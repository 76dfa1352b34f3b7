package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// profile is what Chrome keeps for a person and no page can make. The
// directory to begin with has it (see desktop.go).
func profile() []kind {
	return []kind{
		{"HSTS", inPage, nil, readHSTS},
		{"content setting of a site", inPage, nil, func(ctx context.Context, at *visit) (string, error) {
			return elsewhere(ctx, at, at.site.Origin(settingsHost)+"/", `
				const { state } = await navigator.permissions.query({ name: "geolocation" });
				return state === "granted" ? state : ""`)
		}},
		{"zoom of a site", inPage, nil, readZoom},
		{"saved password", inFiles, nil, row("Login Data",
			"SELECT origin_url, username_value, password_value FROM logins", decrypted)},
		{"autofill", inFiles, nil, row("Web Data",
			"SELECT name, value, count FROM autofill", nil)},
		{"history", inFiles, nil, row("History",
			"SELECT url, title FROM urls WHERE url LIKE '%//visited.localhost%'", nil)},
		{"bookmarks", inFiles, nil, readBookmarks},
	}
}

// readHSTS goes to a host that Chrome knows to want TLS, and to one that it
// does not. Neither exists, for the proxy neither, and the addresses that Chrome
// ends up with tell.
func readHSTS(ctx context.Context, at *visit) (string, error) {
	went := func(host string) (string, error) {
		t, err := at.open(ctx, blankPage)
		if err != nil {
			return "", err
		}
		// It fails, for there is no such host.
		if err := t.do(ctx, "Page.navigate", obj{"url": "http://" + host + "/"}, nil); err != nil {
			return "", err
		}
		var url string
		if err := eventually(ctx, loadDeadline, "a failed page shows", func() (bool, error) {
			url, err = t.url(ctx)
			return strings.Contains(url, host), err
		}); err != nil {
			return "", err
		}
		return url, t.shut(ctx)
	}
	known, err := went(hstsHost)
	if err != nil {
		return "", err
	}
	unknown, err := went("not-" + hstsHost)
	if err != nil || !strings.HasPrefix(known, "https:") || !strings.HasPrefix(unknown, "http:") {
		return "", err
	}
	return known, nil
}

// readZoom gives how many pixels of the screen a page's pixel has, unless it is
// one. Chrome zooms a page when it is first in front.
func readZoom(ctx context.Context, at *visit) (string, error) {
	t, err := at.open(ctx, at.site.Origin(zoomHost)+"/")
	if err != nil {
		return "", err
	}
	if err := at.activate(ctx, t); err != nil {
		return "", err
	}
	soon, cancel := context.WithTimeout(ctx, backDeadline)
	defer cancel()
	if t.await(soon, "devicePixelRatio !== 1") != nil {
		return "", t.shut(ctx)
	}
	ratio, err := t.evaluate(ctx, "devicePixelRatio.toFixed(2)")
	return ratio, errors.Join(err, t.shut(ctx))
}

// readBookmarks gives the names and addresses in the bookmarks bar.
func readBookmarks(_ context.Context, at *visit) (string, error) {
	raw, err := os.ReadFile(filepath.Join(at.dir, "Default", "Bookmarks"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var file struct {
		Roots map[string]struct {
			Children []struct{ Name, URL string }
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return "", err
	}
	var found []string
	for _, b := range file.Roots["bookmark_bar"].Children {
		found = append(found, b.Name+" "+b.URL)
	}
	return strings.Join(found, ", "), nil
}
