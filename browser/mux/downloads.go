package mux

import (
	"strings"

	"github.com/go-json-experiment/json"
)

// DownloadFolder moves complete downloads to the session's files.
type DownloadFolder interface {
	// Finish moves the download with this GUID, for which the site suggested a name. It
	// returns the name of the file. A repeated call returns the same name.
	Finish(guid, suggested string) (name string, err error)
	// Size returns the bytes of the complete downloads.
	Size() int64
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
		GUID     string  `json:"guid"`
		Frame    string  `json:"frameId"`
		Name     string  `json:"suggestedFilename"`
		State    string  `json:"state"`
		Received float64 `json:"receivedBytes"`
	}
	if json.Unmarshal(e.params, &d) != nil {
		return msg, e
	}
	switch {
	case strings.HasSuffix(method, ".downloadWillBegin"):
		m.running.begin(d.GUID, d.Name, m.opts.Downloads)
		m.limitDownloads() // a small one may end before Chrome reports its progress
		if m.shared.deniesDownload(d.Frame) {
			m.cancelDownload(d.GUID)
		}
		return msg, e
	case d.State == "canceled":
		// Also if the server cut the connection too often. Chrome then keeps the incomplete
		// file, until this command (Chromium 156).
		if ended := m.running.end(d.GUID); ended != nil && !ended.canceled {
			m.cancelDownload(d.GUID)
		}
		return msg, e
	case d.State != "completed":
		m.running.progress(d.GUID, int64(d.Received))
		m.limitDownloads()
		return msg, e
	}
	var all fields
	name, err := m.opts.Downloads.Finish(d.GUID, m.running.name(d.GUID))
	if err == nil { // after an error, the event of another session tries again
		m.running.finish(d.GUID, int64(d.Received))
		m.limitDownloads()
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
