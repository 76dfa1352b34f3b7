package mux

// sessions holds the CDP sessions of all peers, by ID. The Mux's lock guards it.
type sessions struct {
	all      map[string]*session
	requests *requests
}

// leave removes the sessions of a peer.
func (t *sessions) leave(p *peer) {
	for id, s := range t.all {
		if s.owner == p {
			delete(t.all, id)
		}
	}
}

// attached reports whether a peer has a session of a target.
func (t *sessions) attached(p *peer, target string) bool {
	for _, s := range t.all {
		if s.owner == p && s.target == target {
			return true
		}
	}
	return false
}

// below reports whether a session is top or was attached on it, at any depth.
func (t *sessions) below(id string, top *session) bool {
	for s := t.all[id]; s != nil; s = s.parent {
		if s == top {
			return true
		}
	}
	return false
}

// adopt makes the owner of parent the owner of a child session too.
func (t *sessions) adopt(parent *session, id, target string) {
	if old := t.all[id]; old != nil {
		return // the event came before the answer
	}
	s := &session{id: id, owner: parent.owner, target: target, parent: parent, children: map[*session]struct{}{}}
	parent.children[s] = struct{}{}
	t.all[id] = s
}

// remove removes a session that Chrome detached, with all sessions that were attached on
// it. Chrome sends no events for those. The caller runs the returned functions without
// the lock. They notify the owners, as Chrome answers no more requests on such sessions.
func (t *sessions) remove(s *session) (notify []func()) {
	delete(t.all, s.id)
	if s.parent != nil {
		delete(s.parent.children, s)
	}
	for _, w := range t.requests.take(func(w *pending) bool { return w.session == s.id }) {
		if w.lost != nil {
			notify = append(notify, w.lost)
		}
	}
	if s.owner.ended != nil {
		notify = append(notify, func() { s.owner.ended(s.id) })
	}
	if s.id == s.owner.root {
		s.owner.root = ""
		notify = append(notify, s.owner.gone)
	}
	for c := range s.children {
		notify = append(notify, t.remove(c)...)
	}
	return notify
}

// find returns the session for a peer's message: the root session if id is nil, else one
// that the peer owns. The ID of the root session itself is refused: a peer does not know
// it and can only have guessed it.
func (t *sessions) find(p *peer, id []byte) *session {
	if id == nil {
		return t.all[p.root]
	}
	if s := t.all[string(id)]; s != nil && s.owner == p && s.id != p.root {
		return s
	}
	return nil
}
