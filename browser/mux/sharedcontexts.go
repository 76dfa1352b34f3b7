package mux

import (
	"context"
	"sync"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/go-json-experiment/json"
)

// SharedContexts makes every browser context that a client creates the session's own profile:
// its pages are logged in where the session is. Without it, a new context is empty.
//
// Chrome has no such contexts, so the mux invents their IDs and answers the commands that
// manage them. Pages that other clients made are hidden from the client, because their contexts
// would be its own default one. The pages of a context close when the client disposes of it or
// disconnects.
type SharedContexts struct {
	// AllowWrites permits commands that damage the profile for other clients, such as
	// deleting its cookies; see sharedwrites.go.
	AllowWrites bool
}

// sharedContexts is the Mux's part for clients with shared contexts. The Mux calls it
//
//   - when a client connects (connect) and has left (forget, end),
//   - for a new target (targetCreated), and for the answer that says whose page it is (pageCreated),
//   - for each answer (answer), which comes after the events that are held for its client,
//   - after each event of its own session (releaseHeld, while holding).
//
// What concerns one client is its [contextSet], and what becomes of a command is in
// sharedcommands.go.
type sharedContexts struct {
	m       *Mux
	clients map[*contextSet]struct{} // of the connected clients; the Mux's lock guards it
	owners  pageOwners
	cookies addedCookies

	holding bool // a message is held for a client; only the pipe's reader uses it
}

func newSharedContexts(m *Mux) *sharedContexts {
	return &sharedContexts{m: m, clients: map[*contextSet]struct{}{}, owners: newPageOwners(&m.targets, m.requests)}
}

// connect gives a client shared contexts. The client is not attached yet.
func (s *sharedContexts) connect(c *client, o SharedContexts) {
	c.contexts = newContextSet(o, c)
	c.event = c.contexts.deliver
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.clients[c.contexts] = struct{}{}
}

// forget removes a client that has left. The Mux's lock is held.
func (s *sharedContexts) forget(p *peer) {
	delete(s.clients, p.contexts)
	s.owners.leave(p)
}

// end closes the pages of a client's contexts after the client has left. A page that Chrome is
// still creating closes when its answer comes.
func (s *sharedContexts) end(ctx context.Context, c *client) {
	// Chrome did not get all commands of the client, and does not answer the others.
	s.afterAnswers(func() { s.m.requests.take(func(w *pending) bool { return w.peer == &c.peer }) })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeDeadline)
	defer cancel()
	s.closePages(ctx, clientContext{peer: &c.peer})
	s.m.Permissions.end(ctx, clientContext{peer: &c.peer})
}

// afterAnswers calls f on the pipe's reader when Chrome has answered the commands that it has now.
// What was held because of them is released.
func (s *sharedContexts) afterAnswers(f func()) {
	// Chrome answers in order.
	s.m.command("", "Browser.getVersion", "{}", func(envelope) {
		f()
		if s.holding {
			s.releaseHeld()
		}
	}, nil)
}

// targetCreated records whose page a new target is. A page of a context that has ended closes. The
// Mux's lock is held. The caller runs the returned functions without it.
func (s *sharedContexts) targetCreated(info targetInfo) (notify []func()) {
	s.owners.add(info)
	if by, owned := s.owners.pages[info.TargetID]; owned && by.ended() {
		notify = append(notify, func() { s.closePage(info.TargetID) })
	}
	if info.Type == "tab" && len(s.clients) > 0 {
		// Some tabs never get a page, and their events must not be held for ever.
		s.owners.await(info.TargetID)
		notify = append(notify, func() {
			s.afterAnswers(func() {
				s.m.mu.Lock()
				defer s.m.mu.Unlock()
				s.owners.stopAwaiting(info.TargetID)
			})
		})
	}
	return notify
}

// pageCreated records whose page a client's Target.createTarget has made, from the answer.
func (s *sharedContexts) pageCreated(by clientContext, e *envelope) {
	var r struct {
		TargetID string `json:"targetId"`
	}
	if json.Unmarshal(e.result, &r) != nil {
		return
	}
	s.m.mu.Lock()
	s.owners.claim(r.TargetID, by)
	ended := by.ended()
	s.m.mu.Unlock()
	if ended {
		s.closePage(r.TargetID)
	}
}

// closeDeadline bounds how long the end of a context waits for its pages.
const closeDeadline = 5 * time.Second

// closePages closes the pages of a client's context, or without its ID of all its contexts. It
// waits until they have closed or ctx has ended.
func (s *sharedContexts) closePages(ctx context.Context, of clientContext) {
	s.m.mu.Lock()
	ids := s.owners.pagesOf(of)
	s.m.mu.Unlock()
	var closing sync.WaitGroup
	for _, id := range ids {
		closing.Go(func() {
			closed := s.m.TargetClosed(target.ID(id))
			s.closePage(id)
			select {
			case <-closed:
			case <-ctx.Done():
			case <-s.m.done:
			}
		})
	}
	closing.Wait()
}

// closePage closes a page. If it is the last one, another opens before.
func (s *sharedContexts) closePage(id string) {
	params, err := json.Marshal(map[string]string{"targetId": id})
	if err != nil {
		return
	}
	send := func() { s.m.command("", "Target.closeTarget", string(params), func(envelope) {}, nil) }
	if !s.m.closesLast(id) {
		send()
		return
	}
	s.m.openBlank(func(bad *cdpError) {
		if bad == nil {
			send()
		}
	})
}
