package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
)

// stub is a hidden tab whose every request is answered here with an empty
// page, so that an origin's storage can be written without the site hearing
// of it. Service workers are passed by: one that the datadir brought back
// would answer in the stub's place.
type stub struct {
	conn    Conn
	id      target.ID
	session cdp.Session
	stop    context.CancelFunc
	done    sync.WaitGroup
	body    atomic.Pointer[string] // of the tab's own document; its frames are empty
}

func openStub(ctx context.Context, conn Conn) (*stub, error) {
	s, err := openBlank(ctx, conn)
	if err != nil {
		return nil, err
	}
	s.answer(ctx)
	if _, err := cdp.Call(ctx, s.session, fetch.Enable, fetch.EnableParams{}); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

// openBlank opens a hidden tab that service workers do not see.
func openBlank(ctx context.Context, conn Conn) (*stub, error) {
	id, err := conn.OpenHidden(ctx)
	if err != nil {
		return nil, err
	}
	s := &stub{conn: conn, id: id, stop: func() {}}
	if s.session, _, err = attach(ctx, conn, id); err != nil {
		s.close(ctx)
		return nil, err
	}
	session := s.session
	// Chrome heeds the bypass only where the network domain is enabled.
	if _, err := cdp.Call(ctx, session, network.Enable, network.EnableParams{}); err != nil {
		s.close(ctx)
		return nil, err
	}
	if _, err := cdp.Call(ctx, session, network.SetBypassServiceWorker, network.SetBypassServiceWorkerParams{Bypass: true}); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

// answer fulfils every request of the stub until close.
func (s *stub) answer(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	requests := cdp.Events(ctx, s.session, fetch.RequestPaused)
	s.done.Go(func() {
		for paused, err := range requests {
			if err != nil {
				return
			}
			body := "<!doctype html>"
			if inner := s.body.Load(); inner != nil && paused.FrameID == cdp.FrameID(s.id) {
				body += *inner
			}
			// A failed answer shows as a failed navigation.
			_, _ = cdp.Call(ctx, s.session, fetch.FulfillRequest, fetch.FulfillRequestParams{
				RequestID: paused.RequestID, ResponseCode: 200,
				ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}},
				Body:            []byte(body),
			})
		}
	})
}

// close removes the tab and waits for the answering goroutine.
func (s *stub) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveDeadline)
	defer cancel()
	// Of a Chrome that has died there is nothing left to close.
	_, _ = cdp.Call(ctx, s.conn, target.CloseTarget, target.CloseTargetParams{TargetID: s.id})
	s.stop()
	s.done.Wait()
}

// layItems makes localStorage hold exactly a list of items. An item that is
// there already is left alone, for half of a surrogate pair does not pass CDP:
// it was read as U+FFFD, and the datadir has it as the site wrote it.
const layItems = `(() => {
  const items = new Map(%s.map(i => [i.key, i.value]));
  const keys = Array.from({length: localStorage.length}, (_, i) => localStorage.key(i));
  for (const key of keys) {
    const said = key.toWellFormed();
    if (items.get(said) === localStorage.getItem(key).toWellFormed()) items.delete(said);
    else localStorage.removeItem(key);
  }
  for (const [key, value] of items) localStorage.setItem(key, value);
})()`

// write makes the area of a storage key hold exactly the area's items.
func (s *stub) write(ctx context.Context, area state.Area) error {
	key, ok := state.ParseStorageKey(area.StorageKey)
	if !ok {
		return errNoKey
	}
	if !webOrigin(key.Origin) || key.TopLevelSite != "" && !webOrigin(key.TopLevelSite) {
		return errNotWeb
	}
	items, err := json.Marshal(area.Items)
	if err != nil {
		return err
	}
	session, world, detach, err := s.visit(ctx, key)
	if err != nil {
		return err
	}
	defer detach()
	return evaluate(ctx, session, world, fmt.Sprintf(layItems, items))
}

// evaluate runs a script and reports how it failed, in words without values.
func evaluate(ctx context.Context, session cdp.Session, world runtime.ExecutionContextID, script string) error {
	yes := true
	res, err := cdp.Call(ctx, session, runtime.Evaluate, runtime.EvaluateParams{
		Expression: script, ContextID: world, AwaitPromise: &yes})
	if err != nil {
		return err
	}
	if res.ExceptionDetails != nil {
		return errors.New("the storage refused the items")
	}
	return nil
}
