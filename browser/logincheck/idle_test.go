package logincheck

import "testing"

// A page is idle once it is loaded, has no open request and stays the same. A page that
// still makes requests or changes is not.
func TestIdleDetector(t *testing.T) {
	shown := observation{URL: "https://a.example/", Elements: 3, Loaded: true}
	grown, loading := shown, shown
	grown.Elements, loading.Loaded = 4, false
	for name, disturb := range map[string]func(*idleDetector) bool{
		"still loading":        func(s *idleDetector) bool { return s.look(loading, 0, 1) },
		"a request under way":  func(s *idleDetector) bool { return s.look(shown, 1, 1) },
		"a request was made":   func(s *idleDetector) bool { return s.look(shown, 0, 2) },
		"the page has changed": func(s *idleDetector) bool { return s.look(grown, 0, 1) },
	} {
		var s idleDetector
		for range idleLooks {
			if s.look(shown, 0, 1) {
				t.Fatalf("%s: idle too early", name)
			}
		}
		if disturb(&s) {
			t.Errorf("%s: idle after the disturbance", name)
		}
		if s.look(shown, 0, 1) {
			t.Errorf("%s: idle at the first look after the disturbance", name)
		}
	}
	var s idleDetector
	for range idleLooks {
		s.look(shown, 0, 1)
	}
	if !s.look(shown, 0, 1) {
		t.Error("a page that stays the same is never idle")
	}
}

// Requests belong to a document and are forgotten when it is replaced.
func TestTraffic(t *testing.T) {
	var under traffic
	under.began("socket", "")
	under.began("r1", "first")
	under.began("r2", "first")
	under.ended("r1")
	under.replaced("first")
	if len(under.open) != 2 {
		t.Errorf("%v", under.open)
	}
	under.began("r3", "second")
	under.replaced("second")
	under.ended("socket")
	if len(under.open) != 1 || under.open["r3"] != "second" || under.count != 4 {
		t.Errorf("%v, %d", under.open, under.count)
	}
}
