package hiddentab

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
)

// ErrNoKey is the error for a storage key that cannot be opened by name, such as that of
// an opaque origin.
var ErrNoKey = errors.New("the storage key has a nonce or an opaque site, so no new page can have it")

// errNotWeb is the error for a storage key that no web page has: a document may come from
// an upload.
var errNotWeb = errors.New("not an http: or https: origin")

// errScript is the error for a script that threw an exception. It contains no value of
// the page.
var errScript = errors.New("the script failed")

// parseKey parses a storage key of an http: or https: origin.
func parseKey(storageKey string) (state.StorageKey, error) {
	key, ok := state.ParseStorageKey(storageKey)
	switch {
	case !ok:
		return key, ErrNoKey
	case !webOrigin(key.Origin) || key.TopLevelSite != "" && !webOrigin(key.TopLevelSite):
		return key, errNotWeb
	}
	return key, nil
}

func webOrigin(storageKey string) bool {
	u, err := url.Parse(storageKey)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// Run runs a script in a page or frame that has the storage key, and decodes its value
// into out, which may be nil. It awaits a promise.
func (t *Tab) Run(ctx context.Context, key state.StorageKey, script string, out any) error {
	session, world, detach, err := t.visit(ctx, key)
	if err != nil {
		return err
	}
	defer detach()
	return evaluate(ctx, session, world, script, out)
}

// RunAt is Run for a storage key in Chrome's notation. A key without a name is
// [ErrNoKey]; one that no web page has is another error.
func (t *Tab) RunAt(ctx context.Context, storageKey, script string, out any) error {
	key, err := parseKey(storageKey)
	if err != nil {
		return err
	}
	return t.Run(ctx, key, script, out)
}

// Evaluate runs a script in the document that the tab shows; see Run.
func (t *Tab) Evaluate(ctx context.Context, script string, out any) error {
	return evaluate(ctx, t.session, 0, script, out)
}

func evaluate(ctx context.Context, session cdp.Session, world runtime.ExecutionContextID, script string, out any) error {
	yes := true
	p := runtime.EvaluateParams{Expression: script, ContextID: world, AwaitPromise: &yes}
	if out != nil {
		p.ReturnByValue = &yes
	}
	res, err := cdp.Call(ctx, session, runtime.Evaluate, p)
	switch {
	case err != nil:
		return err
	case res.ExceptionDetails != nil:
		return errScript
	case out == nil:
		return nil
	}
	return json.Unmarshal(res.Result.Value, out)
}

// Attach opens a session to a target. detach ends the session, even after the end of ctx.
func Attach(ctx context.Context, conn Conn, id target.ID) (s cdp.Session, detach func(), err error) {
	flatten := true
	res, err := cdp.Call(ctx, conn, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &flatten})
	if err != nil {
		return nil, nil, err
	}
	return conn.Session(res.SessionID), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeDeadline)
		defer cancel()
		// A closed target is detached already.
		_, _ = cdp.Call(ctx, conn, target.DetachFromTarget, target.DetachFromTargetParams(res))
	}, nil
}
