package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/logincheck"
)

// What callers handle of a login check.
type (
	// LoginCheck is an address and what proves there that somebody is logged in.
	LoginCheck = logincheck.Check
	// LoginOutcome is what a check found.
	LoginOutcome = logincheck.Outcome
	// Condition is one condition of a check, and whether it held in the end.
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

// CheckLogin opens the check's address in a tab of its own, which is hidden
// (Target.createTarget), so that it is no part of the environment, and waits
// until the conditions hold, the page has come to rest without them, or the
// check's time is over. What the site does is
// an outcome; only a Chrome that does not answer, and the end of ctx, are
// errors.
func (b *Browser) CheckLogin(ctx context.Context, c LoginCheck) (LoginOutcome, error) {
	const op = "browser.check"
	// The initialiser attaches to hidden targets in the shell alone.
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
		return outcome, asBrowserFault(ctx, ctx.Err(), op, "the check was given up")
	}
	return outcome, nil
}
