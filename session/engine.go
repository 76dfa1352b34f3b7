package session

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/settings"
)

// engineOf decides in which engine a create runs: in the one that it names, else
// the user's own, else the daemon's. Unsupported where that is not there, or has
// no use for what the create asks for.
func (s *Service) engineOf(ctx context.Context, r Create, userID string) (string, error) {
	engine := r.Engine
	if engine == "" {
		set, err := s.users.For(ctx, userID)
		if err != nil && !fault.Is(err, fault.UserNotFound) {
			return "", err
		}
		engine = settings.Given(set.Engine)
	}
	if engine == "" {
		engine = s.cfg.Engine
	}
	if engine == "" {
		engine = browser.EngineChrome
	}
	if engine == browser.EngineShell && len(r.Extensions) > 0 {
		return "", fault.New(fault.Unsupported, "session.create",
			"extensions: the shell engine has none; leave them out, or ask for engine chrome")
	}
	return engine, s.Browsers.Has(engine)
}
