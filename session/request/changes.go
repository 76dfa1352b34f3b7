package request

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// changeable are the options that a create with resume may change, by their names on the
// wire. Each function sets the option of a resumed session.
var changeable = map[string]func(was *Create, by Create){
	"permission_policy":    func(was *Create, by Create) { was.Overrides.PermissionPolicy = by.Overrides.PermissionPolicy },
	"idle_timeout_seconds": func(was *Create, by Create) { was.Idle = by.Idle },
	"max_lifetime_seconds": func(was *Create, by Create) { was.Lifetime = by.Lifetime },
	"limits":               func(was *Create, by Create) { was.Limits = by.Limits },
	"labels":               func(was *Create, by Create) { was.Labels = by.Labels },
	"default_context":      func(was *Create, by Create) { was.SharedContexts = by.SharedContexts },
	"shared_writes":        func(was *Create, by Create) { was.SharedWrites = by.SharedWrites },
}

// fixed are the options that a resumed session keeps, by their names on the wire.
var fixed = map[string]func(Create) any{
	"agent_name":             func(c Create) any { return c.AgentName },
	"goal":                   func(c Create) any { return c.Goal },
	"engine":                 func(c Create) any { return c.Engine },
	"enable_memory_snapshot": func(c Create) any { return c.AllowMemory },
	"restore_tabs":           func(c Create) any { return c.RestoreTabs },
	"read_only":              func(c Create) any { return c.ReadOnly },
	"persist":                func(c Create) any { return c.Persist },
	"auto_save":              func(c Create) any { return c.AutoSave },
	"restart":                func(c Create) any { return c.Restart },
	"on_timeout":             func(c Create) any { return c.DiscardOnEnd },
	"webhook_url":            func(c Create) any { return c.WebhookURL },
	"record":                 func(c Create) any { return c.Record },
	"passkeys":               func(c Create) any { return c.Passkeys },
	"origins":                func(c Create) any { return c.Origins },
	"extensions":             func(c Create) any { return c.Extensions },
	"viewport":               func(c Create) any { return c.Overrides.Viewport },
	"user_agent":             func(c Create) any { return c.Overrides.UserAgent },
	"locale":                 func(c Create) any { return c.Overrides.Locale },
	"timezone":               func(c Create) any { return c.Overrides.Timezone },
	"geolocation":            func(c Create) any { return c.Overrides.Geolocation },
	"extra_headers":          func(c Create) any { return c.Overrides.ExtraHeaders },
	"proxy":                  func(c Create) any { return c.Overrides.Proxy },
	"egress":                 func(c Create) any { return c.Egress },
	"on_live": func(c Create) any {
		if c.OnLive == OnLiveShare { // a resume requests the session itself
			return OnLiveFail
		}
		return c.OnLive
	},
}

// Unused are the fields of a create that change nothing in a resume.
var Unused = []string{"session_id", "user_id", "resume", "if_missing", "wait_seconds", "start_url", "max_steps", "agent_session_type", "environment_type",
	"restore_from_session_id", "restore_from_environment_id", "restore_default_environment_from_user_id"}

// IsOption reports whether a field of a create is an option of a resume, to change or to
// repeat.
func IsOption(name string) bool { return changeable[name] != nil || fixed[name] != nil }

// Given returns the create with the names of the options that its request has. A resume
// looks at those only.
func (r Create) Given(names []string) Create {
	r.given = slices.Sorted(slices.Values(names))
	return r
}

// Changes returns the names of the options that a create with resume changes in a session.
// An option that cannot change is invalid_field: a caller that names a proxy must not use
// another network path.
func Changes(keys Keys, rec profiles.Session, by Create) (changed []string, err error) {
	if by.UserID != "" && by.UserID != rec.UserID {
		return nil, fault.New(fault.UserMismatch, "session.resume", "user_id: the session to resume belongs to another user")
	}
	if len(by.given) == 0 {
		return nil, nil
	}
	was, err := FromRecord(keys, rec)
	if err != nil {
		return nil, err
	}
	_, changed, err = was.changedBy(by)
	return changed, err
}

// Resumed returns the options of an ended session that a resume makes live: those it was
// created with, and what the resume changes.
func Resumed(keys Keys, rec profiles.Session, by Create) (Create, error) {
	was, err := FromRecord(keys, rec)
	if err != nil {
		return was, err
	}
	now, _, err := was.changedBy(by)
	now.FreshIfNone, now.Wait, now.goBack, now.connects, now.restarts = by.FreshIfNone, by.Wait, by.goBack, by.connects, by.restarts
	now.keptLimits = !slices.Contains(by.given, "limits")
	return now, err
}

// changedBy returns the options of a session as a create with resume changes them, and the
// names of the changes.
func (r Create) changedBy(by Create) (now Create, changed []string, err error) {
	if by.Engine == "" {
		by.Engine = r.Engine
	}
	same, err := Decode(Encode(by)) // as a record has it, so that both have the same form
	if err != nil {
		return r, nil, err
	}
	now = r
	for _, name := range by.given {
		if set := changeable[name]; set != nil {
			before := now
			if set(&now, same); !reflect.DeepEqual(now, before) {
				changed = append(changed, name)
			}
		} else if option := fixed[name]; option != nil && !reflect.DeepEqual(option(r), option(same)) {
			return r, nil, fault.New(fault.InvalidField, "session.resume",
				"%s: a resumed session keeps the one it was created with; leave it out or repeat the same; only %s can change",
				name, strings.Join(slices.Sorted(maps.Keys(changeable)), ", "))
		}
	}
	return now, changed, nil
}

// GoingBackTo returns the create of a resume that starts from an older snapshot of the
// session, with the conversation of that time.
func (r Create) GoingBackTo(snapshotID string) Create {
	r.goBack = snapshotID
	return r
}

// GoesBack reports whether a resume starts from an older snapshot that the caller named.
func (r Create) GoesBack() bool { return r.goBack != "" }
