package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/library"
)

// importQuery says what the body is, and whose.
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
		return invalid("profile", "only format=datadir has profiles")
	}
	return firstOf(
		oneOf("format", q.Format, "stasis", "playwright", "puppeteer", "netscape", "datadir"),
		isUserID("user_id", q.UserID),
		atMost("profile", q.Profile, maxFileName),
		atMost("label", q.Label, 256),
		oneOf("default_conflict", q.Conflict, "keep", "overwrite"),
	)
}

// importSnapshot makes a snapshot of the body, or of the one file of a form. A
// repeat is known by its key, its parameters and the hash of its bytes.
func (s *Server) importSnapshot(c *call) error {
	q := importQuery{Conflict: string(session.ConflictKeep)}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	if c.Request().ContentLength > s.maxImport+framing(c.Request()) {
		return fault.New(fault.TooLarge, "api.files", "the file is larger than %d bytes", s.maxImport)
	}
	read := hmac.New(sha256.New, s.hashKey)
	c.Request().Body = hashed{c.Request().Body, io.TeeReader(c.Request().Body, read)}
	return s.once(c, s.hashOf([]any{q, c.Request().ContentLength}), making{
		content: func() (string, error) {
			body := s.importUpload(c)
			_, err := io.Copy(io.Discard, body)
			return hex.EncodeToString(read.Sum(nil)), body.explain(err, s.maxImport)
		},
		make: func() (any, func() error, error) {
			made, err := s.importBody(c, q)
			if err != nil {
				return nil, nil, err
			}
			made.Snapshot = made.Snapshot.Whole()
			return made, func() error { return c.JSON(http.StatusCreated, made) }, nil
		},
		replay: func(data []byte) error {
			var made session.ImportAnswer
			if err := json.Unmarshal(data, &made); err != nil {
				return fault.Wrap(err, fault.Internal, "api.replay", "")
			}
			return c.JSON(http.StatusCreated, made)
		},
	})
}

// hashed is a body that is hashed as it is read.
type hashed struct {
	io.Closer
	io.Reader
}

func (s *Server) importUpload(c *call) *upload {
	return &upload{ReadCloser: http.MaxBytesReader(c.Response(), c.Request().Body, s.maxImport+framing(c.Request()))}
}

func (s *Server) importBody(c *call, q importQuery) (session.ImportAnswer, error) {
	body := s.importUpload(c)
	c.Request().Body = body
	var content io.Reader = body
	if isForm(c.Request()) {
		_, part, err := oneFile(c.Request())
		if err != nil {
			return session.ImportAnswer{}, body.explain(err, s.maxImport)
		}
		content = part
	}
	made, err := s.service.Import(c.Request().Context(), c.caller, session.Import{
		Format: library.Format(q.Format), UserID: q.UserID, Profile: q.Profile, Label: q.Label,
		SaveAsDefault: q.SaveAsDefault, Conflict: session.Conflict(q.Conflict), Size: max(c.Request().ContentLength-framing(c.Request()), 0),
	}, content)
	if err != nil {
		return made, body.explain(err, s.maxImport)
	}
	return made, nil
}
