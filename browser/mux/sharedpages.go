package mux

import (
	"maps"

	"github.com/chromedp/cdproto/target"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maker is the client that made a page, by a command or by one of its pages.
type maker struct {
	peer    *peer
	context string // the made-up context of the page; "": the default one
}

// ended reports whether the context has ended. Its pages close.
func (by maker) ended() bool {
	return by.context != "" && (by.peer.left || !by.peer.shared.has(by.context))
}

// held is an event that waits until it is known who made a page, or an answer that comes after such
// an event: clients expect that an answer follows the events of its command.
type held struct {
	msg []byte
	e   envelope
	p   *pending // of an answer; else nil
}

// claim records who made a page, from the answer to Target.createTarget. A page of the default
// context stays when its client has left, and is then nobody's.
func (t *targets) claim(page string, by maker) {
	delete(t.unclaimed, page)
	if _, there := t.all[page]; there && (by.context != "" || !by.peer.left) {
		t.makers[page] = by
	}
}

// disown makes the pages of the default context nobody's that a client made.
func (t *targets) disown(p *peer) {
	maps.DeleteFunc(t.makers, func(_ string, by maker) bool { return by.peer == p && by.context == "" })
}

// attribute records who made a new page. The page of an opener is its opener's. Any other may
// be that of a Target.createTarget that Chrome has not answered; creating is the number of the
// last one, or 0. A page that a person opens in a new tab with Ctrl has no opener (Chromium 156);
// window.open and links with noopener have one.
func (t *targets) attribute(info targetInfo, creating uint64) {
	if info.Type != "page" {
		return
	}
	if by, made := t.makers[info.OpenerID]; made {
		t.makers[info.TargetID] = by
	} else if creating > 0 && info.OpenerID == "" {
		t.unclaimed[info.TargetID] = creating
	}
}

// attribute records who made a new target. A page of a context that has ended closes. The lock is
// held. The caller runs the returned functions without it.
func (m *Mux) attribute(info targetInfo) (notify []func()) {
	m.targets.attribute(info, m.requests.lastCreate())
	if by, made := m.targets.makers[info.TargetID]; made && by.ended() {
		notify = append(notify, func() { m.closePage(info.TargetID) })
	}
	if tab := m.targets.created; info.Type == "tab" && len(m.shared) > 0 {
		notify = append(notify, func() { awaitPage(m, tab) })
	} else if info.Type == "tab" {
		m.targets.pagedTabs = tab
	}
	return notify
}

// claim records which client made a page, from the answer to Target.createTarget.
func (m *Mux) claim(p *pending, e *envelope) {
	var r struct {
		TargetID string `json:"targetId"`
	}
	if p.peer.trusted || json.Unmarshal(e.result, &r) != nil {
		return
	}
	m.mu.Lock()
	by := maker{p.peer, p.context}
	m.targets.claim(r.TargetID, by)
	orphan := by.ended()
	m.mu.Unlock()
	if orphan {
		m.closePage(r.TargetID)
	}
}

// Temporary reports whether a page is in a client's shared context, with which it closes.
func (d *Driver) Temporary(id target.ID) bool {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	by, made := d.m.targets.makerOf(string(id))
	return made && by.context != ""
}

// list replaces the contexts of an answer to Target.getBrowserContexts by the client's.
func (s *sharedContexts) list(e *envelope) {
	var all fields
	if all.read(e.result) != nil {
		return
	}
	s.client.m.mu.Lock()
	ids := append([]string{}, s.contexts...)
	s.client.m.mu.Unlock()
	if all.set("browserContextIds", ids) == nil {
		e.result = all.write()
	}
}

// maxNested bounds how deep a frame or worker may be in others for makerOf to find its page.
const maxNested = 32

// makerOf returns who made a page, also for the tab that contains it and for its frames and
// workers.
func (t *targets) makerOf(id string) (maker, bool) {
	for range maxNested {
		info := t.all[id]
		switch by, made := t.makers[id]; {
		case made:
			return by, true
		case info.Type == "tab":
			id = t.pageOf(info)
		case info.ParentID != "":
			id = info.ParentID
		default:
			return maker{}, false
		}
	}
	return maker{}, false
}

// pageOf returns the ID of the page in a tab; "" if it is unknown; see tabOf.
func (t *targets) pageOf(tab targetInfo) string {
	for id, info := range t.all {
		if info.Type == "page" && info.order == tab.order+1 {
			return id
		}
	}
	return ""
}

// undecided reports whether it is not known yet who made a target. That is a new page while a
// client waits for an answer to Target.createTarget, and the tab of such a page. Chrome reports
// a tab directly before its page.
func (t *targets) undecided(id string) bool {
	info, known := t.all[id]
	if known && info.Type == "tab" {
		page := t.pageOf(info)
		if page == "" {
			return info.order == t.created && info.order > t.pagedTabs
		}
		id = page
	}
	_, unclaimed := t.unclaimed[id]
	return unclaimed
}

// hides reports whether a target is another client's: its page, what is in the page, or all that
// is in a browser context of Chrome. A page that may be another's is hidden too. s may be nil:
// then the client sees the pages of all. The Mux's lock is held.
func (s *sharedContexts) hides(id string) bool {
	if s == nil {
		return false
	}
	t := &s.client.m.targets
	if by, made := t.makerOf(id); made {
		return by.peer != &s.client.peer
	}
	info := t.all[id]
	return info.Subtype == prerender || t.madeContext(info.BrowserContextID) || t.undecided(id)
}

// prerender is the subtype of the target of a page that Chrome loads before a person opens it.
// Nothing but the session of its tab, on which Chrome attaches to it, says whose it is.
const prerender = "prerender"

// attributePrerender records whose page Chrome loads in the background. s is the session on which
// a client has got it.
func (t *targets) attributePrerender(s *session, info targetInfo) {
	if info.Subtype != prerender || s.target == "" {
		return
	}
	if _, made := t.makers[info.TargetID]; made {
		return
	}
	if by, made := t.makerOf(s.target); made {
		t.makers[info.TargetID] = by
	} else if _, there := t.all[info.TargetID]; there {
		t.makers[info.TargetID] = maker{peer: s.owner}
	}
}

// awaitPage decides about a new tab without a page once Chrome has answered another command, so
// that its events are not held for ever.
func awaitPage(m *Mux, tab int) {
	m.command("", "Browser.getVersion", "{}", func(envelope) {
		m.mu.Lock()
		m.targets.pagedTabs = max(m.targets.pagedTabs, tab)
		m.mu.Unlock()
		if m.holding.Load() {
			m.settle()
		}
	}, nil)
}

// hold holds back an event for the client while it is not known whose a page is. Later events of
// the client are held too, so that they stay in order. The Mux's lock is held.
func (s *sharedContexts) hold(msg []byte, e envelope, t targetEvent) bool {
	id := t.TargetInfo.TargetID
	if id == "" {
		id = t.TargetID
	}
	if len(s.held) == 0 && (id == "" || !s.client.m.targets.undecided(id)) {
		return false
	}
	s.held = append(s.held, held{msg: msg, e: e})
	s.client.m.holding.Store(true)
	return true
}

// heldOverhead is roughly what a held event takes in addition to its message, in bytes.
const heldOverhead = 256

// count counts a held event among the client's unread messages, which have a limit. Only the
// pipe's reader calls it.
func (s *sharedContexts) count(msg []byte) {
	n := len(msg) + heldOverhead
	s.heldBytes += n
	if !s.client.held.Take(n) || s.heldBytes > s.client.m.opts.QueueBytes {
		s.client.end(CloseTooSlow, tooSlow, nil, false)
	}
}

// answer passes on an answer, after the events that are held for its client.
func (m *Mux) answer(p *pending, msg []byte, e envelope) {
	if p.peer == nil || p.peer.shared == nil || !p.peer.shared.holdAnswer(p, msg, e) {
		p.answer(e)
	}
}

func (s *sharedContexts) holdAnswer(p *pending, msg []byte, e envelope) bool {
	s.client.m.mu.Lock()
	hold := len(s.held) > 0 && !s.client.left
	if hold {
		s.held = append(s.held, held{msg, e, p})
		s.client.m.holding.Store(true)
	}
	s.client.m.mu.Unlock()
	if hold {
		s.count(msg)
	}
	return hold
}

// settle routes the held events whose pages are decided now. Only the pipe's reader calls it.
func (m *Mux) settle() {
	var waiting []held
	m.mu.Lock()
	oldest := m.requests.oldestCreate()
	maps.DeleteFunc(m.targets.unclaimed, func(_ string, last uint64) bool { return oldest == 0 || last < oldest })
	m.holding.Store(false)
	for s := range m.shared {
		waiting, s.held = append(waiting, s.held...), nil
		s.client.held.Release(s.heldBytes)
		s.heldBytes = 0
	}
	m.mu.Unlock()
	for _, h := range waiting {
		if h.p != nil {
			m.answer(h.p, h.msg, h.e)
		} else {
			m.dispatch(h.msg, h.e)
		}
	}
}

// stamp puts the made-up context of the client's page into a description of the page, or
// returns it unchanged. s may be nil. The Mux's lock is held.
func (s *sharedContexts) stamp(info jsontext.Value) jsontext.Value {
	if s == nil {
		return info
	}
	var is struct {
		TargetID string `json:"targetId"`
	}
	if json.Unmarshal(info, &is) != nil {
		return info
	}
	by, made := s.client.m.targets.makerOf(is.TargetID)
	if !made || by.peer != &s.client.peer || by.context == "" {
		return info
	}
	var all fields
	if all.read(info) != nil || all.set("browserContextId", by.context) != nil {
		return info
	}
	return all.write()
}

// stampMember stamps the targetInfo of an event's parameters, or of an answer.
func (s *sharedContexts) stampMember(params []byte) ([]byte, bool) {
	var all fields
	if all.read(params) != nil || all["targetInfo"] == nil {
		return params, false
	}
	s.client.m.mu.Lock()
	stamped := s.stamp(all["targetInfo"])
	s.client.m.mu.Unlock()
	all["targetInfo"] = stamped
	return all.write(), true
}
