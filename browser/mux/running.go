package mux

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
)

// DownloadsExceeded is the method of a [PageEvent] for a download that the mux cancels,
// because the session's downloads exceed [Options.MaxDownloads]. Its parameters hold the
// guid. Chrome's own event of the cancelled download follows.
const DownloadsExceeded = "Stasis.downloadsExceeded"

// limitDownloads cancels running downloads, the largest first, while the session's
// downloads exceed the limit. It is called when a download begins, grows or ends. Chrome
// reports the progress twice a second, so the folder holds somewhat more for a moment.
func (m *Mux) limitDownloads() {
	limit := m.opts.MaxDownloads
	if limit == 0 || !m.running.exceed(limit) {
		return
	}
	m.running.complete = m.opts.Downloads.Size() // files may have been deleted
	for m.running.exceed(limit) {
		guid := m.running.cancelLargest()
		m.cancelDownload(guid)
		if l, params := m.listening.Load(), (fields{}); l != nil && params.set("guid", guid) == nil {
			l.notify(PageEvent{Method: DownloadsExceeded, Params: params.write()})
		}
	}
}

// cancelDownload cancels a download and removes its incomplete file. Events do not say
// which browser context a download belongs to, so each gets the command, and all but one
// answer with an error.
func (m *Mux) cancelDownload(guid string) {
	m.mu.Lock()
	contexts := append(slices.Collect(maps.Keys(m.targets.contexts)), "")
	m.mu.Unlock()
	for _, id := range contexts {
		params, err := json.Marshal(struct {
			GUID             string `json:"guid"`
			BrowserContextID string `json:"browserContextId,omitempty"` // "": the default context
		}{guid, id})
		if err == nil {
			m.command("", "Browser.cancelDownload", string(params), func(envelope) {}, nil)
		}
	}
}

// running holds the downloads that have not ended, by GUID. Several sessions get an event
// about the same download, so each call may be repeated. Only the pipe's reader uses it.
type running struct {
	all      map[string]*download
	complete int64 // bytes of complete downloads; those that were deleted since may be counted
	measured bool  // complete includes those of an earlier Chrome
}

// download is a running download.
type download struct {
	name     string // the suggested one
	received int64  // bytes in the folder
	canceled bool   // the mux has cancelled it
}

// namesKept is how many suggested names are kept. Chrome names a download only when it
// begins. Further downloads get their GUID as name.
const namesKept = 1024

// begin adds a download.
func (r *running) begin(guid, name string, folder DownloadFolder) {
	if !r.measured {
		r.complete, r.measured = folder.Size(), true
	}
	if r.all[guid] != nil {
		return
	}
	if r.all == nil {
		r.all = map[string]*download{}
	}
	if len(r.all) >= namesKept {
		name = guid
	}
	r.all[guid] = &download{name: name}
}

// name returns the suggested name of a download, or its GUID.
func (r *running) name(guid string) string {
	if d := r.all[guid]; d != nil {
		return d.name
	}
	return guid
}

// progress records how much of a download is in the folder. That may be less than before:
// Chrome begins again after an interruption if the server cannot continue.
func (r *running) progress(guid string, received int64) {
	if d := r.all[guid]; d != nil {
		d.received = received
	}
}

// finish moves a download to the complete ones.
func (r *running) finish(guid string, size int64) {
	if r.end(guid) != nil {
		r.complete += size
	}
}

// end removes a download and returns it; nil if it is not there.
func (r *running) end(guid string) *download {
	d := r.all[guid]
	delete(r.all, guid)
	return d
}

// exceed reports whether the downloads exceed a limit and one of them can be cancelled.
func (r *running) exceed(limit int64) bool {
	size, left := r.complete, false
	for _, d := range r.all {
		if !d.canceled {
			size, left = size+d.received, true
		}
	}
	return left && size > limit
}

// cancelLargest marks the largest running download as cancelled and returns its GUID.
func (r *running) cancelLargest() (guid string) {
	for id, d := range r.all {
		if !d.canceled && (guid == "" || d.received > r.all[guid].received) {
			guid = id
		}
	}
	r.all[guid].canceled = true
	return guid
}
