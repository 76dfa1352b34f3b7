package hiddentab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
)

// extensionDeadline bounds the reading and writing of one extension's storage, which takes
// 0.1 s. It is long, because on a busy machine a hidden page may need seconds to open, and
// what is not written is lost.
const extensionDeadline = 20 * time.Second

// These scripts read and write an extension's chrome.storage.session, which Chrome keeps
// in memory. A page of the extension's own origin can access it without waking the
// extension's worker. The extension's manifest is such a page, and no other script runs
// in it. (The commands of the Extensions domain work only in visible tabs.)
const (
	readSession  = `(async () => globalThis.chrome?.storage?.session ? JSON.stringify(await chrome.storage.session.get()) : "{}")()`
	writeSession = `(async () => { await chrome.storage.session.set(%s); return "{}" })()`
)

// ReadExtensionSession reads an extension's chrome.storage.session: a JSON value for each
// key. It is empty if the extension may not use that storage.
func ReadExtensionSession(ctx context.Context, conn Conn, id string) (map[string]json.RawMessage, error) {
	text, err := inExtension(ctx, conn, id, readSession)
	if err != nil {
		return nil, err
	}
	var items map[string]json.RawMessage
	return items, json.Unmarshal([]byte(text), &items)
}

// WriteExtensionSession writes an extension's chrome.storage.session. It must run before
// the extension's own scripts.
func WriteExtensionSession(ctx context.Context, conn Conn, id string, items map[string]json.RawMessage) error {
	values, err := json.Marshal(items)
	if err != nil {
		return err
	}
	_, err = inExtension(ctx, conn, id, fmt.Sprintf(writeSession, values))
	return err
}

// inExtension runs a script in a hidden page of an extension and returns the script's
// string.
func inExtension(ctx context.Context, conn Conn, id, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, extensionDeadline)
	defer cancel()
	t, err := openBlank(ctx, conn)
	if err != nil {
		return "", err
	}
	defer t.Close(ctx)
	nav, err := cdp.Call(ctx, t.session, page.Navigate, page.NavigateParams{URL: "chrome-extension://" + id + "/manifest.json"})
	if err != nil {
		return "", err
	}
	if nav.ErrorText != "" {
		return "", errors.New(nav.ErrorText)
	}
	var text string
	return text, t.Evaluate(ctx, script, &text)
}
