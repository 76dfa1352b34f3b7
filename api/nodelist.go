package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/placement"
)

// missingHeader names the nodes that have not described their sessions of a list, with commas.
const missingHeader = "X-Missing-Nodes"

// listPatience is the default of [Cluster.ListPatience].
const listPatience = time.Second

// maxDescribed is how many sessions a node asks another one for in one call. A session with a long
// restore report takes some 100 KiB of the answer, which the Forwarder bounds.
const maxDescribed = 16

// listed is the body of the call by which a node asks another one for sessions of a list.
type listed struct {
	SessionIDs []string `json:"session_ids"`
}

// listsForNode reports whether another node asks for its sessions of a list.
func listsForNode(c *call) bool {
	h, passed := forward.HopOf(c.Request().Context())
	return passed && h.Purpose == forward.ToAll
}

// elsewhere has the other nodes describe those sessions of a page that live there: only these
// nodes know their clients, their memory and their tickets. It returns the answers by the
// sessions' IDs, and the nodes that have not answered in time. A session that is in neither is as
// the catalogue has it.
func (p *placer) elsewhere(c *call, page []answer.Info) (found map[string]json.RawMessage, missing []string) {
	if p == nil {
		return nil, nil
	}
	at := map[string][]string{}
	for _, s := range page {
		if s.EndedAt.IsZero() && s.NodeID != "" && s.NodeID != p.cluster.Peers.Self() {
			at[s.NodeID] = append(at[s.NodeID], s.ID)
		}
	}
	if len(at) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), cmp.Or(p.cluster.ListPatience, listPatience))
	defer cancel()
	nodes, err := p.cluster.Peers.Nodes(ctx)
	if err != nil {
		return nil, slices.Sorted(maps.Keys(at))
	}
	r := c.Request().Clone(ctx)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(requestIDHeader, c.Response().Header().Get(requestIDHeader))
	found = map[string]json.RawMessage{}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for id, sessions := range at {
		asked.Go(func() {
			for some := range slices.Chunk(sessions, maxDescribed) {
				answers, err := p.describe(r, nodes, id, some)
				mu.Lock()
				maps.Copy(found, answers)
				if err != nil {
					missing = append(missing, id)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	asked.Wait()
	slices.Sort(missing)
	return found, missing
}

// describe asks a node for sessions, as the client of r sees them.
func (p *placer) describe(r *http.Request, nodes []placement.Node, id string, sessions []string) (map[string]json.RawMessage, error) {
	at := slices.IndexFunc(nodes, func(n placement.Node) bool { return n.ID == id && n.Leased() })
	if at < 0 {
		return nil, fault.New(fault.NodeUnavailable, "api.list", "%s", fault.NodeUnavailable.Text())
	}
	body, err := json.Marshal(listed{sessions})
	if err != nil {
		return nil, err
	}
	a, err := p.cluster.Forwarder.Ask(r, nodes[at], p.urls.hop(r, forward.Hop{Purpose: forward.ToAll}), http.MethodGet, r.URL.RequestURI(), bytes.NewReader(body))
	if err := errors.Join(err, a.Fault()); err != nil {
		return nil, err
	}
	var all []json.RawMessage
	if err := json.Unmarshal(a.Body, &all); err != nil {
		return nil, err
	}
	found := map[string]json.RawMessage{}
	for _, one := range all {
		var s struct {
			ID string `json:"session_id"`
		}
		if err := json.Unmarshal(one, &s); err != nil {
			return nil, err
		}
		if slices.Contains(sessions, s.ID) {
			found[s.ID] = one
		}
	}
	return found, nil
}

// listForNode answers another node with those of the sessions that it asks for which live here.
func (h *sessionHandler) listForNode(c *call) error {
	var asked listed
	if _, err := h.bodies.decode(c, &asked); err != nil {
		return err
	}
	here, err := h.inspector.Here(c.Request().Context(), c.caller, asked.SessionIDs)
	if err != nil {
		return err
	}
	answers := make([]any, 0, len(here))
	for _, info := range here {
		answers = append(answers, h.listed(c, info))
	}
	return c.JSON(http.StatusOK, answers)
}

// answerPage answers a list with a page of it, of which other nodes have described some sessions.
func (h *sessionHandler) answerPage(c *call, page []answer.Info) error {
	elsewhere, missing := h.placer.elsewhere(c, page)
	answers := make([]any, 0, len(page))
	for _, info := range page {
		if there, ok := elsewhere[info.ID]; ok {
			answers = append(answers, there)
		} else {
			answers = append(answers, h.listed(c, info))
		}
	}
	if len(missing) > 0 {
		c.Response().Header().Set(missingHeader, strings.Join(missing, ", "))
	}
	return c.JSON(http.StatusOK, answers)
}

// listed returns a session as lists have it.
func (h *sessionHandler) listed(c *call, info answer.Info) answer.Session {
	s := h.urls.sessionAnswer(c.Request(), info)
	if s.Restored != nil {
		s.Restored.Notes = nil // notes could make the page large; the session itself has them
	}
	return s
}
