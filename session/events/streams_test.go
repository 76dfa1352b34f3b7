package events

import (
	"fmt"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Streams are limited by session, by key and in total. A stream that ends releases its
// slots.
func TestStreamsAreLimited(t *testing.T) {
	for name, test := range map[string]struct {
		limit int
		of    func(n int) (session, key string)
	}{
		"of a session": {maxSessionStreams, func(n int) (string, string) { return "one", fmt.Sprint(n) }},
		"of a key":     {maxKeyStreams, func(n int) (string, string) { return fmt.Sprint(n), "one" }},
		"in all":       {maxStreams, func(n int) (string, string) { return fmt.Sprint(n), fmt.Sprint(n) }},
	} {
		s := newStreams()
		var leave []func()
		for n := range test.limit {
			release, err := s.take(test.of(n))
			if err != nil {
				t.Fatalf("%s: the %dth: %v", name, n+1, err)
			}
			leave = append(leave, release)
		}
		if _, err := s.take(test.of(test.limit)); !fault.Is(err, fault.TooManyRequests) {
			t.Errorf("%s: one too many: %v", name, err)
		}
		leave[0]()
		last, err := s.take(test.of(0))
		if err != nil {
			t.Errorf("%s: a released slot is not free: %v", name, err)
		}
		last()
		for _, release := range leave[1:] {
			release()
		}
		if s.all != 0 || len(s.sessions) != 0 || len(s.keys) != 0 {
			t.Errorf("%s: slots were not released: %d %v %v", name, s.all, s.sessions, s.keys)
		}
	}
}
