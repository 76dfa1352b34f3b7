package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/apps/probe"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
)

// everythingStandsBy: a standby makes no request to the site, and a restore of ada's
// default from it has everything, as with any other restore path. When the default is
// removed, the standby ends, with its processes and its folder. No other session may run.
// The returned session does.
func everythingStandsBy(t *testing.T, d *daemon.Daemon, site *probe.Site, before map[string]any) created {
	t.Helper()
	stands := func(n int) {
		t.Helper()
		daemon.Eventually(t, backgroundDeadline, "a standby Chrome is ready", func() bool { return strings.Count(d.Log(), "a standby Chrome is ready") == n })
	}
	since := site.Log.Len()
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/ada", body{"standby": 1})
	stands(1)
	if asked := site.Log.Since(since); len(asked) > 0 {
		t.Errorf("the standby requested %+v", asked)
	}
	r := create(t, d, body{"restore_default_environment_from_user_id": "ada"})
	if r.Restored.Path != restore.PathStandby {
		t.Errorf("%s: %s", r.Restored.Path, r.Restored.FallbackReason)
	}
	checkTabs(t, site, r, before)
	checkRequests(t, site, since)
	checkReport(t, d, site, r)
	stands(2)
	d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/users/ada/default", nil)
	daemon.Eventually(t, grace, "only the session's Chrome and folder are left", func() bool { return len(mains(d)) == 1 && len(runDirs(t, d)) == 1 })
	return r
}
