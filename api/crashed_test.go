package api

import "testing"

// Who comes back to a session whose Chrome is started again after a crash is let
// through, to wait for it; one that has failed for good says so.
func TestConnectWhileChromeIsStartedAgain(t *testing.T) {
	r := newRig(t, nil)
	for id, want := range map[string]int{crashedID: 200, failedID: 409} {
		if answer, body := r.do(t, "GET", "/v1/sessions/"+id+"/json/version", ""); answer.StatusCode != want {
			t.Errorf("%s: %d %s", id, answer.StatusCode, body)
		}
	}
}
