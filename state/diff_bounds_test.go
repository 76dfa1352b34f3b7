package state_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stasisd/stasis/state"
)

// For many equal items and for many origins, the time of a comparison grows linearly. If
// it grew with the square, it would take many minutes.
func TestDiffOfMany(t *testing.T) {
	const many = 150_000
	var same, origins state.Document
	same.Complete = true
	for n := range many {
		same.Tabs = append(same.Tabs, state.Tab{URL: "https://a.example/"})
		origins.Inventory = append(origins.Inventory, state.Holding{Component: "indexed_db", Origin: fmt.Sprintf("https://%d.example/", n), Items: 1})
	}
	for name, doc := range map[string]state.Document{"tabs of one address": same, "origins": origins} {
		done := make(chan error, 1)
		go func() {
			_, _, err := state.Diff(t.Context(), doc, state.Document{}, true)
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: the comparison took more than two minutes", name)
		}
	}
}

// countdownContext is a context that ends after Err was called a number of times.
type countdownContext struct {
	context.Context
	left int
}

func (l *countdownContext) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// A comparison ends with its context, at any point.
func TestDiffCancelled(t *testing.T) {
	doc := state.Document{Complete: true, Tabs: []state.Tab{{URL: "https://a.example/"}, {URL: "https://b.example/"}}}
	ctx := &countdownContext{t.Context(), 1 << 20}
	if _, _, err := state.Diff(ctx, doc, state.Document{Complete: true}, true); err != nil {
		t.Fatal(err)
	}
	for n := range 1<<20 - ctx.left {
		if _, _, err := state.Diff(&countdownContext{t.Context(), n}, doc, state.Document{Complete: true}, true); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at call %d of Err: %v", n, err)
		}
	}
}
