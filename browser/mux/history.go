package mux

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
)

// historyTimeout bounds the read of a page's back list. The browser process answers it
// without the page.
const historyTimeout = 5 * time.Second

var errForeignEntry = errors.New("the entry is an address that clients may not open")

// checkEntry returns an error if a client may not navigate to an entry of a page's back
// list. It returns nil if the client may, and for any other command.
func (c *client) checkEntry(ctx context.Context, s *session, method string, params []byte) *cdpError {
	if !TargetPolicy || method != "Page.navigateToHistoryEntry" {
		return nil
	}
	var wanted struct {
		ID *int64 `json:"entryId"`
	}
	var list struct {
		Entries []struct {
			ID  int64  `json:"id"`
			URL string `json:"url"`
		} `json:"entries"`
	}
	if json.Unmarshal(params, &wanted) != nil || wanted.ID == nil {
		return &cdpError{codeParams, "Invalid parameters: entryId must be an integer"}
	}
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	result, err := c.m.ask(ctx, s.id, "Page.getNavigationHistory")
	if err != nil || json.Unmarshal(result, &list) != nil {
		return refusal(method, errors.New("the page's back list could not be read"))
	}
	for _, e := range list.Entries {
		if e.ID == *wanted.ID {
			if c.m.Addresses.foreign(e.URL) {
				return refusal(method, errForeignEntry)
			}
			return nil
		}
	}
	return &cdpError{codeParams, "No entry with passed id"} // as Chrome says; the page could create the entry in the meantime
}

// ask sends a command of the mux on a session, or on the pipe's root session for "". It waits for
// the result, or until ctx has ended.
func (m *Mux) ask(ctx context.Context, session, method string) (result []byte, err error) {
	got := make(chan envelope, 1)
	m.command(session, method, "{}", func(e envelope) { got <- e }, func() { got <- envelope{err: []byte("{}")} })
	select {
	case e := <-got:
		if e.err != nil {
			return nil, errors.New("the browser did not answer")
		}
		return e.result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
