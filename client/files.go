package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"
)

// File is one of a session's files: a download, or an upload.
type File struct {
	Name       string    `json:"name"`
	GUID       string    `json:"guid"` // of a download
	SizeBytes  int64     `json:"size_bytes"`
	ModifiedAt time.Time `json:"modified_at"`
}

// Files lists a session's files.
func (c *Client) Files(ctx context.Context, session string) ([]File, error) {
	var list struct {
		Files []File `json:"files"`
	}
	err := c.Call(ctx, http.MethodGet, sessionPath(session)+"/files", nil, &list)
	return list.Files, err
}

// Download writes one of a session's files, by its name, or a download by its GUID.
func (c *Client) Download(ctx context.Context, session, name string, to io.Writer) error {
	answer, err := c.Send(ctx, http.MethodGet, sessionPath(session)+"/files/"+url.PathEscape(name), "", nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	_, err = io.Copy(to, answer.Body)
	return err
}

// Upload adds a file to a session, under a name by which a CDP client can give it to a page.
func (c *Client) Upload(ctx context.Context, session, name string, from io.Reader) error {
	answer, err := c.Send(ctx, http.MethodPost, sessionPath(session)+"/files?"+url.Values{"name": {name}}.Encode(), "application/octet-stream", from)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
