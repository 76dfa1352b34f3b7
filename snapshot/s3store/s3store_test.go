package s3store_test

import (
	"os"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/snapshot/s3store"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// minio waits up to 200 ms after a failed request, although its options forbid retries. That
// would be half a minute in these tests.
func TestMain(m *testing.M) {
	minio.DefaultRetryUnit = 0
	os.Exit(m.Run())
}

func open(t *testing.T, o s3store.Options) *s3store.Store {
	t.Helper()
	s, err := s3store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// The short form makes fewer calls of the store fail, and leaves out the suite behind a
// faultstore without faults. The tests of memstore do both.
func TestStore(t *testing.T) {
	server := s3test.Start(t)
	fresh := func(t *testing.T) snapshot.Store { return open(t, server.Options(t)) }
	t.Run("itself", func(t *testing.T) { storetest.Run(t, fresh) })
	if storetest.Long() {
		t.Run("behind faultstore", func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) snapshot.Store { return faultstore.New(fresh(t)) })
		})
	}
	t.Run("vault with faults", func(t *testing.T) { storetest.RunVault(t, fresh, 7) })
	t.Run("check", func(t *testing.T) { storetest.RunCheck(t, fresh, 13) })
	t.Run("copy", func(t *testing.T) { storetest.RunCopy(t, fresh, fresh, storetest.Every(61, 23)) })
	t.Run("rewrap with faults", func(t *testing.T) { storetest.RunRewrap(t, fresh, storetest.Every(23, 11)) })
	t.Run("agents' documents", func(t *testing.T) { storetest.RunDocuments(t, fresh, 5) })
}

func TestDamage(t *testing.T) {
	server := s3test.Start(t)
	storetest.RunDamage(t, func(t *testing.T) snapshot.Store { return open(t, server.Options(t)) }, 211, 1)
}
