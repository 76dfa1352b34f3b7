package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stasisd/stasis/e2e/apps/blank"
)

// Hosts of the site for which a user has made settings. hstsHost does not exist.
const (
	visitedHost  = "visited"
	settingsHost = "settings"
	zoomHost     = "zoom"
	hstsHost     = "strict.test"
)

// zoomFactor is the zoom level of a page as Chrome stores it: the exponent of 1.2.
const zoomFactor = 2.2239010857415449 // 150 %

// makeDesktop makes a user data directory with state that no page can make, as the
// desktop Chrome of a user leaves it. A plain Chrome makes the directory and its
// history. makeDesktop returns the product and version of that Chrome.
func makeDesktop(ctx context.Context, chrome, dir string, site *blank.Site) (product string, err error) {
	visited := site.Origin(visitedHost) + "/"
	if product, err = visitOnce(ctx, chrome, dir, visited); err != nil {
		return "", fmt.Errorf("cannot make the first user data directory with a plain Chrome: %w", err)
	}
	return product, addByHand(ctx, dir, site, visited)
}

// addByHand writes into a closed Chrome's files what a user would do in Chrome's own
// windows.
func addByHand(ctx context.Context, dir string, site *blank.Site, visited string) error {
	// The tabs of the Chrome that made the directory must not be restored.
	for _, sessions := range []string{"Sessions", "Sessions_Encrypted"} {
		if err := os.RemoveAll(filepath.Join(dir, "Default", sessions)); err != nil {
			return err
		}
	}
	now := chromeTime(time.Now())
	if err := addLogin(ctx, dir, visited, now); err != nil {
		return fmt.Errorf("cannot add a saved password: %w", err)
	}
	if err := execute(ctx, dir, "Web Data",
		"INSERT INTO autofill (name, value, value_lower, date_created, date_last_used, count) VALUES ('city', 'Paris', 'paris', ?, ?, 3)",
		time.Now().Unix(), time.Now().Unix()); err != nil {
		return fmt.Errorf("cannot add an autofill entry: %w", err)
	}
	stamp := strconv.FormatInt(now, 10)
	if err := edit(dir, "Default/Preferences", func(prefs map[string]any) {
		site := site.Origin(settingsHost) + ",*"
		set(prefs, map[string]any{"last_modified": stamp, "setting": 1}, "profile", "content_settings", "exceptions", "geolocation", site)
		set(prefs, map[string]any{"last_modified": stamp, "zoom_level": zoomFactor}, "partition", "per_host_zoom_levels", "x", zoomHost+".localhost")
	}); err != nil {
		return err
	}
	if err := edit(dir, "Default/Bookmarks", func(file map[string]any) {
		file["version"] = 1
		for i, folder := range []string{"bookmark_bar", "other", "synced"} {
			children := []any{}
			if i == 0 {
				children = append(children, map[string]any{"type": "url", "id": "9", "name": mark, "url": visited, "date_added": stamp})
			}
			set(file, map[string]any{"type": "folder", "id": strconv.Itoa(i + 1), "name": folder, "children": children, "date_added": stamp}, "roots", folder)
		}
	}); err != nil {
		return err
	}
	return edit(dir, "Default/TransportSecurity", func(file map[string]any) {
		file["version"] = 2
		file["sts"] = []any{map[string]any{
			"host": hashedHost(hstsHost), "mode": "force-https", "sts_include_subdomains": false,
			"expiry": float64(time.Now().AddDate(1, 0, 0).Unix()), "sts_observed": float64(time.Now().Unix()),
		}}
	})
}

// hashedHost returns a host's name as the TransportSecurity file has it: the SHA-256
// hash of the name's DNS wire form, in Base64.
func hashedHost(host string) string {
	var wire []byte
	for label := range strings.SplitSeq(host, ".") {
		wire = append(append(wire, byte(len(label))), label...)
	}
	sum := sha256.Sum256(append(wire, 0))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// chromeTime converts a time to the form of Chrome's databases: microseconds since 1601.
func chromeTime(t time.Time) int64 { return t.UnixMicro() + 11644473600*1_000_000 }

// edit changes a JSON file of a user data directory. The file may be missing.
func edit(dir, name string, change func(map[string]any)) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	file := map[string]any{}
	if raw, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(raw, &file); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	} else if !os.IsNotExist(err) {
		return err
	}
	change(file)
	raw, err := json.Marshal(file)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// set puts a value into nested objects and makes the missing ones.
func set(in map[string]any, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		next, ok := in[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			in[name] = next
		}
		in = next
	}
	in[path[len(path)-1]] = value
}
