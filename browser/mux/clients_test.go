package mux

import "testing"

// A client after Clients.Close is closed like the others, until Admit. A client with an
// earlier admission period is always closed.
func TestAdmission(t *testing.T) {
	m, f := start(t, Options{}, nil)
	m.Clients.Admit() // no client was closed: the period does not change
	before := m.Clients.Admission()
	connect(t, m, ServeOptions{Admission: before}).call(1, "", "Browser.getVersion", "{}")
	if err := m.Clients.Close(t.Context(), CloseSessionEnded, "session_ended"); err != nil {
		t.Fatal(err)
	}
	during := m.Clients.Admission()
	refused := func(period Admission) {
		t.Helper()
		c := connect(t, m, ServeOptions{Admission: period})
		if err := c.gone(CloseSessionEnded); err != nil || c.reason != "session_ended" {
			t.Errorf("Serve: %v, reason %q", err, c.reason)
		}
	}
	refused(before)
	d, err := m.Driver(t.Context())
	if err != nil {
		t.Errorf("a driver is no client: %v", err)
	} else {
		d.Close()
	}
	m.Clients.Admit()
	m.Clients.Admit() // a second call changes nothing
	refused(before)
	refused(during)
	after := m.Clients.Admission()
	if after == before {
		t.Error("Admit did not begin a new period")
	}
	connect(t, m, ServeOptions{Admission: after}).call(1, "", "Browser.getVersion", "{}")
	// The refused clients never reached Chrome: only two clients and a driver did.
	if n := len(f.wait(3, method("Target.attachToBrowserTarget"))); n != 3 {
		t.Errorf("%d were attached", n)
	}
}

// No client that connects during Close remains connected, whatever the order.
func TestCloseWhileClientsConnect(t *testing.T) {
	m, _ := start(t, Options{}, nil)
	for range 50 {
		period := m.Clients.Admission()
		var all []*testConn
		for range 4 {
			all = append(all, connect(t, m, ServeOptions{Admission: period}))
		}
		if err := m.Clients.Close(t.Context(), CloseSessionEnded, "session_ended"); err != nil {
			t.Fatal(err)
		}
		m.Clients.Admit()
		for _, c := range all {
			if err := c.gone(CloseSessionEnded); err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
		if n := m.Clients.Count(); n != 0 {
			t.Fatalf("%d clients remain", n)
		}
	}
}
