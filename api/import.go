package api

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/save"
)

// Importer makes snapshots of environments that were saved elsewhere.
type Importer interface {
	// Import stores nothing if it fails, including when the body cannot be read.
	Import(ctx context.Context, c access.Caller, r importer.Request, body io.Reader) (importer.Answer, error)
}

var _ Importer = (*importer.Importer)(nil)

// importHandler answers POST /v1/snapshots.
type importHandler struct {
	importer    Importer
	idempotency *idempotency
	maxImport   int64 // bytes of an imported environment
}

// importQuery says what the body is and to which user it belongs.
type importQuery struct {
	Format        string `json:"format"`
	UserID        string `json:"user_id"`
	Profile       string `json:"profile"`
	Label         string `json:"label"`
	SaveAsDefault bool   `json:"save_as_default"`
	Conflict      string `json:"default_conflict"`
}

func (q importQuery) check() error {
	if q.Format == "" {
		return invalid("format", "is required")
	}
	if q.Profile != "" && q.Format != string(library.FormatDatadir) {
		return invalid("profile", "allowed only with format=datadir")
	}
	return firstOf(
		oneOf("format", q.Format, "stasis", "playwright", "puppeteer", "netscape", "datadir"),
		isUserID("user_id", q.UserID),
		atMost("profile", q.Profile, maxFileName),
		atMost("label", q.Label, 256),
		oneOf("default_conflict", q.Conflict, "keep", "overwrite"),
	)
}

// create makes a snapshot of the body, or of the only file of a form. A repeat is
// recognised by its key, its parameters and the hash of its bytes.
func (h *importHandler) create(c *call) error {
	q := importQuery{Conflict: string(save.Keep)}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	c.audit.UserID, c.audit.Detail = cmp.Or(q.UserID, c.caller.UserID), q.Format
	if c.Request().ContentLength > h.maxImport+framing(c.Request()) {
		return fault.New(fault.TooLarge, "api.files", "the file is larger than %d bytes", h.maxImport)
	}
	read := h.idempotency.newHash()
	c.Request().Body = hashedBody{c.Request().Body, io.TeeReader(c.Request().Body, read)}
	return h.idempotency.once(c, h.idempotency.hashOf([]any{q, c.Request().ContentLength}), creation{
		content: func() (string, error) {
			body := h.upload(c)
			_, err := io.Copy(io.Discard, body)
			return hex.EncodeToString(read.Sum(nil)), body.explain(err, h.maxImport)
		},
		make: func() (any, func() error, error) {
			made, err := h.read(c, q)
			if err != nil {
				return nil, nil, err
			}
			made.Snapshot = made.Snapshot.Normalized()
			c.audit.saved(made.Snapshot, made.Default, "")
			return made, func() error { return c.JSON(http.StatusCreated, made) }, nil
		},
		replay: func(data []byte) error {
			var made importer.Answer
			if err := json.Unmarshal(data, &made); err != nil {
				return fault.Wrap(err, fault.Internal, "api.replay", "")
			}
			return c.JSON(http.StatusCreated, made)
		},
	})
}

// hashedBody is a body that is hashed as it is read.
type hashedBody struct {
	io.Closer
	io.Reader
}

func (h *importHandler) upload(c *call) *upload {
	return &upload{ReadCloser: http.MaxBytesReader(c.Response(), c.Request().Body, h.maxImport+framing(c.Request()))}
}

func (h *importHandler) read(c *call, q importQuery) (importer.Answer, error) {
	body := h.upload(c)
	c.Request().Body = body
	var content io.Reader = body
	if isForm(c.Request()) {
		_, part, err := oneFile(c.Request())
		if err != nil {
			return importer.Answer{}, body.explain(err, h.maxImport)
		}
		content = part
	}
	made, err := h.importer.Import(c.Request().Context(), c.caller, importer.Request{
		Format: library.Format(q.Format), UserID: q.UserID, Profile: q.Profile, Label: q.Label,
		SaveAsDefault: q.SaveAsDefault, Conflict: save.Conflict(q.Conflict), Size: max(c.Request().ContentLength-framing(c.Request()), 0),
	}, content)
	if err != nil {
		return made, body.explain(err, h.maxImport)
	}
	return made, nil
}
