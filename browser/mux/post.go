package mux

import (
	"context"
	"errors"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/fault"
)

// Post sends a command to one of the driver's sessions, or to the browser's own for "",
// and does not wait for the answer. A target that waits for its debugger answers most
// commands only once it runs, but it processes them in the order in which they were sent.
// Chrome's answer is dropped, even if it is an error.
func (d *Driver) Post(ctx context.Context, session target.SessionID, method string, params any) error {
	return d.PostAnswered(ctx, session, method, params, func([]byte) {})
}

// PostAnswered is Post that calls answer with the result, unless Chrome answers with an error
// or not at all. The pipe's reader calls answer, so answer must not wait. It must not keep
// its argument.
func (d *Driver) PostAnswered(ctx context.Context, session target.SessionID, method string, params any, answer func(result []byte)) error {
	var raw []byte
	if params != nil {
		var err error
		if raw, err = jsonv2.Marshal(params, jsonv2.AllowInvalidUTF8(true)); err != nil {
			return fault.Wrap(err, fault.Internal, "mux.post "+method, "")
		}
	}
	var name []byte
	if session != "" {
		name = []byte(session)
	}
	s := d.m.lookup(&d.peer, name)
	if s == nil {
		return errors.Join(errDetached(), d.m.Err())
	}
	id, err := d.m.requests.register(&pending{peer: &d.peer, session: s.id, method: method, answer: func(e envelope) {
		if e.err == nil {
			answer(e.result)
		}
	}})
	if err != nil {
		return err
	}
	if err := d.lane.send(ctx, request(id, s.id, []byte(method), raw)); err != nil {
		d.m.requests.forget(id)
		return err
	}
	return nil
}

// command sends a message of the mux. session "" is the pipe's root session.
func (m *Mux) command(session, method, params string, answer func(envelope), lost func()) {
	id, err := m.requests.register(&pending{session: session, method: method, answer: answer, lost: lost})
	if err != nil {
		if lost != nil {
			lost()
		}
		return
	}
	m.own.post(request(id, session, []byte(method), []byte(params)))
}
