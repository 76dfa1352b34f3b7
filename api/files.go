package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/files"
)

// Files stores the files of sessions. Names are single path elements.
type Files interface {
	ListFiles(ctx context.Context, c access.Caller, id string) ([]files.Info, error)
	OpenFile(ctx context.Context, c access.Caller, id, name string) (*os.File, error)
	// PutFile stores what it reads from r and replaces a file of that name. If reading
	// fails, nothing of it is kept.
	PutFile(ctx context.Context, c access.Caller, id, name string, r io.Reader) error
	// AddFile is PutFile that replaces no file. It returns the name that the file got.
	AddFile(ctx context.Context, c access.Caller, id, name string, r io.Reader) (stored string, err error)
	DeleteFile(ctx context.Context, c access.Caller, id, name string) error
}

var _ Files = (*files.Files)(nil)

// fileHandler stores and serves the files of a session.
type fileHandler struct {
	files     Files
	maxUpload int64 // bytes of one file
}

type fileAnswer struct {
	Name       string    `json:"name"`
	GUID       string    `json:"guid,omitempty"`
	SizeBytes  int64     `json:"size_bytes"`
	ModifiedAt time.Time `json:"modified_at"`
}

func (h *fileHandler) list(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	list, err := h.files.ListFiles(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	answers := make([]fileAnswer, 0, len(list))
	for _, f := range list {
		answers = append(answers, fileAnswer{f.Name, f.GUID, f.Size, f.ModTime.UTC()})
	}
	return c.JSON(http.StatusOK, map[string]any{"files": answers})
}

// put stores the body, or the only file of a form, and replaces a file of that name.
func (h *fileHandler) put(c *call) error {
	var q struct {
		Name string `json:"name"`
	}
	if err := c.query(&q); err != nil {
		return err
	}
	return h.store(c, q.Name, func(ctx context.Context, id, name string, r io.Reader) (string, error) {
		return name, h.files.PutFile(ctx, c.caller, id, name, r)
	})
}

// add is put for the live view. It replaces no file.
func (h *fileHandler) add(c *call) error {
	var q struct {
		Name   string `json:"name"`
		Ticket string `json:"ticket"` // the authorizer has read it
	}
	if err := c.query(&q); err != nil {
		return err
	}
	return h.store(c, q.Name, func(ctx context.Context, id, name string, r io.Reader) (string, error) {
		return h.files.AddFile(ctx, c.caller, id, name, r)
	})
}

// store reads the upload of a call and passes it to put, which returns the name that the file
// got.
func (h *fileHandler) store(c *call, name string, put func(ctx context.Context, id, name string, r io.Reader) (string, error)) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	body, own, content, err := uploaded(c, h.maxUpload)
	if err != nil {
		return err
	}
	if name == "" {
		name = own
	}
	if !isFileName(name) {
		return invalid("name", "must be one path element of 1 to %d bytes", maxFileName)
	}
	counted := &counter{from: content}
	name, err = put(c.Request().Context(), id, name, counted)
	if err != nil {
		return body.explain(err, h.maxUpload)
	}
	return c.JSON(http.StatusCreated, map[string]any{"name": name, "size_bytes": counted.n})
}

func (h *fileHandler) get(c *call) error {
	id, name, err := c.fileName()
	if err != nil {
		return err
	}
	f, err := h.files.OpenFile(c.Request().Context(), c.caller, id, name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return fault.Wrap(err, fault.Internal, "api.files", "")
	}
	// No browser may treat the file as a page of this host, whatever it contains.
	header := c.Response().Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	http.ServeContent(c.Response(), c.Request(), "", info.ModTime(), f)
	return nil
}

func (h *fileHandler) delete(c *call) error {
	id, name, err := c.fileName()
	if err != nil {
		return err
	}
	if err := h.files.DeleteFile(c.Request().Context(), c.caller, id, name); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// fileName returns the session and the file name in the path.
func (c *call) fileName() (id, name string, err error) {
	if id, err = c.sessionID(); err != nil {
		return "", "", err
	}
	if name, err = c.param("name"); err != nil {
		return "", "", err
	}
	if !isFileName(name) {
		return "", "", fault.New(fault.FileNotFound, "api.path", "")
	}
	return id, name, nil
}

// upload is a body that may be large. It keeps its read error, because readers above it may
// replace that error.
type upload struct {
	io.ReadCloser
	failure error
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.failure = err
	}
	return n, err
}

// explain returns the error of an upload: the body's read error if there is one, else what
// its reader reported.
func (u *upload) explain(reported error, limit int64) error {
	var tooLarge *http.MaxBytesError
	if errors.As(u.failure, &tooLarge) {
		return fault.New(fault.TooLarge, "api.files", "the file is larger than %d bytes", limit)
	}
	if u.failure != nil {
		return bodyError("api.files", u.failure)
	}
	return reported
}

// counter counts the bytes that are read.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}
