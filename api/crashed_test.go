package api

import "testing"

// A client that reconnects while Chrome is started again after a crash is let through and
// waits. A session that has failed for good refuses it.
func TestConnectWhileChromeIsStartedAgain(t *testing.T) {
	r := newRig(t, nil)
	for id, want := range map[string]int{crashedID: 200, failedID: 409} {
		if answer, body := r.do(t, "GET", "/v1/sessions/"+id+"/json/version", ""); answer.StatusCode != want {
			t.Errorf("%s: %d %s", id, answer.StatusCode, body)
		}
	}
}
