package api

import "testing"

func TestReach(t *testing.T) {
	for route, want := range map[[2]string]reach{
		{"GET", "/v1/sessions"}:                                     reachNone,
		{"GET", "/v1/snapshots/:snapshot_id"}:                       reachNone,
		{"GET", "/v1/sessions/:session_id"}:                         reachLive,
		{"DELETE", "/v1/sessions/:session_id"}:                      reachLast,
		{"GET", "/v1/sessions/:session_id/cdp"}:                     reachLive,
		{"GET", "/v1/sessions/:session_id/live/socket"}:             reachLive,
		{"GET", "/v1/sessions/:session_id/events"}:                  reachLive,
		{"GET", "/v1/sessions/:session_id/files/:name"}:             reachLast,
		{"POST", "/v1/sessions/:session_id/files"}:                  reachLive,
		{"POST", "/v1/sessions/:session_id/snapshots"}:              reachLive,
		{"GET", "/v1/sessions/:session_id/snapshots"}:               reachNone,
		{"PUT", "/v1/sessions/:session_id/scopes/:scope/:scope_id"}: reachNone,
	} {
		if got := reachOf(route[0], route[1]); got != want {
			t.Errorf("%s %s: %d, not %d", route[0], route[1], got, want)
		}
	}
}
