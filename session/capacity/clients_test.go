package capacity

import (
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Each session has places of its own, and one that was given back is another
// client's.
func TestClientsOfASession(t *testing.T) {
	c := NewClients(2)
	var releases []func()
	for _, id := range []string{"a", "a", "b"} {
		release, err := c.Take(id)
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	if _, err := c.Take("a"); !fault.Is(err, fault.TooManyClients) {
		t.Errorf("a third client: %v", err)
	}
	releases[0]()
	release, err := c.Take("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range append(releases[1:], release) {
		release()
	}
	if len(c.counts) != 0 {
		t.Errorf("sessions without clients are counted: %v", c.counts)
	}
	if n := NewClients(0).most; n != 64 {
		t.Errorf("%d clients where nothing is said", n)
	}
}
