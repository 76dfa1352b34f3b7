package view

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"time"
)

// State is what the page shows beside the picture. It is sent as JSON whenever it changes.
type State struct {
	Type    string `json:"type"` // state
	Control bool   `json:"control"`
	// MayShare and MaySave: the page offers to make shared links, and to save the session.
	MayShare bool `json:"may_share"`
	MaySave  bool `json:"may_save"`
	// LinkExpires is when the viewer's shared link ends; absent without one.
	LinkExpires *time.Time `json:"link_expires_at,omitempty"`
	Session     string     `json:"session"`
	User        string     `json:"user"`
	Viewers     int        `json:"viewers"`
	Clients     int        `json:"clients"` // CDP clients
	// ClientDialogs and ClientFiles say that a client may answer the dialogs of the shown
	// tab, and answers its file choosers.
	ClientDialogs bool `json:"client_dialogs"`
	ClientFiles   bool `json:"client_files"`
	// Typing says that the focus of the shown tab is in a field for text, as far as Stasis has
	// seen since the last input.
	Typing bool  `json:"typing"`
	Tabs   []Tab `json:"tabs"`
}

// Tab is one open tab. One of them is shown.
type Tab struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
	Shown bool   `json:"shown"`
}

// Notice is a message for the person, in English.
type Notice struct {
	Type string `json:"type"` // notice
	Text string `json:"text"`
}

// frameHeader precedes the JPEG in a binary message, in network byte order.
type frameHeader struct {
	Number int64
	// Width and Height are the size of what the picture shows, in CSS pixels, and Top is the
	// part of the height above the page.
	Width, Height, Top float32
}

func (s *server) sendState() error {
	v := s.viewer
	now := State{Type: "state", Control: v.Control, MayShare: v.MayShare, MaySave: v.MaySave, Session: v.Session, User: v.User, Viewers: v.Viewers(), Clients: v.Clients(), Tabs: []Tab{}}
	if !v.LinkExpires.IsZero() {
		now.LinkExpires = &v.LinkExpires
	}
	if s.shown != nil {
		now.ClientDialogs, now.ClientFiles = s.browser.ClientAnswers(s.shown.tab)
		now.Typing = s.shown.typing
	}
	for _, t := range s.tabs {
		now.Tabs = append(now.Tabs, Tab{ID: string(t.TargetID), Title: t.Title, URL: t.URL, Shown: s.shown != nil && s.shown.tab == t.TargetID})
	}
	text, err := json.Marshal(now)
	if err != nil || bytes.Equal(text, s.last) {
		return err
	}
	s.last = text
	s.unsent.put(message{stateMessage, text})
	return nil
}

// sendJSON sends a [Notice] or a [Dialog].
func (s *server) sendJSON(kind messageKind, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.unsent.put(message{kind, text})
	return nil
}

// sendPicture sends a picture, without its pixels if the tab is at an address that a
// session may not show.
func (s *server) sendPicture(p *picture) error {
	data := p.Data
	if !s.browser.MayShow(s.shown.tab) {
		data = nil
	}
	m := p.Metadata
	msg, err := binary.Append(nil, binary.BigEndian, frameHeader{p.number, float32(m.DeviceWidth), float32(m.DeviceHeight), float32(m.OffsetTop)})
	if err != nil {
		return err
	}
	s.unsent.put(message{pictureMessage, append(msg, data...)})
	return nil
}
