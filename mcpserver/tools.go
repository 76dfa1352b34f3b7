package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stasisd/stasis/client"
)

type startInput struct {
	User     string `json:"user,omitempty" jsonschema:"whose saved environment is restored; by default the user that this server was started for (--user), else the user of its API key"`
	Snapshot string `json:"snapshot,omitempty" jsonschema:"the ID of a saved environment to restore instead of the user's default"`
	Fresh    bool   `json:"fresh,omitempty" jsonschema:"start with an empty environment, if the user has no saved one yet"`
	URL      string `json:"url,omitempty" jsonschema:"a page to open at once"`
	Engine   string `json:"engine,omitempty" jsonschema:"chrome or shell (the headless shell, which starts faster); by default the one that saved the environment"`
}

type session struct {
	ID       string   `json:"session_id"`
	User     string   `json:"user"`
	Status   string   `json:"status"`
	CDPURL   string   `json:"cdp_url,omitempty" jsonschema:"the WebSocket of the browser; a secret"`
	Expires  string   `json:"expires_at"`
	Restored string   `json:"restored_snapshot,omitempty"`
	Warnings []string `json:"warnings,omitempty" jsonschema:"what of the environment was not restored"`
}

func sessionOf(s *client.Session) session {
	out := session{ID: s.ID, User: s.UserID, Status: s.Status, CDPURL: s.CDPURL, Expires: s.ExpiresAt.Format(time.RFC3339)}
	if s.Restored != nil {
		out.Restored, out.Warnings = s.Restored.SnapshotID, s.Restored.Warnings
	}
	return out
}

func (s *server) start(ctx context.Context, api *client.Client, in startInput) (session, error) {
	if in.Fresh && in.Snapshot != "" {
		return session{}, errors.New("fresh: must not be true together with snapshot")
	}
	user := cmp.Or(in.User, s.User)
	o := client.CreateOptions{UserID: user, Engine: in.Engine, StartURL: in.URL}
	switch {
	case in.Snapshot != "":
		o.FromEnvironment = in.Snapshot
	case in.Fresh:
	default:
		var err error
		if user, err = s.user(ctx, api, user); err != nil {
			return session{}, err
		}
		o.FromDefaultOf = user
	}
	started, err := api.CreateSession(ctx, o)
	if hasCode(err, "no_snapshot") && o.FromDefaultOf != "" {
		return session{}, noDefault(ctx, api, user)
	}
	if err != nil {
		return session{}, err
	}
	return sessionOf(started), nil
}

func hasCode(err error, code string) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Code == code
}

// noDefault is the error for a user without a default environment. It names the newest
// snapshot of the user, if there is one.
func noDefault(ctx context.Context, api *client.Client, user string) error {
	for newest, err := range api.Snapshots(ctx, user) {
		if err != nil {
			break // a key without the right to view, for example
		}
		return fmt.Errorf("no_snapshot: user %q has no default environment, but has saved snapshots; the newest is %s of %s (logged in: %s); call start_session with snapshot: %s, "+
			"and later save_session with as_default: true, which makes it the default", user, newest.ID, newest.CreatedAt.Format(time.RFC3339), cmp.Or(strings.Join(sitesOf(&newest), ", "), "no site"), newest.ID)
	}
	return fmt.Errorf("no_snapshot: user %q has no default environment; call start_session with fresh: true, let a person log in with live_link and control: true, then call save_session with as_default: true", user)
}

// user returns the named user, or that of the API key.
func (s *server) user(ctx context.Context, api *client.Client, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	me, err := api.Me(ctx)
	if err != nil {
		return "", err
	}
	return me.UserID, nil
}

type userInput struct {
	User string `json:"user,omitempty" jsonschema:"only of this user; by default the user that this server was started for (--user), else all users of its API key"`
}

type sessions struct {
	Sessions []session `json:"sessions"`
}

func (s *server) list(ctx context.Context, api *client.Client, in userInput) (sessions, error) {
	out := sessions{Sessions: []session{}}
	for _, status := range []string{"ready", "running", "paused"} {
		for found, err := range api.Sessions(ctx, client.ListSessions{Status: status, UserID: cmp.Or(in.User, s.User)}) {
			if err != nil {
				return out, err
			}
			out.Sessions = append(out.Sessions, sessionOf(&found))
		}
	}
	return out, nil
}

// longestLink is how long a live link may be valid, in minutes: 7 days.
const longestLink = 7 * 24 * 60

type linkInput struct {
	Session string `json:"session_id" jsonschema:"the session"`
	Control bool   `json:"control,omitempty" jsonschema:"the person may click and type, for example to log in; without it the person only watches"`
	Minutes int    `json:"minutes,omitempty" jsonschema:"how long the link is valid, from 1 to 10080; by default 30"`
}

type link struct {
	URL     string `json:"url" jsonschema:"for the person; a secret"`
	Expires string `json:"expires_at"`
}

func (s *server) share(ctx context.Context, api *client.Client, in linkInput) (link, error) {
	if in.Minutes < 0 || in.Minutes > longestLink {
		return link{}, fmt.Errorf("minutes: must be from 1 to %d", longestLink)
	}
	made, err := api.Share(ctx, in.Session, in.Control, time.Duration(cmp.Or(in.Minutes, 30))*time.Minute)
	if err != nil {
		return link{}, err
	}
	return link{made.URL, made.ExpiresAt.Format(time.RFC3339)}, nil
}

// sitesOf returns the sites of a snapshot with a login that has not expired.
func sitesOf(s *client.Snapshot) []string {
	sites := []string{}
	for _, l := range s.Logins {
		if !l.Expired {
			sites = append(sites, l.Site)
		}
	}
	return sites
}

type snapshot struct {
	ID      string   `json:"id"`
	User    string   `json:"user"`
	Created string   `json:"created_at"`
	Label   string   `json:"label,omitempty"`
	Sites   []string `json:"sites" jsonschema:"the sites that look logged in"`
}

type snapshots struct {
	Snapshots []snapshot `json:"snapshots"`
}

// listed is how many snapshots a list shows.
const listed = 50

func (s *server) snapshots(ctx context.Context, api *client.Client, in userInput) (snapshots, error) {
	out := snapshots{Snapshots: []snapshot{}}
	for found, err := range api.Snapshots(ctx, cmp.Or(in.User, s.User)) {
		if err != nil {
			return out, err
		}
		out.Snapshots = append(out.Snapshots, snapshot{found.ID, found.UserID, found.CreatedAt.Format(time.RFC3339), found.Label, sitesOf(&found)})
		if len(out.Snapshots) == listed {
			break
		}
	}
	return out, nil
}

type checkInput struct {
	User string `json:"user,omitempty" jsonschema:"whose default environment is checked; by default as in start_session"`
}

type checked struct {
	LoggedIn bool   `json:"logged_in"`
	URL      string `json:"url,omitempty" jsonschema:"where the page ended after redirects"`
	Error    string `json:"error,omitempty" jsonschema:"why the check has no result"`
}

func (s *server) check(ctx context.Context, api *client.Client, in checkInput) (checked, error) {
	user, err := s.user(ctx, api, cmp.Or(in.User, s.User))
	if err != nil {
		return checked{}, err
	}
	outcome, err := api.CheckLogin(ctx, user)
	if hasCode(err, "default_not_found") {
		return checked{}, noDefault(ctx, api, user)
	}
	if err != nil {
		return checked{}, err
	}
	return checked{outcome.LoggedIn, outcome.URL, outcome.Error}, nil
}
