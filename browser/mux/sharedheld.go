package mux

// Chrome reports a page before it answers the command that made it. While it is not known whose a
// page is, its events wait, and so does everything later for the same client: clients expect
// Chrome's order, and an answer after the events of its command.

// held is a message of Chrome that waits.
type held struct {
	msg []byte
	e   envelope
	p   *pending // of an answer; else nil
}

// mustHold reports whether an event must wait. The Mux's lock is held.
func (x *contextSet) mustHold(t targetEvent) bool {
	id := t.TargetInfo.TargetID
	if id == "" {
		id = t.TargetID
	}
	return len(x.held) > 0 || id != "" && x.client.m.shared.owners.undecided(id)
}

// heldOverhead is roughly what a held message takes in addition to its bytes.
const heldOverhead = 256

// hold keeps a message until releaseHeld. It counts among the client's unread messages, which have
// a limit. Only the pipe's reader calls it.
func (s *sharedContexts) hold(x *contextSet, h held) {
	n := len(h.msg) + heldOverhead
	x.held, x.heldBytes = append(x.held, h), x.heldBytes+n
	s.holding = true
	if !x.client.held.Take(n) || x.heldBytes > s.m.opts.QueueBytes {
		x.client.end(CloseTooSlow, tooSlow, nil, false)
	}
}

// answer passes on the answer to a request, after the events that are held for its client. What is
// held for the page of a creation comes before the creation's answer. Only the pipe's reader calls it.
func (s *sharedContexts) answer(p *pending, msg []byte, e envelope) {
	if p.creates() && s.holding {
		s.releaseHeld()
	}
	s.pass(p, msg, e)
}

// pass passes on an answer, or holds it.
func (s *sharedContexts) pass(p *pending, msg []byte, e envelope) {
	if p.peer != nil && p.peer.contexts != nil && len(p.peer.contexts.held) > 0 {
		s.m.mu.Lock()
		left := p.peer.left
		s.m.mu.Unlock()
		if !left {
			s.hold(p.peer.contexts, held{msg, e, p})
			return
		}
	}
	p.answer(e)
}

// releaseHeld passes on what is held, as far as it is known now whose the pages are. Only the pipe's
// reader calls it.
func (s *sharedContexts) releaseHeld() {
	var waiting []held
	s.m.mu.Lock()
	s.owners.decide()
	for x := range s.clients {
		waiting = append(waiting, x.held...)
		x.client.held.Release(x.heldBytes)
		x.held, x.heldBytes = nil, 0
	}
	s.m.mu.Unlock()
	s.holding = false
	for _, h := range waiting {
		if h.p != nil {
			s.pass(h.p, h.msg, h.e)
		} else {
			s.m.dispatch(h.msg, h.e)
		}
	}
}
