package mux

import (
	"github.com/chromedp/cdproto/target"
	"github.com/go-json-experiment/json"
)

// learnFront records which page a command activated. A page that was created in
// the background counts as never shown. Chrome does not report the tab in front over CDP:
// while clients are connected all tabs are visible.
func (m *Mux) learnFront(p *pending, e *envelope) {
	var asked struct {
		TargetID   string `json:"targetId"`
		Background bool   `json:"background"`
	}
	_ = json.Unmarshal(p.params(), &asked) // Chrome has accepted them
	m.mu.Lock()
	defer m.mu.Unlock()
	id := asked.TargetID
	switch p.method {
	case "Target.createTarget":
		var made struct {
			TargetID string `json:"targetId"`
		}
		if !asked.Background || json.Unmarshal(e.result, &made) != nil {
			return // a page opens in front
		}
		if info, known := m.targets.all[made.TargetID]; known {
			info.shown = 0
			m.targets.all[made.TargetID] = info
		}
		return
	case "Page.bringToFront":
		s := m.sessions.all[p.session]
		if s == nil {
			return
		}
		id = s.target
	}
	m.targets.noteFront(id)
}

func (t *targets) noteFront(id string) {
	if info, known := t.all[id]; known {
		t.activations++
		info.shown = t.activations
		t.all[id] = info
	}
}

// NoteFront records that a page is in front, where no command activated it.
func (d *Driver) NoteFront(id target.ID) {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	d.m.targets.noteFront(string(id))
}

// LastShown orders pages by when they came to the front. It is 0 for an unknown page and
// for one that opened in the background.
func (d *Driver) LastShown(id target.ID) int {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return d.m.targets.all[string(id)].shown
}
