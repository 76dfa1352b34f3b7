package main

import (
	"slices"
	"sync"
	"time"
)

// timings collects how long calls of one kind took, and their errors. It is safe for
// concurrent use.
type timings struct {
	mu     sync.Mutex
	took   []time.Duration // of those that succeeded
	failed map[string]int  // by error
}

// add adds a call.
func (t *timings) add(took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.took = append(t.took, took)
		return
	}
	if t.failed == nil {
		t.failed = map[string]int{}
	}
	t.failed[err.Error()]++
}

// reset forgets all calls.
func (t *timings) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took, t.failed = nil, nil
}

// summary is what a page says of the calls of one kind.
type summary struct {
	Count          int
	Errors         map[string]int
	P50, P99, Most time.Duration
}

// failures returns how many calls failed.
func (s summary) failures() (n int) {
	for _, c := range s.Errors {
		n += c
	}
	return n
}

func (t *timings) summary() summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	sorted := slices.Sorted(slices.Values(t.took))
	s := summary{Count: len(sorted), Errors: map[string]int{}}
	for e, n := range t.failed {
		s.Errors[e] = n
	}
	if n := len(sorted); n > 0 {
		s.P50, s.P99, s.Most = sorted[n/2], sorted[min(n*99/100, n-1)], sorted[n-1]
	}
	return s
}
