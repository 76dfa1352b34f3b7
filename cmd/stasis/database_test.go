//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// A catalogue in memory leaves no file. A catalogue elsewhere is at the given path and has
// its own lock: two daemons on it would end each other's runs.
func TestDatabase(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "own.db")
	for _, test := range []struct {
		database string
		code     fault.Code
		made     bool
	}{
		{"", "", true},
		{sqldb.Memory, "", false},
		{elsewhere, "", false},
		{elsewhere, fault.DataDirInUse, false},
	} {
		c := &serveCmd{storageFlags: storageFlags{DataDir: t.TempDir(), Database: catalogueAddress(test.database)}}
		s, err := c.acquire()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.close(); err != nil {
				t.Error(err)
			}
		})
		path, err := c.database(s)
		if err == nil {
			err = s.open(t.Context(), path)
		}
		if fault.CodeOf(err) != test.code {
			t.Errorf("%q: got %v, want code %q", test.database, err, test.code)
		}
		if _, missing := os.Stat(filepath.Join(s.dir, "stasis.db")); (missing == nil) != test.made {
			t.Errorf("%q: stasis.db in the data directory: %v", test.database, missing)
		}
	}
	if _, err := os.Stat(elsewhere); err != nil {
		t.Error(err)
	}
}
