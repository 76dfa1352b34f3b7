package session

import (
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/auditlog"
)

// lastAct keeps the last act.
type lastAct struct{ auditlog.Act }

func (l *lastAct) Record(a auditlog.Act) { l.Act = a }

// The entry of a refused connection names its host. An address follows the host's name at will, so
// it is the object only if there is no host.
func TestAuditedRefusals(t *testing.T) {
	for _, x := range []struct {
		data map[string]any
		want string
	}{
		{map[string]any{"address": "10.0.0.1:80", "protocol": "tcp"}, "10.0.0.1:80"},
		{map[string]any{"host": "internal.example", "address": "10.0.0.1", "protocol": "dns"}, "internal.example"},
		{map[string]any{"host": "internal.example", "protocol": "dns"}, "internal.example"},
	} {
		var log lastAct
		sessionAudit{log: &log}.page(browser.PageEvent{Kind: browser.EventRefused, Data: x.data})
		if log.Call != auditlog.EgressRefused || log.Object != x.want || log.Repeats.Key != x.want {
			t.Errorf("%v: %+v", x.data, log.Act)
		}
	}
}
