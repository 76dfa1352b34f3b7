package capacity

import (
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Each session has its own limit, and a released connection is free for another client.
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
		t.Errorf("sessions without clients have a count: %v", c.counts)
	}
	if n := NewClients(0).most; n != 64 {
		t.Errorf("NewClients(0) allows %d clients", n)
	}
}

// A session has 16 viewers, and the error says which limit was reached.
func TestViewersOfASession(t *testing.T) {
	v := NewViewers()
	for range 16 {
		if _, err := v.Take("a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.Take("a"); !fault.Is(err, fault.TooManyViewers) {
		t.Errorf("a 17th viewer: %v", err)
	}
}
