package audit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/library/audit"
)

// If the catalogue is lost, nothing counts as an orphan.
func TestLostCatalogue(t *testing.T) {
	r := newRig(t)
	r.save(1, "s", "one")
	r.at = r.at.Add(2 * time.Hour)
	for name, records := range map[string]*audit.Records{"empty": r.records(), "missing": nil} {
		_, _, err := r.run(records, clean)
		if !fault.Is(err, fault.Config) || !strings.Contains(fault.MessageOf(err), "nothing was removed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !r.has(r.archives[1]) || !r.has(r.document(1, "s")) {
		t.Error("something was removed")
	}
	for _, records := range []*audit.Records{r.records(), nil} {
		found, sum, err := r.run(records, audit.Options{Grace: time.Hour})
		if err != nil || sum.OK() || !slices.Contains(found, "damaged catalogue_lost") {
			t.Errorf("only looking: %v, %v", found, err)
		}
	}
	// A first save that is about to be committed does not count as a lost catalogue.
	r.want(audit.Options{Grace: 3 * time.Hour})
	r.save(2, "elsewhere", "two")
	r.want(audit.Options{Grace: 3 * time.Hour}, "damaged catalogue_lost")
}
