package mux

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/go-json-experiment/json/jsontext"
)

// drag is the rule of Input.dispatchDragEvent: files must be the session's own, and links
// must have addresses that clients may open.
func drag(c *call) error {
	if err := c.localize(c.params, []string{"data", "files"}); err != nil {
		return err
	}
	if _, there := c.params["data"]; !there || !TargetPolicy {
		return nil
	}
	var data struct {
		Items []struct {
			MimeType string `json:"mimeType"`
			Data     string `json:"data"`
			BaseURL  string `json:"baseURL"`
		} `json:"items"`
		Rest jsontext.Value `json:",unknown"`
	}
	if err := c.params.get("data", &data); err != nil {
		return err
	}
	for _, item := range data.Items {
		if err := checkURL(item.BaseURL, c.owns); err != nil {
			return err
		}
		if !strings.EqualFold(item.MimeType, "text/uri-list") {
			continue
		}
		for line := range strings.Lines(item.Data) {
			if strings.HasPrefix(line, "#") {
				continue // a comment
			}
			if err := checkURL(line, c.owns); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropTimeout bounds how long the preparation of a page for a drop may take. A page that
// hangs gets no drop.
const dropTimeout = 5 * time.Second

var errDrop = errors.New("the page could not be prepared for a drop of files")

// prepareDrop prepares a page for a client's drag event with files. It returns nil at once
// for any other command.
func (c *client) prepareDrop(ctx context.Context, s *session, method string, params []byte) *cdpError {
	if !TargetPolicy || method != "Input.dispatchDragEvent" {
		return nil
	}
	var all, data fields
	var files []string
	if all.read(params) != nil || all["data"] == nil || data.read(all["data"]) != nil || data.get("files", &files) != nil || len(files) == 0 {
		return nil
	}
	f := c.m.Hooks.drop()
	if f == nil {
		return refusal(method, errDrop)
	}
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	if f(ctx, target.ID(s.target)) != nil {
		return refusal(method, errDrop)
	}
	return nil
}
