package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf16"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
)

const (
	notCarriedHeader = "X-Stasis-Not-Carried"
	// maxNotCarried bounds that header, in bytes: Node's HTTP client takes 16 KiB
	// of headers in all.
	maxNotCarried = 4 << 10
)

// mediaOf is the content type of each format of state.
var mediaOf = map[session.Format]string{
	session.FormatStasis:     "application/json",
	session.FormatPlaywright: "application/json",
	session.FormatPuppeteer:  "application/json",
	session.FormatNetscape:   "text/plain; charset=utf-8",
}

// exportQuery says how a state is to be written.
type exportQuery struct {
	Format    string `json:"format"`
	IndexedDB bool   `json:"indexed_db"`
	Envelope  bool   `json:"envelope"`
}

func (c *call) exportQuery() (exportQuery, error) {
	q := exportQuery{Format: string(session.FormatStasis)}
	if err := c.query(&q); err != nil {
		return q, err
	}
	if err := oneOf("format", q.Format, "stasis", "playwright", "puppeteer", "netscape"); err != nil {
		return q, err
	}
	if q.IndexedDB && q.Format != string(session.FormatPlaywright) {
		return q, invalid("indexed_db", "only format=playwright holds databases")
	}
	return q, nil
}

func (q exportQuery) request() session.Export {
	return session.Export{Format: session.Format(q.Format), IndexedDB: q.IndexedDB}
}

func (s *Server) snapshotState(c *call) error {
	q, err := c.exportQuery()
	if err != nil {
		return err
	}
	id, err := c.id("snapshot_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	out, err := s.service.State(c.Request().Context(), c.caller, id, q.request())
	if err != nil {
		return err
	}
	return c.exported(q, out)
}

func (s *Server) defaultState(c *call) error {
	q, err := c.exportQuery()
	if err != nil {
		return err
	}
	user, err := c.userID()
	if err != nil {
		return err
	}
	out, err := s.service.DefaultState(c.Request().Context(), c.caller, user, q.request())
	if err != nil {
		return err
	}
	return c.exported(q, out)
}

// exported answers with the state as its tool takes it, and what it does not
// hold in a header; or with both in an envelope.
func (c *call) exported(q exportQuery, out session.Exported) error {
	c.Response().Header().Set(notCarriedHeader, notCarried(out.NotCarried))
	media := mediaOf[session.Format(q.Format)]
	if !q.Envelope {
		return c.Blob(http.StatusOK, media, out.Body)
	}
	envelope := struct {
		Format     string               `json:"format"`
		State      any                  `json:"state"`
		NotCarried []session.NotCarried `json:"not_carried"`
	}{q.Format, json.RawMessage(out.Body), out.NotCarried}
	if media != "application/json" {
		envelope.State = string(out.Body)
	}
	return c.JSON(http.StatusOK, envelope)
}

// notCarried is the list as a header's value: JSON in ASCII. One that is too
// long for a header is told by component, without origins.
func notCarried(list []session.NotCarried) string {
	text := headerJSON(list)
	if len(text) <= maxNotCarried {
		return text
	}
	var short []session.NotCarried
	at := map[string]int{}
	for _, l := range list {
		i, known := at[l.Component]
		if !known {
			i = len(short)
			at[l.Component] = i
			short = append(short, session.NotCarried{Component: l.Component, Reason: "shortened: ask with envelope=true"})
		}
		short[i].Count += l.Count
	}
	if text = headerJSON(short); len(text) <= maxNotCarried {
		return text
	}
	return headerJSON([]session.NotCarried{{Component: "all", Count: len(list), Reason: "shortened: ask with envelope=true"}})
}

func headerJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers
	}
	var ascii strings.Builder
	for _, unit := range utf16.Encode([]rune(string(raw))) {
		if unit < 0x80 {
			ascii.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&ascii, `\u%04x`, unit)
		}
	}
	return ascii.String()
}
