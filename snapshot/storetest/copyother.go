package storetest

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/snapshot"
)

// Different objects in the destination are reported by key and stay. An invalid latest or
// manifest is replaced by the source's.
func copyOther(t *testing.T, c *copyFixture) {
	archive, document, latest, manifest := c.all[0], c.all[5], c.all[10], c.all[11]
	for _, key := range []snapshot.Key{archive, document, latest, manifest} {
		Put(t, c.to, key, []byte("other"))
	}
	_, found, err := c.run(t, c.from, c.to)
	if err != nil {
		t.Fatal(err)
	}
	// The archive is shared by snapshots 1 and 3. Neither s-1 nor s-2 has a snapshot that
	// its latest could name.
	want := []string{"other_object " + archive.String(), "other_object " + document.String(), "latest_damaged " + c.all[2].String(),
		"other_object " + archive.String(), "latest_damaged " + latest.String()}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	wantContent(t, c.to, archive, "other")
	wantContent(t, c.to, document, "other")
	wantContent(t, c.to, manifest, string(content(t, c.from, manifest)))

	for _, key := range []snapshot.Key{archive, document} {
		if err := c.to.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if _, found, err := c.run(t, c.from, c.to); err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	c.complete(t)
}

// A copy from a backup that is older than the destination removes nothing. An agent's
// latest may be the only copy of its data.
func copyNewer(t *testing.T, c *copyFixture) {
	if _, found, err := c.run(t, c.from, c.to); err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	d := draft(5)
	d.Location.Session = "s-1"
	v := snapshot.NewVault(c.to, c.keys, snapshot.Options{Now: func() time.Time { return time.Now().Add(time.Hour) }})
	must[snapshot.Snapshot](t)(v.Save(t.Context(), d))
	ours, manifest, agents, elsewhere := c.all[2], c.all[3], c.all[13], c.all[11]
	was := content(t, c.from, agents)
	stays := map[snapshot.Key][]byte{
		ours: content(t, c.to, ours), manifest: content(t, c.to, manifest),
		agents:    bytes.Replace(was, []byte("11-22T04:34:40"), []byte("11-22T04:34:41"), 1),
		elsewhere: newer(content(t, c.to, elsewhere)), // the manifest of the other location
	}
	for key, body := range stays {
		Put(t, c.to, key, body)
	}
	_, found, err := c.run(t, c.from, c.to)
	want := []string{"other_object " + agents.String(), "version_unknown " + elsewhere.String()}
	slices.Sort(found)
	slices.Sort(want)
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("reported (-want +got):\n%s\n%v", diff, err)
	}
	for key, body := range stays {
		wantContent(t, c.to, key, string(body))
	}

	Put(t, c.to, agents, bytes.Replace(was, []byte("11-22T04:34:40"), []byte("11-22T04:34:39"), 1))
	if _, _, err := c.run(t, c.from, c.to); err != nil {
		t.Fatal(err)
	}
	wantContent(t, c.to, agents, string(was))
}
