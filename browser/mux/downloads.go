package mux

import (
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// DownloadFolder moves complete downloads to the session's files.
type DownloadFolder interface {
	// Finish moves the download with this GUID, for which the site suggested a name. It
	// returns the name of the file. A repeated call returns the same name.
	Finish(guid, suggested string) (name string, err error)
}

// downloadHere is the rule for the folder and the names of downloads. Chrome writes each
// download under its GUID, because under its own name it would replace an earlier one
// (Chrome 156, DevToolsDownloadManagerDelegate). Clients name a folder on their own machine.
//
// Page.setDownloadBehavior cannot choose GUIDs, so it becomes the Browser domain's command
// for the page's browser context.
func downloadHere(c *call) error {
	if c.IncomingDir == "" {
		return errNoFiles
	}
	var behavior string
	if err := c.params.get("behavior", &behavior); err != nil {
		return err
	}
	c.changed = true
	if c.method == "Page.setDownloadBehavior" {
		c.method, c.params = "Browser.setDownloadBehavior", fields{"behavior": c.params["behavior"]}
		if c.context != "" {
			if err := c.params.set("browserContextId", c.context); err != nil {
				return err
			}
		}
	}
	if behavior == "allow" || behavior == "default" {
		if err := c.params.set("behavior", "allowAndName"); err != nil {
			return err
		}
	}
	return c.params.set("downloadPath", c.IncomingDir)
}

// begunKept is how many running downloads are remembered. Chrome names a download only when
// it begins. A forgotten one gets its GUID as its name.
const begunKept = 1024

// begun holds the suggested names of running downloads, by GUID. Its methods are safe for
// concurrent use.
type begun struct {
	mu    sync.Mutex
	names map[string]string
}

func (b *begun) add(guid, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.names == nil || len(b.names) >= begunKept {
		b.names = map[string]string{}
	}
	b.names[guid] = name
}

// name returns the suggested name of a download, or its GUID.
func (b *begun) name(guid string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if name, known := b.names[guid]; known {
		return name
	}
	return guid
}

// forget removes a download that has ended.
func (b *begun) forget(guid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.names, guid)
}

// trackDownload processes an event of a download before any peer gets it. It moves a
// complete download to the session's files, so that a client which got the event finds it
// there. The event's filePath then is the name among the session's files. Several sessions
// get an event about the same download.
func (m *Mux) trackDownload(msg []byte, e envelope) ([]byte, envelope) {
	method := string(e.method)
	if m.opts.Downloads == nil || !strings.HasSuffix(method, ".downloadWillBegin") && !strings.HasSuffix(method, ".downloadProgress") {
		return msg, e
	}
	var d struct {
		GUID  string `json:"guid"`
		Name  string `json:"suggestedFilename"`
		State string `json:"state"`
	}
	if json.Unmarshal(e.params, &d) != nil {
		return msg, e
	}
	switch {
	case strings.HasSuffix(method, ".downloadWillBegin"):
		m.begun.add(d.GUID, d.Name)
		return msg, e
	case d.State == "canceled":
		m.begun.forget(d.GUID)
		return msg, e
	case d.State != "completed":
		return msg, e
	}
	var all fields
	name, err := m.opts.Downloads.Finish(d.GUID, m.begun.name(d.GUID))
	if err == nil {
		m.begun.forget(d.GUID) // after an error, the event of another session tries again
	}
	if all.read(e.params) != nil {
		return msg, e
	}
	delete(all, "filePath")
	if err == nil && all.set("filePath", name) != nil {
		return msg, e
	}
	e.params = all.write()
	return event(e, string(e.session)), e
}
