package mcpserver

import (
	"cmp"
	"context"
	"time"

	"github.com/stasisd/stasis/client"
)

type startInput struct {
	User     string `json:"user,omitempty" jsonschema:"the user whose saved environment is restored"`
	Snapshot string `json:"snapshot,omitempty" jsonschema:"the ID of a saved environment to restore instead of the user's default"`
	Fresh    bool   `json:"fresh,omitempty" jsonschema:"start with an empty environment; without it, a user without a saved environment is an error"`
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

func (s *server) start(ctx context.Context, in startInput) (session, error) {
	user := cmp.Or(in.User, s.User)
	o := client.CreateOptions{UserID: user, Engine: in.Engine, StartURL: in.URL}
	switch {
	case in.Snapshot != "":
		o.FromEnvironment = in.Snapshot
	case in.Fresh:
	default:
		var err error
		if o.FromDefaultOf, err = s.user(ctx, user); err != nil {
			return session{}, err
		}
	}
	started, err := s.api.CreateSession(ctx, o)
	if err != nil {
		return session{}, err
	}
	return sessionOf(started), nil
}

// user returns the named user, or that of the API key.
func (s *server) user(ctx context.Context, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	me, err := s.api.Me(ctx)
	if err != nil {
		return "", err
	}
	return me.UserID, nil
}

type userInput struct {
	User string `json:"user,omitempty" jsonschema:"only of this user"`
}

type sessions struct {
	Sessions []session `json:"sessions"`
}

func (s *server) list(ctx context.Context, in userInput) (sessions, error) {
	out := sessions{Sessions: []session{}}
	for _, status := range []string{"ready", "running", "paused"} {
		for found, err := range s.api.Sessions(ctx, client.ListSessions{Status: status, UserID: cmp.Or(in.User, s.User)}) {
			if err != nil {
				return out, err
			}
			out.Sessions = append(out.Sessions, sessionOf(&found))
		}
	}
	return out, nil
}

type portInput struct {
	Session string `json:"session_id" jsonschema:"the session"`
	Port    int    `json:"port,omitempty" jsonschema:"the port of this machine; by default a free one"`
}

type port struct {
	Address string `json:"address" jsonschema:"such as http://127.0.0.1:9222; the port closes with the session or with this server"`
}

func (s *server) attach(_ context.Context, in portInput) (port, error) {
	address, err := s.Attach(s.ctx, in.Session, in.Port)
	return port{address}, err
}

type linkInput struct {
	Session string `json:"session_id" jsonschema:"the session"`
	Control bool   `json:"control,omitempty" jsonschema:"the person may click and type, for example to log in; without it the person only watches"`
	Minutes int    `json:"minutes,omitempty" jsonschema:"how long the link is valid; by default 30"`
}

type link struct {
	URL     string `json:"url" jsonschema:"for the person; a secret"`
	Expires string `json:"expires_at"`
}

func (s *server) share(ctx context.Context, in linkInput) (link, error) {
	made, err := s.api.Share(ctx, in.Session, in.Control, time.Duration(cmp.Or(in.Minutes, 30))*time.Minute)
	if err != nil {
		return link{}, err
	}
	return link{made.URL, made.ExpiresAt.Format(time.RFC3339)}, nil
}

type saveInput struct {
	Session   string `json:"session_id" jsonschema:"the session"`
	AsDefault bool   `json:"as_default,omitempty" jsonschema:"the next start_session of the user restores it"`
	End       bool   `json:"end,omitempty" jsonschema:"end the session after the save"`
}

type saved struct {
	Snapshot string   `json:"snapshot" jsonschema:"the ID of the saved environment"`
	Default  bool     `json:"is_default" jsonschema:"whether it is the user's default now"`
	Message  string   `json:"message"`
	Sites    []string `json:"sites" jsonschema:"the sites that look logged in"`
}

func (s *server) save(ctx context.Context, in saveInput) (saved, error) {
	var done *client.EndResult
	var err error
	if in.End {
		done, err = s.api.EndSession(ctx, in.Session, client.EndOptions{Mode: "filesystem", SaveAsDefault: in.AsDefault})
	} else {
		done, err = s.api.Checkpoint(ctx, in.Session, client.CheckpointOptions{SaveAsDefault: in.AsDefault})
	}
	if err != nil {
		return saved{}, err
	}
	out := saved{Message: done.Message, Default: done.Default != nil && done.Default.Moved, Sites: []string{}}
	if done.Snapshot != nil {
		out.Snapshot, out.Sites = done.Snapshot.ID, sitesOf(done.Snapshot)
	}
	return out, nil
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

type endInput struct {
	Session string `json:"session_id" jsonschema:"the session"`
}

type ended struct {
	Message string `json:"message"`
}

func (s *server) end(ctx context.Context, in endInput) (ended, error) {
	done, err := s.api.EndSession(ctx, in.Session, client.EndOptions{})
	if err != nil {
		return ended{}, err
	}
	return ended{done.Message}, nil
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

func (s *server) snapshots(ctx context.Context, in userInput) (snapshots, error) {
	out := snapshots{Snapshots: []snapshot{}}
	for found, err := range s.api.Snapshots(ctx, cmp.Or(in.User, s.User)) {
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
	User string `json:"user,omitempty" jsonschema:"the user whose default environment is checked"`
}

type checked struct {
	LoggedIn bool   `json:"logged_in"`
	URL      string `json:"url,omitempty" jsonschema:"where the page ended after redirects"`
	Error    string `json:"error,omitempty" jsonschema:"why the check has no result"`
}

func (s *server) check(ctx context.Context, in checkInput) (checked, error) {
	user, err := s.user(ctx, cmp.Or(in.User, s.User))
	if err != nil {
		return checked{}, err
	}
	outcome, err := s.api.CheckLogin(ctx, user)
	if err != nil {
		return checked{}, err
	}
	return checked{outcome.LoggedIn, outcome.URL, outcome.Error}, nil
}
