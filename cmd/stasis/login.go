package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/stasisd/stasis/client"
)

// loginCmd lets a person log in by hand and saves the login: in the live view of a session,
// or in this machine's own Chrome.
type loginCmd struct {
	remoteDaemon
	User       string        `help:"User whose default environment gets the login; by default the key's user." env:"-"`
	Fresh      bool          `help:"Start with an empty environment instead of the user's default." env:"-"`
	NoOpen     bool          `help:"Print the address of the live view, and do not open it in this machine's browser." env:"-"`
	SaveAnyway bool          `help:"Make the session the default even if no login is recognised in it, or the first page could not be opened." env:"-"`
	Timeout    time.Duration `help:"The daemon ends the session after this time, such as 30m; by default after 6 hours." env:"-"`
	Local      bool          `help:"Log in with a fresh profile of this machine's own Chrome, for sites that refuse headless browsers." env:"-"`
	Chrome     string        `help:"With --local: the Chrome to run; by default it is searched under the usual names." placeholder:"PATH" env:"-"`
	Site       string        `arg:"" help:"The address to log in at, such as example.com/login. Without http:// it gets https://."`
}

// loginIdle is how long the session waits for a person before it ends, in seconds.
const loginIdle = 3600

// longestLogin is the longest lifetime that the daemon accepts for a session.
const longestLogin = 168 * time.Hour

// handLogin is one run of the command.
type handLogin struct {
	*loginCmd
	*person
	user    string
	site    *url.URL
	before  remoteDefault // the user's default before the login
	session string        // the ID of the session to save
	// unopened is why the first page could not be opened; "" if it was.
	unopened string
	period   time.Duration // between two checks that the session is live; 0: watchPeriod
}

// Run opens a session, or the person's own Chrome, and waits. Then it saves the session as
// the user's default. An interruption discards it, once the person has confirmed that.
func (c *loginCmd) Run(ctx context.Context) error {
	l, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	var stop func()
	l.person, stop = newPerson()
	defer stop()
	// From here on Ctrl-C is a question to the person, not the end of ctx.
	return l.run(context.WithoutCancel(ctx))
}

// prepare checks the arguments and reads what the user has now.
func (c *loginCmd) prepare(ctx context.Context) (l *handLogin, err error) {
	l = &handLogin{loginCmd: c}
	if l.site, err = siteAddress(c.Site); err != nil {
		return nil, err
	}
	if c.Timeout < 0 {
		return nil, exitError{exitUsage, "--timeout: must not be negative"}
	}
	if c.Timeout > longestLogin {
		return nil, exitError{exitUsage, fmt.Sprintf("--timeout: must be at most %dh", int(longestLogin.Hours()))}
	}
	if c.Local {
		if err := c.canRunChrome(); err != nil {
			return nil, err
		}
	}
	if l.user, err = c.user(ctx); err != nil {
		return nil, err
	}
	l.before, err = c.currentDefault(ctx, l.user)
	return l, err
}

// run waits for the person and saves the login.
func (l *handLogin) run(ctx context.Context) error {
	login := l.inLiveView
	if l.Local {
		login = l.inOwnChrome
	}
	err := login(ctx)
	switch {
	case err == nil:
		return l.save(ctx)
	case errors.As(err, new(sessionOver)):
		return l.endedElsewhere(ctx)
	case errors.Is(err, errDiscard):
		return exitError{exitInterrupted, "the login was discarded; nothing was saved"}
	case errors.Is(err, errInputEnded):
		return exitError{exitFailed, "the input ended before Enter; the session was discarded, nothing was saved"}
	default:
		return err
	}
}

// ownMachine matches the start of an address without a scheme whose server is on this machine. Such
// a server rarely has a certificate.
var ownMachine = regexp.MustCompile(`^(?i:localhost|127\.[0-9.]+|\[::1\])(?::|/|$)`)

// siteAddress reads the argument SITE. Without a scheme it is https, and http on this machine.
func siteAddress(site string) (*url.URL, error) {
	if !strings.Contains(site, "://") {
		scheme := "https://"
		if ownMachine.MatchString(site) {
			scheme = "http://"
		}
		site = scheme + site
	}
	at, err := url.Parse(site)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, exitError{exitUsage, "SITE: must be the address of a page, such as example.com/login or http://127.0.0.1:8000/"}
	}
	return at, nil
}

// user returns --user, or the user of the key.
func (c *loginCmd) user(ctx context.Context) (string, error) {
	if c.User != "" {
		return c.User, nil
	}
	var me struct {
		UserID string `json:"user_id"`
	}
	return me.UserID, c.call(ctx, http.MethodGet, "/v1/me", nil, &me)
}

// remoteDefault is the part of a user's default that the command uses. Version 0: none.
type remoteDefault struct {
	Version    int
	SnapshotID string `json:"snapshot_id"`
}

func (c *loginCmd) currentDefault(ctx context.Context, user string) (d remoteDefault, err error) {
	err = c.call(ctx, http.MethodGet, defaultPath(user), nil, &d)
	var refused *client.Error
	if errors.As(err, &refused) && (refused.Code == "default_not_found" || refused.Code == "user_not_found") {
		return remoteDefault{}, nil
	}
	return d, err
}

func defaultPath(user string) string { return "/v1/users/" + url.PathEscape(user) + "/default" }

// namesArgument makes the error of a refused create name the arguments of the command, not
// the fields of the call.
func namesArgument(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	for field, argument := range map[string]string{"start_url": "SITE", "url": "SITE", "user_id": "--user", "max_lifetime_seconds": "--timeout"} {
		if why, ok := strings.CutPrefix(refused.Message, field+":"); ok {
			return exitError{exitUsage, argument + ":" + why}
		}
	}
	return err
}
