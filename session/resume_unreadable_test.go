package session

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// A session recorded by a newer Stasis is not resumed with other options, and the error
// says why. Nor is one whose record is not JSON of a create.
func TestUnreadableOptions(t *testing.T) {
	r := newRig(t, nil)
	id, _ := r.saved(alice, filesystem)
	for raw, code := range map[string]fault.Code{
		`{"version":2,"proxies":[]}`: fault.Unsupported, `{"version":0}`: fault.Unsupported,
		`{"version":1,"idle_ns":"long"}`: fault.StoreFailed, `[]`: fault.StoreFailed, ``: fault.StoreFailed, `{"AutoSave":3}`: fault.StoreFailed,
	} {
		sealed, err := r.deps.Vault.Seal([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.catalogue.UpdateSession(t.Context(), id, func(rec *profiles.Session) error { rec.SealedRequest = sealed; return nil }); err != nil {
			t.Fatal(err)
		}
		_, err = r.Resume(t.Context(), alice, id, "")
		if wantCode(t, err, code); code == fault.Unsupported && !strings.Contains(fault.MessageOf(err), "this Stasis reads version 1") {
			t.Errorf("%s: the message is %q", raw, fault.MessageOf(err))
		}
	}
}
