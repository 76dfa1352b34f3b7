package s3store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

// listAll pages through the archives.
func listAll(t *testing.T, s snapshot.Store, limit int) (names []string) {
	t.Helper()
	for after := ""; ; after = names[len(names)-1] {
		page, err := s.List(t.Context(), snapshot.ArchiveFolder(), limit, after)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return names
		}
		names = append(names, page...)
	}
}

// S3 puts "a-b/" before "a/". Names have no slash, so "a" comes first, on any page, also
// if the last names are objects.
func TestOrderOfNames(t *testing.T) {
	server := s3test.Start(t)
	want := []string{"a", "a-b", "a-b-c", "a.b", "a_b", "ab", "b"}
	for _, folders := range []int{len(want), len(want) - 2} {
		o := server.Options(t)
		s := open(t, o)
		for i, name := range want {
			if i < folders {
				name += "/below/it"
			}
			put(t, server, o.Prefix+"/archives/"+name)
		}
		for limit := 1; limit <= len(want)+1; limit++ {
			if diff := cmp.Diff(want, listAll(t, s, limit)); diff != "" {
				t.Errorf("%d folders, pages of %d (-want +got):\n%s", folders, limit, diff)
			}
		}
	}
}

// There are more objects and folders than S3 returns at once. Folders follow the objects
// of their page.
func TestManyNames(t *testing.T) {
	server := s3test.Start(t)
	o := server.Options(t)
	var want []string
	for i := range 1300 {
		name := fmt.Sprintf("%04d-x", i)
		want = append(want, name)
		if i%3 == 0 {
			name += "/below"
		}
		// The server stores objects as files.
		file := filepath.Join(server.Dir, s3test.Bucket, o.Prefix, "archives", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Repeat("x", i%2)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, o)
	for _, limit := range []int{400, 1000} {
		if diff := cmp.Diff(want, listAll(t, s, limit)); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
}
