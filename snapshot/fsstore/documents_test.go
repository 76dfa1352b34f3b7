package fsstore_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// Each step of each write of an agent document runs out of space in turn. The error says
// so, latest is the old or the new document, and no temporary file remains. The next
// attempt succeeds.
func TestDocumentsDiskFullAtEveryStep(t *testing.T) {
	dir := t.TempDir()
	var fail, steps int
	s := openIn(t, dir, fsstore.Options{Before: func(fsstore.Step, string) error {
		if steps++; steps == fail {
			return &os.PathError{Op: "test", Path: "x", Err: syscall.ENOSPC}
		}
		return nil
	}})
	d := snapshot.NewDocuments(s, snapshot.Options{Now: time.Now, Reserve: 1})
	agents := place
	agents.ScopeID = "agent"
	body := func(n int) []byte {
		return fmt.Appendf(nil, `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40Z","data":{"n":%d},"appData":{}}`, n)
	}
	if err := d.Save(t.Context(), agents, firstID, body(1), true); err != nil {
		t.Fatal(err)
	}
	for fail = 1; ; fail++ {
		steps = 0
		err := d.Save(t.Context(), agents, secondID, body(2), true)
		last, loaded := d.Load(t.Context(), agents, snapshot.LatestID)
		if loaded != nil || string(last) != string(body(1)) && string(last) != string(body(2)) {
			t.Errorf("step %d: latest is %s, %v", fail, last, loaded)
		}
		if err == nil {
			break
		}
		if !fault.Is(err, fault.StoreFull) {
			t.Errorf("step %d: %v, want store_full", fail, err)
		}
		for name := range storetest.Files(t, dir) {
			if strings.HasPrefix(name, dir+"/tmp/") {
				t.Errorf("step %d: %s is left", fail, name)
			}
		}
	}
	if fail < 10 {
		t.Errorf("only %d steps failed", fail-1)
	}
	for _, id := range []string{secondID, snapshot.LatestID} {
		if got, err := d.Load(t.Context(), agents, id); err != nil || string(got) != string(body(2)) {
			t.Errorf("%s: %s, %v", id, got, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
