package mux

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
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

// sharedContexts are the contexts of one client. The Mux's lock guards them.
type sharedContexts struct {
	SharedContexts
	client    *client
	prefix    string // of the IDs, so that no two clients have the same
	made      int
	contexts  []string
	denied    []string // contexts that cancel downloads
	held      []held
	heldBytes int // only the pipe's reader uses it

	foreignDownloads map[string]struct{} // GUIDs of downloads whose events are hidden
}

// maxSharedContexts bounds the contexts of one client at the same time.
const maxSharedContexts = 1024

func newSharedContexts(o SharedContexts, c *client) *sharedContexts {
	return &sharedContexts{SharedContexts: o, client: c, prefix: rand.Text(), foreignDownloads: map[string]struct{}{}}
}

// create returns the ID of a new context, or "" if the client has too many.
func (s *sharedContexts) create() string {
	if len(s.contexts) >= maxSharedContexts {
		return ""
	}
	s.made++
	id := fmt.Sprintf("%s%06X", s.prefix, s.made) // Chrome's own IDs are upper-case too
	s.contexts = append(s.contexts, id)
	return id
}

func (s *sharedContexts) has(id string) bool { return slices.Contains(s.contexts, id) }

// sharedCommand is a client's command while the mux prepares it for the session's own profile.
type sharedCommand struct {
	*client
	ctx     context.Context
	e       envelope
	session *session
	method  string
	params  fields
	context string // the made-up context that the command names; "" for the default one
}

// answer answers the command without Chrome.
func (c *sharedCommand) answer(result string) {
	c.push(reply(c.e.id, envelope{result: []byte(result)}, string(c.e.session)))
}

func (c *sharedCommand) fail(bad *cdpError) { c.push(failure(c.e.id, c.e.session, bad)) }

// prepareShared prepares a command of a client with shared contexts. done means that the
// command needs no further processing. context is the made-up context that it named.
func (c *client) prepareShared(ctx context.Context, e envelope, s *session, method string, params []byte) (out []byte, context string, done bool) {
	if c.shared.refusesScript(method, params) {
		c.push(reply(e.id, thrown(errSharedState), string(e.session)))
		return nil, "", true
	}
	prepare, special := sharedCommands[method]
	if !special && !clears[method] && !bytes.Contains(params, []byte("browserContextId")) {
		return params, "", false
	}
	call := &sharedCommand{client: c, ctx: ctx, e: e, session: s, method: method}
	if err := call.params.read(params); err != nil {
		// Chrome might run a command that has a name twice.
		call.fail(&cdpError{codeParams, "Invalid parameters: " + err.Error()})
		return nil, "", true
	}
	bad := call.takeContext()
	if bad == nil {
		bad = c.shared.refuses(call)
	}
	if bad != nil {
		call.fail(bad)
		return nil, "", true
	}
	if special && prepare(call) {
		return nil, "", true
	}
	return call.params.write(), call.context, false
}

// sharedCommands are the commands that need more than the removal of the context. A function
// returns true if it answers the command. It may wait, but not for other commands of the client.
var sharedCommands = map[string]func(*sharedCommand) bool{
	"Target.createBrowserContext":  (*sharedCommand).createContext,
	"Target.disposeBrowserContext": (*sharedCommand).disposeContext,
	"Target.createTarget":          (*sharedCommand).openWindow,
	"Browser.grantPermissions":     (*sharedCommand).sharePermissions,
	"Browser.setPermission":        (*sharedCommand).sharePermissions,
	"Browser.resetPermissions":     (*sharedCommand).sharePermissions,
	"Browser.setDownloadBehavior":  (*sharedCommand).chooseDownloads,
	"Storage.setCookies":           (*sharedCommand).checkCookies,
	"Network.setCookies":           (*sharedCommand).checkCookies,
	"Network.setCookie":            (*sharedCommand).checkCookies,
	"Network.deleteCookies":        (*sharedCommand).checkCookies,
}

// openWindow opens a new page in a new window. A page in the background of another one's
// window paints nothing.
func (c *sharedCommand) openWindow() bool {
	_ = c.params.set("newWindow", true) // never fails
	return false
}

// takeContext takes the made-up ID of a context out of the parameters.
func (c *sharedCommand) takeContext() *cdpError {
	var id string
	if err := c.params.get("browserContextId", &id); err != nil || id == "" {
		return nil // Chrome reports what is wrong with it
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if !c.shared.has(id) {
		if strings.HasPrefix(id, c.shared.prefix) || c.m.targets.madeContext(id) {
			return &cdpError{codeParams, "Failed to find browser context with id " + id} // Chrome's own words
		}
		return nil // the default context, or an error of Chrome
	}
	delete(c.params, "browserContextId")
	c.context = id
	return nil
}

func (c *sharedCommand) createContext() bool {
	c.m.mu.Lock()
	id := c.shared.create()
	c.m.mu.Unlock()
	if id == "" {
		c.fail(refusal(c.method, fmt.Errorf("a connection may have %d contexts at the same time", maxSharedContexts)))
		return true
	}
	c.answer(fmt.Sprintf(`{"browserContextId":%q}`, id))
	return true
}

// closeDeadline bounds how long the end of a context waits for its pages.
const closeDeadline = 5 * time.Second

// disposeContext closes the pages of a context, and answers when they have closed.
func (c *sharedCommand) disposeContext() bool {
	if c.context == "" {
		c.fail(&cdpError{codeParams, "Failed to find browser context with id"}) // the default context cannot be disposed of
		return true
	}
	c.m.mu.Lock()
	c.shared.contexts = slices.DeleteFunc(c.shared.contexts, func(id string) bool { return id == c.context })
	c.shared.denied = slices.DeleteFunc(c.shared.denied, func(id string) bool { return id == c.context })
	c.m.mu.Unlock()
	c.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, closeDeadline)
		defer cancel()
		c.shared.closePages(ctx, c.context)
		c.m.dropPermissions(ctx, maker{&c.peer, c.context})
		c.answer("{}")
	})
	return true
}

// closePages closes the pages of a context, or with "" of all contexts, and waits until they have
// closed or ctx has ended.
func (s *sharedContexts) closePages(ctx context.Context, context string) {
	var ids []string
	m := s.client.m
	m.mu.Lock()
	for id, by := range m.targets.makers {
		if by.peer == &s.client.peer && by.context != "" && (context == "" || by.context == context) {
			ids = append(ids, id)
		}
	}
	m.mu.Unlock()
	var closing sync.WaitGroup
	for _, id := range ids {
		closing.Go(func() {
			closed := m.TargetClosed(target.ID(id))
			m.closePage(id)
			select {
			case <-closed:
			case <-ctx.Done():
			case <-m.done:
			}
		})
	}
	closing.Wait()
}

// closePage closes a page. If it is the last one, another opens before.
func (m *Mux) closePage(id string) {
	params, err := json.Marshal(map[string]string{"targetId": id})
	if err != nil {
		return
	}
	send := func() { m.command("", "Target.closeTarget", string(params), func(envelope) {}, nil) }
	if !m.closesLast(id) {
		send()
		return
	}
	m.openBlank(func(bad *cdpError) {
		if bad == nil {
			send()
		}
	})
}

// endShared closes the pages of the client's contexts after it has disconnected. A page that
// Chrome is still creating closes when its answer comes.
func (c *client) endShared(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeDeadline)
	defer cancel()
	c.shared.closePages(ctx, "")
	c.m.dropPermissions(ctx, maker{peer: &c.peer})
}
