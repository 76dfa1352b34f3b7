package memstore_test

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/snapshot/memstore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

func open(*testing.T) snapshot.Store { return memstore.New(0, time.Now) }

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestBehindFaultstore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) snapshot.Store { return faultstore.New(open(t)) })
}

func TestVaultWithFaults(t *testing.T) { storetest.RunVault(t, open, 1) }

func TestDocuments(t *testing.T) { storetest.RunDocuments(t, open, 1) }

// A full store refuses writes, and dropped uploads free their space.
func TestCapacity(t *testing.T) {
	s := memstore.New(10, time.Now)
	up, err := s.Upload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := up.Write(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), snapshot.ArchiveFolder(), make([]byte, 3)); !fault.Is(err, fault.StoreFull) {
		t.Errorf("Create beyond the capacity: %v", err)
	}
	if err := up.Abort(); err != nil {
		t.Fatal(err)
	}
	if free, err := s.FreeSpace(t.Context()); err != nil || free != 10 {
		t.Errorf("after Abort: %d, %v", free, err)
	}
}

func TestDamage(t *testing.T) { storetest.RunDamage(t, open, 61, 8) }

func TestCheck(t *testing.T) { storetest.RunCheck(t, open, 1) }

func TestCopy(t *testing.T) { storetest.RunCopy(t, open, open, storetest.Every(7, 3)) }

func TestRewrapWithFaults(t *testing.T) { storetest.RunRewrap(t, open, storetest.Every(11, 3)) }
