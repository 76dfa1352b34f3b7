package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/logincheck"
)

// The types that callers need for a login check.
type (
	// LoginCheck is an address and the conditions that show there that a user is logged in.
	LoginCheck = logincheck.Check
	// LoginOutcome is the result of a check.
	LoginOutcome = logincheck.Outcome
	// Condition is one condition of a check, and whether it held at the end.
	Condition = logincheck.Condition
)

// Kinds of conditions.
const (
	ConditionStatus   = logincheck.ConditionStatus
	ConditionSelector = logincheck.ConditionSelector
	ConditionAbsent   = logincheck.ConditionAbsent
	ConditionText     = logincheck.ConditionText
	ConditionCookie   = logincheck.ConditionCookie
)

// CheckLogin opens the check's address in a separate hidden tab (Target.createTarget),
// which is not part of the environment. It waits until the conditions hold, until the
// page has settled without them, or until the check's time has passed. Whatever the site
// does is an outcome. Only a Chrome that does not answer and the end of ctx are errors.
func (b *Browser) CheckLogin(ctx context.Context, c LoginCheck) (LoginOutcome, error) {
	const op = "browser.check"
	// Only in the shell does the initialiser attach to hidden targets.
	tab, err := logincheck.Open(ctx, b.driver, b.targets, b.shell())
	if err != nil {
		return LoginOutcome{}, asBrowserFault(ctx, err, op, "a tab could not be opened")
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	outcome := tab.Judge(limited, c)
	if err := tab.Close(ctx); err != nil {
		return outcome, asBrowserFault(ctx, err, op, "the tab could not be closed")
	}
	if ctx.Err() != nil {
		return outcome, asBrowserFault(ctx, ctx.Err(), op, "the check was cancelled")
	}
	return outcome, nil
}
