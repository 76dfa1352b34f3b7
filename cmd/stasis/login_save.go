package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/client"
)

// endAnswer is the part of the answer to an end of a session that the command uses.
type endAnswer struct {
	Code     string
	Snapshot *savedSnapshot
	Default  *struct {
		Moved      bool
		Version    int
		Reason     string
		LoginCheck *loginCheck `json:"login_check"`
	}
}

// savedSnapshot says what was saved.
type savedSnapshot struct {
	ID     string
	Logins []struct {
		Site        string
		ExpectedEnd *time.Time `json:"expected_end"`
		Expired     bool
	}
	Components []struct {
		Name, Origin   string
		Saved, Dropped int
	}
}

// loginCheck is the result of the user's login check.
type loginCheck struct {
	LoggedIn   bool `json:"logged_in"`
	URL        string
	Status     int
	Error      string
	Conditions []struct {
		Kind string
		Held bool
	}
}

// save ends the session with a save, and then makes the snapshot the user's default, unless
// there is reason to doubt the login and the person does not want that.
func (l *handLogin) save(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var saved endAnswer
	how := client.EndOptions{Mode: "filesystem"}
	if err := l.end(ctx, how, &saved); err != nil {
		return interrupted(ctx, err, "interrupted during the save; GET /v1/sessions/"+l.session+" shows what was saved")
	}
	if saved.Snapshot == nil {
		return exitError{exitFailed, "the session had already ended; nothing was saved"}
	}
	if doubt := l.doubt(*saved.Snapshot); doubt != "" && !l.SaveAnyway {
		if err := l.confirm(doubt, saved.Snapshot.ID); err != nil {
			return err
		}
	}
	// The person has just logged in, so this environment is the newest.
	how.SaveAsDefault, how.Conflict = true, "overwrite"
	advice := l.howToMove(saved.Snapshot.ID)
	if err := l.end(ctx, how, &saved); err != nil {
		return interrupted(ctx, exitError{exitFailed, err.Error() + "; " + advice}, "interrupted; "+advice)
	}
	return l.saved(ctx, saved)
}

// doubt returns why the session may hold no new login; "" if it seems to.
func (l *handLogin) doubt(s savedSnapshot) string {
	switch {
	case l.unopened != "":
		return l.unopened
	case len(s.Logins) == 0:
		return "no login was recognised in the session"
	}
	return ""
}

// sentence returns a text with a capital first letter.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// confirm asks whether the snapshot should become the default in spite of a doubt. Without a
// terminal, and if the answer is no, it returns an error.
func (l *handLogin) confirm(doubt, snapshot string) error {
	kept := exitError{exitFailed, doubt + "; " + l.howToMove(snapshot)}
	if !l.terminal {
		kept.message += ", or repeat the command with --save-anyway"
		return kept
	}
	a, err := l.ask(sentence(doubt)+". Make it the default of "+l.user+" anyway?", nil)
	if err != nil || a == answeredYes {
		return err
	}
	return kept
}

// howToMove names the call that makes a saved snapshot the default.
func (l *handLogin) howToMove(snapshot string) string {
	return fmt.Sprintf(`the session was saved as snapshot %s, and the default of %s stays as it was; to make the snapshot the default: PUT %s with {"snapshot_id": %q}`,
		snapshot, l.user, defaultPath(l.user), snapshot)
}

// saved reports a save to the person. It returns an error if the default did not move, or is
// not logged in.
func (l *handLogin) saved(ctx context.Context, e endAnswer) error {
	d := e.Default
	if d == nil || !d.Moved {
		why := ""
		if d != nil {
			l.printCheck(d.LoginCheck)
			why = d.Reason + "; "
		}
		return exitError{exitFailed, "the default did not move: " + why + l.howToMove(e.Snapshot.ID)}
	}
	l.say("Saved as version %d of the default of %s.\n", d.Version, l.user)
	l.printLogins(*e.Snapshot)
	check := d.LoginCheck
	if check == nil {
		var err error
		if check, err = l.check(ctx); err != nil {
			l.say("The login check could not be made: %s\n", err)
			return nil // the login is saved
		}
	}
	l.printCheck(check)
	if check != nil && !check.LoggedIn {
		return exitError{exitFailed, "the login was saved, but the login check failed; " + l.howToReturn()}
	}
	return nil
}

