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

// profile returns what Chrome stores for a user and no page can make. The first user
// data directory has it (see desktop.go).
func profile() []kind {
	return []kind{
		{"HSTS", inPage, nil, readHSTS},
		{"content setting of a site", inPage, nil, func(ctx context.Context, at *visit) (string, error) {
			return inNewTab(ctx, at, at.site.Origin(settingsHost)+"/", `
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

// readHSTS visits one host that Chrome has in its HSTS list and one that it has not.
// Neither exists, and the proxy does not know them either. The addresses of the failed
// pages show whether Chrome changed http to https.
func readHSTS(ctx context.Context, at *visit) (string, error) {
	went := func(host string) (string, error) {
		t, err := at.open(ctx, blankPage)
		if err != nil {
			return "", err
		}
		// The navigation fails because there is no such host.
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

// readZoom returns the page's devicePixelRatio, or "" if that is 1. Chrome zooms a page
// when it is first in front.
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

// readBookmarks returns the names and addresses in the bookmarks bar.
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
