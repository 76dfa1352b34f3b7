//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session/auditlog"
)

// auditFlags say how long the audit log is kept, and where else it is written.
type auditFlags struct {
	AuditKeep   period `help:"How long an entry of the audit log is kept in the catalogue, such as 400d; 0 for always." default:"400d" placeholder:"TIME"`
	AuditFile   string `help:"File that gets every entry of the audit log too, one JSON object per line." placeholder:"PATH"`
	AuditSyslog bool   `help:"Send every entry of the audit log to the syslog of this machine too."`
}

func (f *auditFlags) check() error {
	if f.AuditKeep < 0 {
		return fault.New(fault.Config, "serve", "--audit-keep: must be 0 or more")
	}
	return nil
}

// openAudit begins the audit log. A file that cannot be opened, or a missing syslog,
// refuses the start.
func (f *auditFlags) openAudit(ctx context.Context, db *sqldb.DB, log *slog.Logger) (_ *auditlog.Log, err error) {
	var sinks []auditlog.Sink
	defer func() {
		if err != nil {
			for _, s := range sinks {
				err = errors.Join(err, s.Close())
			}
		}
	}()
	if f.AuditFile != "" {
		file, err := auditlog.OpenFile(f.AuditFile)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, file)
	}
	if f.AuditSyslog {
		syslog, err := auditlog.OpenSyslog("", "")
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, syslog)
	}
	return auditlog.Open(ctx, auditlog.Config{Store: db.Audit, Owners: struct {
		*sqldb.Sessions
		*sqldb.Snapshots
	}{db.Sessions, db.Snapshots}, Keep: f.AuditKeep.Duration(), Sinks: sinks, Detail: version, Now: time.Now, Log: log})
}
