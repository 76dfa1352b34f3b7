package session

import (
	"context"
	"strconv"
	"sync"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/rescue"
	"github.com/stasisd/stasis/session/save"
)

// running returns a live session if the caller has the permission for it. An ended
// session is session_not_running.
func (s *Service) running(ctx context.Context, c access.Caller, id string, p access.Permission) (*liveSession, error) {
	if l := s.sessions.Find(id); l != nil && l.rights.Allow(c, p) == nil {
		return l, nil
	}
	rec, err := s.inspector.Record(ctx, c, id, p)
	if err != nil {
		return nil, err
	}
	if livesElsewhere(s.deps.Node, rec) {
		return nil, ErrMoving
	}
	if s.rescues.Has(id) {
		return nil, fault.New(fault.SessionEnding, "session.find", "session %s has failed (%s), and its data is being rescued; try again later", id, rescue.Killed)
	}
	return nil, notRunning(id)
}

// endEach ends sessions in parallel, at most Config.Savers at once.
func (s *Service) endEach(ctx context.Context, c access.Caller, ids []string, r request.End) (save.EndAnswer, error) {
	total := save.EndAnswer{Success: true, Message: "no session is running"}
	gate := make(chan struct{}, max(s.cfg.Savers, 1))
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		first error
		n     int
		kept  int // defaults that were not moved although r asks for it
	)
	for _, id := range ids {
		group.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			a, err := s.End(ctx, c, id, r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first = err
			}
			if err == nil && a.Deleted {
				n++
				total.UnsavedChanges = total.UnsavedChanges || a.UnsavedChanges
				if a.Code != "" {
					kept++
					total.Success, total.Code = false, a.Code
				}
			}
		})
	}
	group.Wait()
	if n > 0 {
		total.Deleted, total.Ended = true, n
		total.Message = plural(n) + " ended"
		if kept > 0 {
			total.Message += "; the default was not moved for " + plural(kept) + ", because it had moved since they started from it"
		}
	}
	return total, first
}

func plural(n int) string {
	if n == 1 {
		return "1 session"
	}
	return strconv.Itoa(n) + " sessions"
}
