package main

import (
	"context"
	"strconv"
	"time"

	"github.com/stasisd/stasis/client"
)

// auditCmd holds the verbs for the audit log of a running daemon, and for files of it.
type auditCmd struct {
	List   auditListCmd   `cmd:"" help:"List who did what, newest first. The key needs the right admin."`
	Verify auditVerifyCmd `cmd:"" help:"Check that no entry of the audit log was changed or removed."`
}

type auditListCmd struct {
	remoteDaemon
	printed
	User    string `help:"List only acts on the data of this user." env:"-"`
	KeyID   string `help:"List only acts of the key with this ID." name:"key-id" env:"-"`
	Call    string `help:"List only this call, by its operationId, such as createSession, or this act of the daemon." env:"-"`
	Session string `help:"List only acts on this session." env:"-"`
	Object  string `help:"List only acts on this snapshot, key, link or extension." env:"-"`
	Outcome string `help:"List only acts with this outcome: ok, refused or failed." env:"-"`
	Since   string `help:"List only entries from this time on, such as 24h ago (24h), or 2026-11-27T06:00:00Z." placeholder:"TIME" env:"-"`
	Until   string `help:"List only entries before this time." placeholder:"TIME" env:"-"`
	Others  bool   `help:"List only acts on data of another user than the key's." env:"-"`
	Limit   int    `help:"List at most this many; 0 lists all." default:"50" env:"-"`
}

// Run prints a line for each entry.
func (c *auditListCmd) Run(ctx context.Context) error {
	f := client.AuditFilter{UserID: c.User, KeyID: c.KeyID, Call: c.Call, SessionID: c.Session, Object: c.Object, Outcome: c.Outcome, Others: c.Others}
	var err error
	if f.Since, err = timeOrAgo("--since", c.Since); err != nil {
		return err
	}
	if f.Until, err = timeOrAgo("--until", c.Until); err != nil {
		return err
	}
	list, err := take(c.Limit, c.api().Audit(ctx, f))
	if err != nil {
		return c.explain(err)
	}
	return c.print(list, func() error {
		t := newTable("NUMBER", "TIME", "BY", "ADDRESS", "CALL", "COUNT", "OUTCOME", "USER", "SESSION", "SNAPSHOT", "OBJECT", "DETAIL")
		for _, e := range list {
			t.row(strconv.FormatInt(e.Number, 10), local(&e.At), actor(e), e.Address, e.Call, strconv.FormatInt(e.Count, 10), outcome(e), e.UserID, e.SessionID, e.SnapshotID, e.Object, e.Detail)
		}
		return t.Flush()
	})
}

// actor says who acted: a key, or what acted without one.
func actor(e client.AuditEntry) string {
	if e.KeyID == "" || e.By == "first_key" {
		return e.By
	}
	return e.By + " " + e.KeyID
}

// outcome says how an act ended.
func outcome(e client.AuditEntry) string {
	if e.Code == "" {
		return e.Outcome
	}
	return e.Outcome + " " + e.Code
}

// timeOrAgo parses a time, or how long ago it was; "" is the zero time.
func timeOrAgo(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	var ago period
	if err := ago.UnmarshalText([]byte(text)); err != nil || ago < 0 {
		return time.Time{}, exitError{exitUsage, flag + ": must be a time, such as 2026-11-27T06:00:00Z, or how long ago it was, such as 24h or 7d"}
	}
	return time.Now().Add(-ago.Duration()), nil
}