// howToReturn names the call that takes the save back.
func (l *handLogin) howToReturn() string {
	if l.before.Version == 0 || l.before.SnapshotID == "" {
		return "to remove the default: DELETE " + defaultPath(l.user)
	}
	return fmt.Sprintf(`to go back to version %d: PUT %s with {"snapshot_id": %q}`, l.before.Version, defaultPath(l.user), l.before.SnapshotID)
}

// endedElsewhere reports what became of a session that this command did not end. It returns
// nil if it was saved as the user's default.
func (l *handLogin) endedElsewhere(ctx context.Context) error {
	var s struct {
		Status  string
		Reason  string
		Outcome *endAnswer
	}
	if err := l.call(ctx, http.MethodGet, "/v1/sessions/"+url.PathEscape(l.session), nil, &s); err != nil {
		return err
	}
	why := "the session has ended: " + s.Status
	if s.Reason != "" {
		why += ", " + s.Reason
	}
	switch o := s.Outcome; {
	case o == nil || o.Snapshot == nil:
		return exitError{exitFailed, why + "; nothing was saved"}
	case o.Code == "version_conflict":
		return exitError{exitFailed, why + "; the default has moved since it began; choose \"Overwrite\" in the live view, or do it here: " + l.howToMove(o.Snapshot.ID)}
	case o.Default == nil || !o.Default.Moved:
		return exitError{exitFailed, why + "; " + l.howToMove(o.Snapshot.ID)}
	default:
		l.say("The session was saved and ended elsewhere.\n")
		return l.saved(ctx, *o)
	}
}

// check runs the user's login check on the default; nil if the user has none.
func (l *handLogin) check(ctx context.Context) (*loginCheck, error) {
	var check loginCheck
	err := l.call(ctx, http.MethodPost, defaultPath(l.user)+"/check", nil, &check)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == "no_login_check" {
		return nil, nil
	}
	return &check, err
}

func (l *handLogin) printCheck(c *loginCheck) {
	if c == nil {
		return
	}
	if c.LoggedIn {
		l.say("Login check: logged in.\n")
		return
	}
	why := c.Error
	for _, condition := range c.Conditions {
		if !condition.Held && c.Error == "" {
			why += ", " + condition.Kind + " does not hold"
		}
	}
	if c.URL != "" {
		why += " at " + c.URL
	}
	l.say("Login check: not logged in: %s\n", strings.TrimPrefix(why, ", "))
}

// printLogins prints, for each site with a login, when it is expected to end and how many
// items of the site were saved.
func (l *handLogin) printLogins(s savedSnapshot) {
	if len(s.Logins) == 0 {
		l.say("No login was recognised in it. If you did log in, restore the default and look.\n")
		return
	}
	here := false
	for _, login := range s.Logins {
		until := "end unknown"
		switch {
		case login.Expired:
			until = "has expired"
		case login.ExpectedEnd != nil:
			until = "until about " + login.ExpectedEnd.Local().Format(time.DateTime)
		}
		l.say("  %s: %s%s\n", login.Site, until, s.itemsOf(login.Site))
		here = here || isOf(l.site.Hostname(), login.Site)
	}
	if !here {
		l.say("No login was recognised at %s itself.\n", l.site.Hostname())
	}
}

// itemsOf returns what was saved of a site, such as "; 3 cookies, 1 local_storage".
func (s savedSnapshot) itemsOf(site string) string {
	var names []string
	count := map[string]int{}
	for _, c := range s.Components {
		host := c.Origin
		if at, err := url.Parse(c.Origin); err == nil && at.Host != "" {
			host = at.Hostname()
		}
		if n := c.Saved - c.Dropped; n > 0 && isOf(strings.TrimPrefix(host, "."), site) {
			if count[c.Name] == 0 {
				names = append(names, c.Name)
			}
			count[c.Name] += n
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, count[name])
	}
	if len(names) == 0 {
		return ""
	}
	return "; saved " + strings.Join(names, ", ")
}

// isOf reports whether a host belongs to a site.
func isOf(host, site string) bool { return host == site || strings.HasSuffix(host, "."+site) }
