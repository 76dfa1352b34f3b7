package mux

import (
	"context"
	"errors"

	"github.com/chromedp/cdproto/target"
)

// handle processes one message of the client. It returns errors of the pipe only. An
// invalid message is answered with a CDP error.
func (c *client) handle(ctx context.Context, msg []byte) error {
	c.m.Clients.messages.Add(1)
	e, bad := parseRequest(msg)
	if bad != nil {
		c.push(failure(e.id, e.session, bad))
		return nil
	}
	s := c.m.lookup(&c.peer, e.session)
	if s == nil {
		c.push(failure(e.id, e.session, &cdpError{codeNoSession, "Session with given id not found."}))
		return nil
	}
	method := string(e.method)
	if method == "Browser.close" {
		// The browser belongs to the session, so only the client's connection closes.
		e.result = []byte("{}")
		c.push(reply(e.id, e, string(e.session)))
		c.end(CloseNormal, "closed by the client", nil, true)
		return nil
	}
	method, params, bad := c.checkPolicy(s, method, e.params)
	if method != string(e.method) {
		e.method = []byte(method)
	}
	if bad == nil {
		bad = c.checkEntry(ctx, s, method, params)
	}
	if bad == nil {
		bad = c.prepareDrop(ctx, s, method, params)
	}
	if bad != nil {
		c.push(failure(e.id, e.session, bad))
		return nil
	}
	shared := "" // the shared context that the command names
	if c.contexts != nil || grants(method) && c.m.Permissions.shares() {
		var done bool
		if params, shared, done = c.prepareShared(ctx, e, s, method, params); done {
			return nil
		}
	}
	return c.forward(ctx, e, s, params, shared)
}

// forward sends a message on to Chrome. The answer goes to the client under the client's
// own ID. shared is the shared context of a new page.
func (c *client) forward(ctx context.Context, e envelope, s *session, params []byte, shared string) error {
	id, asked := e.id, string(e.session)
	params, created, bad := c.prepareCreate(string(e.method), params)
	if bad != nil {
		c.push(failure(id, e.session, bad))
		return nil
	}
	answer := func(r envelope) { c.push(reply(id, r, asked)) }
	p := &pending{peer: &c.peer, session: s.id, method: string(e.method), answer: answer}
	if created != nil {
		p.answer = func(r envelope) { created(r, answer) }
	}
	p.keep(params)
	if p.method == "Target.createTarget" {
		p.kept.by = clientContext{&c.peer, shared}
	}
	if p.method == "Runtime.runIfWaitingForDebugger" {
		p.answer = c.onResumed(s, answer)
	}
	if p.method == "Target.setAutoAttach" || p.method == "Target.setDiscoverTargets" {
		c.m.mu.Lock()
		s.watch.record(p.method, params)
		c.m.mu.Unlock()
	}
	c.m.mu.Lock()
	s.answers.record(p.method, params)
	c.m.mu.Unlock()
	send := func() (int64, []byte, error) {
		n, err := c.m.requests.register(p)
		return n, request(n, s.id, e.method, params), err
	}
	if c.closesLastPage(s, p.method, params) {
		// Hold the message until another page exists.
		c.m.openBlank(func(bad *cdpError) {
			if bad != nil {
				c.push(failure(id, e.session, bad))
				return
			}
			if _, msg, err := send(); err == nil {
				c.lane.post(msg)
			}
		})
		return nil
	}
	if resumed := c.resumeHook(s, p.method); resumed != nil {
		resumed(target.ID(s.target), func() {
			if _, msg, err := send(); err == nil {
				c.lane.post(msg)
			}
		})
		return nil
	}
	n, msg, err := send()
	if err != nil {
		return err
	}
	if err := c.lane.send(ctx, msg); err != nil {
		c.m.requests.forget(n)
		return err
	}
	return nil
}

// checkPolicy checks a client's command against the policy. It returns the method and the
// parameters to send, or the error to answer with.
func (c *client) checkPolicy(s *session, method string, params []byte) (string, []byte, *cdpError) {
	m := c.m
	m.mu.Lock()
	info := m.targets.all[s.target]
	_, redirecting := m.targets.redirecting[s.target]
	redirecting = redirecting || m.Addresses.foreign(info.URL)
	context := info.BrowserContextID
	if !m.targets.madeContext(context) {
		context = ""
	}
	m.mu.Unlock()
	if redirecting && !allowedOnForeign(method) {
		return "", nil, refusal(method, errors.New("the page is one that clients may not open"))
	}
	visible := func(target string) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		info := m.targets.all[target]
		info.TargetID = target
		return !m.hiddenFrom(s.owner, info)
	}
	checked := &call{method: method, context: context, visible: visible, extensions: m.Addresses}
	params, bad := m.opts.Policy.apply(checked, params)
	if bad != nil && bad.code == codeRefused {
		m.noteRefused(s.owner, method)
	}
	return checked.method, params, bad
}
