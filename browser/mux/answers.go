package mux

import "github.com/chromedp/cdproto/target"

// answers says which questions of a page a client's session answers, so that a person need not.
type answers struct {
	dialogs bool // the Page domain is enabled: Chrome waits for an answer to each dialog
	files   bool // it intercepts file choosers
}

// record takes the commands that change it.
func (a *answers) record(method string, params []byte) {
	switch method {
	case "Page.enable":
		a.dialogs = true
	case "Page.disable":
		*a = answers{}
	case "Page.setInterceptFileChooserDialog":
		var f fields
		on := false
		if f.read(params) == nil && f.get("enabled", &on) == nil {
			a.files = on
		}
	}
}

// ClientAnswers reports whether a client may answer the dialogs of a tab, and whether one
// answers its file choosers.
func (m *Mux) ClientAnswers(id target.ID) (dialogs, files bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sessions.all {
		if s.target == string(id) && !s.owner.trusted {
			dialogs, files = dialogs || s.answers.dialogs, files || s.answers.files
		}
	}
	return dialogs, files
}

// FilePath returns the path of one of the session's files, by its name. The error says that
// there is none.
func (m *Mux) FilePath(name string) (string, error) { return m.opts.Policy.file(name) }
