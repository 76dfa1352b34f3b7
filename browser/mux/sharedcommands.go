package mux

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// sharedCommands are the commands that need more than the removal of the context that they name. A
// function returns true if it answers the command. It may wait, but not for other commands of the
// client.
var sharedCommands = map[string]func(*sharedCommand) bool{
	"Target.createBrowserContext":  (*sharedCommand).createContext,
	"Target.disposeBrowserContext": (*sharedCommand).disposeContext,
	"Target.createTarget":          (*sharedCommand).openWindow,
	"Browser.setDownloadBehavior":  (*sharedCommand).chooseDownloads,

	"Browser.grantPermissions": (*sharedCommand).setPermission,
	"Browser.setPermission":    (*sharedCommand).setPermission,
	"Browser.resetPermissions": (*sharedCommand).setPermission,

	"Storage.setCookies":    (*sharedCommand).checkCookies,
	"Network.setCookies":    (*sharedCommand).checkCookies,
	"Network.setCookie":     (*sharedCommand).checkCookies,
	"Network.deleteCookies": (*sharedCommand).checkCookies,

	// They delete state of the profile, which other clients rely on. Commands that delete the item of
	// a page that they name are allowed, as a page's script can do the same.
	"Storage.clearCookies":                 (*sharedCommand).checkClear,
	"Storage.clearDataForOrigin":           (*sharedCommand).checkClear,
	"Storage.clearDataForStorageKey":       (*sharedCommand).checkClear,
	"Storage.clearSharedStorageEntries":    (*sharedCommand).checkClear,
	"Storage.deleteStorageBucket":          (*sharedCommand).checkClear,
	"Storage.runBounceTrackingMitigations": (*sharedCommand).checkClear,
	"Network.clearBrowserCookies":          (*sharedCommand).checkClear,
	"DOMStorage.clear":                     (*sharedCommand).checkClear,
	"IndexedDB.deleteDatabase":             (*sharedCommand).checkClear,
	"IndexedDB.clearObjectStore":           (*sharedCommand).checkClear,
	"IndexedDB.deleteObjectStoreEntries":   (*sharedCommand).checkClear,
	"CacheStorage.deleteCache":             (*sharedCommand).checkClear,
	"ServiceWorker.unregister":             (*sharedCommand).checkClear,
	"FileSystem.clear":                     (*sharedCommand).checkClear,
}

// sharedCommand is a client's command while the mux prepares it for the session's own profile. The
// client has shared contexts, or others have and the command sets permissions.
type sharedCommand struct {
	*client
	ctx     context.Context
	e       envelope
	session *session
	method  string
	params  fields
	context string // the shared context that the command names; "" for the default one
}

// prepareShared prepares a command that concerns shared contexts. It returns the parameters to send
// and the shared context that the command named. done means that the command needs no further
// processing.
func (c *client) prepareShared(ctx context.Context, e envelope, s *session, method string, params []byte) (out []byte, context string, done bool) {
	if c.contexts != nil && c.contexts.refusesScript(method, params) {
		c.push(reply(e.id, thrown(errSharedState), string(e.session)))
		return nil, "", true
	}
	prepare, special := sharedCommands[method]
	if !special && !bytes.Contains(params, []byte("browserContextId")) {
		return params, "", false
	}
	call := &sharedCommand{client: c, ctx: ctx, e: e, session: s, method: method}
	if err := call.params.read(params); err != nil {
		// Chrome might run a command that has a name twice.
		call.fail(&cdpError{codeParams, "Invalid parameters: " + err.Error()})
		return nil, "", true
	}
	if bad := call.takeContext(); bad != nil {
		call.fail(bad)
		return nil, "", true
	}
	if special && prepare(call) {
		return nil, "", true
	}
	return call.params.write(), call.context, false
}

// answer answers the command without Chrome.
func (c *sharedCommand) answer(result string) {
	c.push(reply(c.e.id, envelope{result: []byte(result)}, string(c.e.session)))
}

func (c *sharedCommand) fail(bad *cdpError) { c.push(failure(c.e.id, c.e.session, bad)) }

// refuse answers that Stasis does not allow the command.
func (c *sharedCommand) refuse(why error) { c.fail(refusal(c.method, why)) }

// takeContext takes the ID of a shared context out of the parameters.
func (c *sharedCommand) takeContext() *cdpError {
	var id string
	if err := c.params.get("browserContextId", &id); c.contexts == nil || err != nil || id == "" {
		return nil // Chrome reports what is wrong with it
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if !c.contexts.has(id) {
		if strings.HasPrefix(id, c.contexts.prefix) || c.m.targets.madeContext(id) {
			return &cdpError{codeParams, "Failed to find browser context with id " + id} // Chrome's own words
		}
		return nil // the default context, or an error of Chrome
	}
	delete(c.params, "browserContextId")
	c.context = id
	return nil
}

func (c *sharedCommand) createContext() bool {
	proxy := ""
	if c.params.get("proxyServer", &proxy) == nil && proxy != "" {
		c.refuse(errSharedProxy)
		return true
	}
	c.m.mu.Lock()
	id := c.contexts.create()
	c.m.mu.Unlock()
	if id == "" {
		c.refuse(fmt.Errorf("a connection may have %d contexts at the same time", maxSharedContexts))
		return true
	}
	c.answer(fmt.Sprintf(`{"browserContextId":%q}`, id))
	return true
}

// disposeContext closes the pages of a context, and answers when they have closed.
func (c *sharedCommand) disposeContext() bool {
	if c.context == "" {
		c.fail(&cdpError{codeParams, "Failed to find browser context with id"}) // the default context cannot be disposed of
		return true
	}
	c.m.mu.Lock()
	delete(c.contexts.all, c.context)
	c.m.mu.Unlock()
	c.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, closeDeadline)
		defer cancel()
		of := clientContext{&c.peer, c.context}
		c.m.shared.closePages(ctx, of)
		c.m.Permissions.end(ctx, of)
		c.answer("{}")
	})
	return true
}

// openWindow opens a new page in a new window. A page in the background of another one's
// window paints nothing.
func (c *sharedCommand) openWindow() bool {
	_ = c.params.set("newWindow", true) // never fails
	return false
}
