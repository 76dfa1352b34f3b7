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

// extensionDeadline bounds the reading and writing of one extension's storage.
const extensionDeadline = 5 * time.Second

// An extension's chrome.storage.session lives in Chrome's memory. A page of the
// extension's own origin reaches it, without waking the extension's worker;
// its manifest is such a page, and no script runs in it but these. (The
// Extensions domain has commands for it, and takes them only from tabs that
// are seen.)
const (
	readSession  = `(async () => globalThis.chrome?.storage?.session ? JSON.stringify(await chrome.storage.session.get()) : "{}")()`
	writeSession = `(async () => { await chrome.storage.session.set(%s); return "{}" })()`
)

// ReadExtensionSession reads an extension's chrome.storage.session: a JSON value by
// key; none where the extension may not use it.
func ReadExtensionSession(ctx context.Context, conn Conn, id string) (map[string]json.RawMessage, error) {
	text, err := inExtension(ctx, conn, id, readSession)
	if err != nil {
		return nil, err
	}
	var items map[string]json.RawMessage
	return items, json.Unmarshal([]byte(text), &items)
}

// WriteExtensionSession writes an extension's chrome.storage.session. It must run
// before the extension's own scripts do.
func WriteExtensionSession(ctx context.Context, conn Conn, id string, items map[string]json.RawMessage) error {
	values, err := json.Marshal(items)
	if err != nil {
		return err
	}
	_, err = inExtension(ctx, conn, id, fmt.Sprintf(writeSession, values))
	return err
}

// inExtension runs a script that gives a string in a hidden page of an
// extension.
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
