package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stasisd/stasis/client"
)

// inLiveView creates a session, shows the person its live view and returns when the person
// wants to save it. If the login is discarded, so is the session. The error is a sessionOver
// if the session has ended elsewhere.
func (l *handLogin) inLiveView(ctx context.Context) error {
	// A separate call opens the first page, because its answer says whether the page loaded.
	create := map[string]any{"user_id": l.user, "start_url": "about:blank", "idle_timeout_seconds": loginIdle}
	if !l.Fresh {
		create["restore_default_environment_from_user_id"], create["if_missing"] = l.user, "fresh"
	}
	if l.Timeout > 0 {
		create["max_lifetime_seconds"] = int64((l.Timeout + time.Second - 1) / time.Second)
	}
	var s struct {
		ID       string `json:"session_id"`
		AgentURL string `json:"agent_url"`
	}
	if err := l.callJSON(ctx, http.MethodPost, "/v1/sessions", create, &s); err != nil {
		return namesArgument(err)
	}
	l.session = s.ID
	if s.AgentURL == "" {
		_ = l.end(ctx, client.EndOptions{}, nil) // the error below is what counts
		return exitError{exitUsage, "--key: the key may not drive sessions of " + l.user}
	}
	closed, err := l.showLink(ctx, s.AgentURL+forLogin)
	if err != nil {
		return errors.Join(err, l.end(ctx, client.EndOptions{}, nil))
	}
	defer closed()
	err = l.awaitSave(ctx)
	if err == nil {
		// The live view may have saved it, and the watch not have seen that yet.
		if over, failed := (sessionWatch{&l.remoteDaemon, l.session, l.period}).over(ctx); failed == nil && over != "" {
			return sessionOver(over)
		}
	}
	if errors.Is(err, errDiscard) || errors.Is(err, errInputEnded) {
		if failed := l.end(ctx, client.EndOptions{}, nil); failed != nil {
			return failed
		}
	}
	return err
}

// forLogin makes the page of the live view ask before it is closed without a save.
const forLogin = "#login"

// showLink opens the live view in the person's browser if it can, and prints its address.
func (l *handLogin) showLink(ctx context.Context, link string) (closed func(), err error) {
	closed, lead := func() {}, "Open this address in a browser and log in:"
	if !l.NoOpen && onDesktop() {
		opened, err := openLink(ctx, link)
		if err != nil {
			return nil, err
		}
		if opened != nil {
			closed, lead = opened, "Log in in the browser window that opens. If none does, open this address:"
		}
	}
	l.say("%s\n\n  %s\n\n", lead, link)
	return closed, nil
}

// awaitSave opens the first page and returns nil when the person wants to save.
func (l *handLogin) awaitSave(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over, opened := make(chan error, 1), make(chan error, 1)
	go func() { over <- sessionWatch{&l.remoteDaemon, l.session, l.period}.wait(ctx) }()
	go func() { opened <- l.openFirstPage(ctx) }()
	return l.await(ctx, waiting{over: over, opened: opened, enter: true,
		prompt: "Press Enter to save the session as the default of " + l.user + ", or choose \"Save as default\" in the live view. Press Ctrl-C to discard it.\n"})
}

// waiting is what a login waits for.
type waiting struct {
	over   <-chan error // its value, which is not nil, ends the login
	opened <-chan error // what became of the first page; nil: unknown
	enter  bool         // Enter means that the person is done
	prompt string
}

// await waits until the person is done, and asks before it discards the login. Its errors are
// errDiscard, errInputEnded and those of w.
func (l *handLogin) await(ctx context.Context, w waiting) error {
	l.say("%s", w.prompt)
	did := l.did // nil once the person is done, and only the first page is waited for
	for did != nil || w.opened != nil {
		select {
		case err := <-w.over:
			return err
		case err := <-w.opened:
			w.opened = nil
			if err := l.firstPage(ctx, err); err != nil {
				return err
			}
		case d := <-did:
			switch {
			case d.kind == typed && w.enter:
				did = nil
				continue
			case d.kind == typed:
				continue
			case d.kind == inputEnded && !l.terminal && !w.enter:
				continue // nothing was expected from it
			case d.kind == inputEnded && !l.terminal:
				return errInputEnded
			case d.kind == termination || !l.terminal:
				return errDiscard
			}
			a, err := l.ask("Nothing is saved yet. Discard the login?", w.over)
			if err != nil {
				return err
			}
			if a != answeredNo {
				return errDiscard
			}
			l.say("%s", w.prompt)
		}
	}
	return nil
}

// openFirstPage sends the tab in front, which is blank, to the site.
func (l *handLogin) openFirstPage(ctx context.Context) error {
	return l.callJSON(ctx, http.MethodPost, "/v1/sessions/"+url.PathEscape(l.session)+"/navigate", map[string]any{"url": l.site.String()}, nil)
}

// firstPage reports to the person that the first page could not be opened. If the daemon
// refuses the address, it ends the session.
func (l *handLogin) firstPage(ctx context.Context, err error) error {
	var refused *client.Error
	switch {
	case err == nil || !errors.As(err, &refused):
		return nil // if the daemon does not answer, the watch finds out
	case strings.Contains(refused.Message, "net::ERR_ABORTED"):
		return nil // the person, or the page itself, went to another page before it had loaded
	case refused.Code == "timeout":
		l.say("%s has not answered yet.\n", l.site.Host)
	case refused.Code == "browser_failed":
		_, why, _ := strings.Cut(refused.Message, "the page could not be opened: ")
		l.unopened = "the page " + l.site.String() + " could not be opened"
		if why != "" {
			l.unopened += ": " + why
		}
		l.say("%s. Check the address, or open another one in the live view.\n", sentence(l.unopened))
		if strings.Contains(why, "ERR_SSL_PROTOCOL_ERROR") && !strings.Contains(l.Site, "://") {
			l.say("The site may have no https. Then open http://%s%s there.\n", l.site.Host, l.site.RequestURI())
		}
	case refused.Code == "unsupported" || refused.Code == "invalid_field":
		return errors.Join(namesArgument(err), l.end(ctx, client.EndOptions{}, nil))
	}
	return nil
}

// end ends the session. Without options it is discarded.
func (l *handLogin) end(ctx context.Context, o client.EndOptions, out any) error {
	return l.call(ctx, http.MethodDelete, client.EndPath(l.session, o), nil, out)
}
