package mux

import (
	"maps"

	"github.com/chromedp/cdproto/target"
)

// clientContext is a browser context of a client: one of its shared contexts, or with "" as ID the
// default one.
type clientContext struct {
	peer *peer
	id   string
}

// in reports whether c is a shared context of the same client as other, and if other has an ID,
// that one.
func (c clientContext) in(other clientContext) bool {
	return c.peer == other.peer && c.id != "" && (other.id == "" || c.id == other.id)
}

// ended reports whether a shared context has ended. Its pages close. The Mux's lock is held.
func (c clientContext) ended() bool {
	return c.id != "" && (c.peer.left || !c.peer.contexts.has(c.id))
}

// pageOwners records whose the pages are that clients made, by a command or by one of their pages.
// Chrome reports a page before it answers the Target.createTarget that made it, so for a moment
// nobody knows whose a new page is. The Mux's lock guards it.
type pageOwners struct {
	targets  *targets
	requests *requests

	pages     map[string]clientContext // by target ID
	unclaimed map[string]uint64        // new pages that may be those of unanswered creations: the number of the last one
	newTab    string                   // the tab that was created last, if its page may come next; else ""
}

func newPageOwners(t *targets, r *requests) pageOwners {
	return pageOwners{targets: t, requests: r, pages: map[string]clientContext{}, unclaimed: map[string]uint64{}}
}

// add records the owner of a new page. A page with an opener has the opener's owner. Any other may be
// that of a Target.createTarget that Chrome has not answered. A page that a person opens in a new tab with
// Ctrl has no opener (Chromium 156); window.open and links with noopener have one.
func (o *pageOwners) add(info targetInfo) {
	o.newTab = "" // Chrome reports a tab directly before its page
	if info.Type != "page" {
		return
	}
	if by, owned := o.pages[info.OpenerID]; owned {
		o.pages[info.TargetID] = by
	} else if _, last := o.requests.unansweredCreations(); last > 0 && info.OpenerID == "" {
		o.unclaimed[info.TargetID] = last
	}
}

// addPrerender records whose page Chrome loads in the background. s is the session on which a
// client has got it.
func (o *pageOwners) addPrerender(s *session, info targetInfo) {
	if info.Subtype != prerender || s.target == "" {
		return
	}
	if _, owned := o.pages[info.TargetID]; owned {
		return
	}
	if by, owned := o.of(s.target); owned {
		o.pages[info.TargetID] = by
	} else if _, there := o.targets.all[info.TargetID]; there {
		o.pages[info.TargetID] = clientContext{peer: s.owner}
	}
}

// prerender is the subtype of the target of a page that Chrome loads before a person opens it.
// Nothing but the session of its tab, on which Chrome attaches to it, says whose it is.
const prerender = "prerender"

// claim records the owner of a page that a Target.createTarget has made. A page of the default context
// stays when its client leaves, and then has no owner.
func (o *pageOwners) claim(page string, by clientContext) {
	delete(o.unclaimed, page)
	if _, there := o.targets.all[page]; there && (by.id != "" || !by.peer.left) {
		o.pages[page] = by
	}
}

// await records that the page of a new tab may come next.
func (o *pageOwners) await(tab string) { o.newTab = tab }

// stopAwaiting records that a tab gets no page any more.
func (o *pageOwners) stopAwaiting(tab string) {
	if o.newTab == tab {
		o.newTab = ""
	}
}

// decide gives up on new pages that no unanswered creation can have made: they have no owner. Chrome
// had got the creations before the page.
func (o *pageOwners) decide() {
	oldest, _ := o.requests.unansweredCreations()
	maps.DeleteFunc(o.unclaimed, func(_ string, last uint64) bool { return oldest == 0 || last < oldest })
}

// remove forgets a target that has ended.
func (o *pageOwners) remove(id string) {
	delete(o.pages, id)
	delete(o.unclaimed, id)
	o.stopAwaiting(id)
}

// leave removes the owner of a client's pages in the default context.
func (o *pageOwners) leave(p *peer) {
	maps.DeleteFunc(o.pages, func(_ string, by clientContext) bool { return by.peer == p && by.id == "" })
}

// pagesOf returns the pages in a shared context, or without its ID in all of the client's.
func (o *pageOwners) pagesOf(of clientContext) (ids []string) {
	for id, by := range o.pages {
		if by.in(of) {
			ids = append(ids, id)
		}
	}
	return ids
}

// maxNested bounds how deep a frame or worker may be in others for pageOwners.of to find its page.
const maxNested = 32

// of returns the owner of a page, also for the tab that contains it and for its frames and workers.
func (o *pageOwners) of(id string) (clientContext, bool) {
	for range maxNested {
		info := o.targets.all[id]
		switch by, owned := o.pages[id]; {
		case owned:
			return by, true
		case info.Type == "tab":
			id = o.targets.pageOf(info)
		case info.ParentID != "":
			id = info.ParentID
		default:
			return clientContext{}, false
		}
	}
	return clientContext{}, false
}

// undecided reports whether the owner of a page, or of the page of a tab, is not known yet.
func (o *pageOwners) undecided(id string) bool {
	if info := o.targets.all[id]; info.Type == "tab" {
		page := o.targets.pageOf(info)
		if page == "" {
			return id == o.newTab
		}
		id = page
	}
	_, unclaimed := o.unclaimed[id]
	return unclaimed
}

// Temporary reports whether a page is in a client's shared context, with which it closes.
func (d *Driver) Temporary(id target.ID) bool {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	by, owned := d.m.shared.owners.of(string(id))
	return owned && by.id != ""
}
