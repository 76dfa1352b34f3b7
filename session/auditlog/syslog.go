package auditlog

import (
	"log/syslog"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Syslog gives the log to the machine's syslog, with the facility authpriv. It does not
// know what syslog has, so it begins with the entries of this start.
type Syslog struct{ to *syslog.Writer }

// OpenSyslog connects to syslog: over a network ("unixgram", for example) at an address, or
// to that of this machine if both are "". A missing syslog is a config fault.
func OpenSyslog(network, address string) (*Syslog, error) {
	to, err := syslog.Dial(network, address, syslog.LOG_AUTHPRIV|syslog.LOG_NOTICE, "stasis")
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, "auditlog.syslog", "--audit-syslog: no syslog answers on this machine")
	}
	return &Syslog{to}, nil
}

// Name implements [Sink].
func (s *Syslog) Name() string { return "syslog" }

// Last implements [Sink].
func (s *Syslog) Last() profiles.AuditEntry { return profiles.AuditEntry{} }

// Write implements [Sink]. After an error, lines before the one that failed are sent again.
func (s *Syslog) Write(lines [][]byte) error {
	for _, line := range lines {
		if _, err := s.to.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [Sink].
func (s *Syslog) Close() error { return s.to.Close() }
