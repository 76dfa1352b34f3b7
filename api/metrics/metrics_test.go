package metrics

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/save"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("%d, %s", w.Code, w.Header().Get("Content-Type"))
	}
	return w.Body.String()
}

// Everything that is counted is exported, and what never happened is exported as 0. A value
// that cannot be read is left out and hides no other.
func TestMetrics(t *testing.T) {
	m := New("1.2.3")
	var broken error
	m.AddSources(Sources{
		Counts: func() session.Counts {
			return session.Counts{Live: 3, WaitForSlot: 6, Parked: 1, Spares: 2, Standbys: 4}
		},
		ClientMemory:  func() (int, int) { return 7, 2 },
		EgressRefused: func() (uint64, error) { return 9, broken },
		Deliveries: func(context.Context) (pending, failed int, err error) {
			return 5, 0, broken
		},
	})
	m.LoginChecked(login.LoggedIn)
	m.LoginChecked(login.LoggedIn)
	m.LoginExpired()
	m.Saved(save.ForAutosave, save.Unchanged)
	got := scrape(t, m)
	for _, want := range []string{
		`stasis_login_checks_total{outcome="logged_in"} 2`, `stasis_login_checks_total{outcome="logged_out"} 0`, `stasis_login_checks_total{outcome="failed"} 0`,
		`stasis_logins_expired_total 1`, `stasis_saves_total{kind="autosave",outcome="unchanged"} 1`, `stasis_saves_total{kind="end",outcome="failed"} 0`,
		`stasis_sessions_live 3`, `stasis_creates_waiting 6`, `stasis_egress_refused_total 9`, `stasis_client_memory_bytes 7`, `stasis_clients_evicted_total 2`, `stasis_chromes_kept{kind="parked"} 1`, `stasis_chromes_kept{kind="spare"} 2`, `stasis_chromes_kept{kind="standby"} 4`,
		`stasis_webhook_deliveries{state="pending"} 5`, `stasis_webhook_deliveries{state="failed"} 0`, `version="1.2.3"`, "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
	broken = errors.New("broken on purpose")
	if got = scrape(t, m); strings.Contains(got, "stasis_webhook_deliveries") || !strings.Contains(got, "stasis_sessions_live 3") || strings.Contains(got, "purpose") {
		t.Errorf("with a broken catalogue:\n%s", got)
	}
}
