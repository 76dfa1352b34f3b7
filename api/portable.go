package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"unicode/utf16"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
)

// Exports converts stored environments for other tools.
type Exports interface {
	State(ctx context.Context, c access.Caller, id string, r library.Export) (library.ExportResult, error)
	DefaultState(ctx context.Context, c access.Caller, userID string, r library.Export) (library.ExportResult, error)
	// Archive streams an archive. The reader reports damage as an error, at the end at the
	// latest.
	Archive(ctx context.Context, c access.Caller, id string) (io.ReadCloser, error)
	SealedArchive(ctx context.Context, c access.Caller, id string, to []string) (library.SealedArchive, error)
}

var _ Exports = (*library.Library)(nil)

// exportHandler serves stored environments in the formats of other tools and as whole
// archives.
type exportHandler struct {
	exports Exports
	log     *slog.Logger
}

const (
	notCarriedHeader = "X-Stasis-Not-Carried"
	// maxNotCarried limits that header, in bytes: Node's HTTP client accepts 16 KiB of
	// headers in all.
	maxNotCarried = 4 << 10
)

// mediaOf is the content type of each format of state.
var mediaOf = map[library.Format]string{
	library.FormatStasis:     "application/json",
	library.FormatPlaywright: "application/json",
	library.FormatPuppeteer:  "application/json",
	library.FormatNetscape:   "text/plain; charset=utf-8",
}

// exportQuery says in which format to write a state.
type exportQuery struct {
	Format    string `json:"format"`
	IndexedDB bool   `json:"indexed_db"`
	Envelope  bool   `json:"envelope"`
}

func (c *call) exportQuery() (exportQuery, error) {
	q := exportQuery{Format: string(library.FormatStasis)}
	if err := c.query(&q); err != nil {
		return q, err
	}
	if err := oneOf("format", q.Format, "stasis", "playwright", "puppeteer", "netscape"); err != nil {
		return q, err
	}
	if q.IndexedDB && q.Format != string(library.FormatPlaywright) {
		return q, invalid("indexed_db", "allowed only with format=playwright")
	}
	c.audit.Detail = q.Format
	return q, nil
}

func (q exportQuery) request() library.Export {
	return library.Export{Format: library.Format(q.Format), IndexedDB: q.IndexedDB}
}

func (h *exportHandler) snapshotState(c *call) error {
	q, err := c.exportQuery()
	if err != nil {
		return err
	}
	id, err := c.id("snapshot_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	out, err := h.exports.State(c.Request().Context(), c.caller, id, q.request())
	if err != nil {
		return err
	}
	return c.exported(q, out)
}

func (h *exportHandler) defaultState(c *call) error {
	q, err := c.exportQuery()
	if err != nil {
		return err
	}
	user, err := c.userID()
	if err != nil {
		return err
	}
	out, err := h.exports.DefaultState(c.Request().Context(), c.caller, user, q.request())
	if err != nil {
		return err
	}
	return c.exported(q, out)
}

// exported answers with the state in the tool's format, and with a header that lists what
// the format cannot hold. With envelope=true the body has both.
func (c *call) exported(q exportQuery, out library.ExportResult) error {
	c.Response().Header().Set(notCarriedHeader, notCarried(out.NotExported))
	media := mediaOf[library.Format(q.Format)]
	if !q.Envelope {
		return c.Blob(http.StatusOK, media, out.Body)
	}
	envelope := struct {
		Format     string                `json:"format"`
		State      any                   `json:"state"`
		NotCarried []library.NotExported `json:"not_carried"`
	}{q.Format, json.RawMessage(out.Body), out.NotExported}
	if media != "application/json" {
		envelope.State = string(out.Body)
	}
	return c.JSON(http.StatusOK, envelope)
}

// notCarried formats the list as a header: JSON in ASCII. A list that is too long for a
// header is summed up by component, without origins.
func notCarried(list []library.NotExported) string {
	text := headerJSON(list)
	if len(text) <= maxNotCarried {
		return text
	}
	var short []library.NotExported
	at := map[string]int{}
	for _, l := range list {
		i, known := at[l.Component]
		if !known {
			i = len(short)
			at[l.Component] = i
			short = append(short, library.NotExported{Component: l.Component, Reason: "shortened; envelope=true returns the whole list"})
		}
		short[i].Count += l.Count
	}
	if text = headerJSON(short); len(text) <= maxNotCarried {
		return text
	}
	return headerJSON([]library.NotExported{{Component: "all", Count: len(list), Reason: "shortened; envelope=true returns the whole list"}})
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
