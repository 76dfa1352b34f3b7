package state_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stasisd/stasis/state"
)

// What is many times the same, and what is of many origins, takes time that grows
// with its number alone. Growing with its square it takes many minutes.
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
			t.Fatalf("%s: it is not compared in two minutes", name)
		}
	}
}

// looks is a context that ends when it has been looked at so many times.
type looks struct {
	context.Context
	left int
}

func (l *looks) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// A comparison ends with its caller, wherever it is.
func TestDiffGivenUp(t *testing.T) {
	doc := state.Document{Complete: true, Tabs: []state.Tab{{URL: "https://a.example/"}, {URL: "https://b.example/"}}}
	ctx := &looks{t.Context(), 1 << 20}
	if _, _, err := state.Diff(ctx, doc, state.Document{Complete: true}, true); err != nil {
		t.Fatal(err)
	}
	for n := range 1<<20 - ctx.left {
		if _, _, err := state.Diff(&looks{t.Context(), n}, doc, state.Document{Complete: true}, true); !errors.Is(err, context.Canceled) {
			t.Errorf("given up at look %d: %v", n, err)
		}
	}
}
