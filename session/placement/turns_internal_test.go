package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// give gives the places in the order of turns. Those that fit no node with a free place, or are over
// a quota, are as if they did not wait.
func TestGive(t *testing.T) {
	one := int64(1)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all []profiles.WaitingCreate
		for i := range 30 {
			w := profiles.WaitingCreate{ID: fmt.Sprint(i), UserID: fmt.Sprint("u", r.IntN(4)), KeyID: fmt.Sprint("k", r.IntN(3)), Engine: []string{"a", "b", "c"}[r.IntN(3)]}
			switch r.IntN(6) {
			case 0:
				w.Turn = int64(i + 1)
			case 1:
				w.MostOfUser = &one
			case 2:
				w.MostOfKey, w.OfKey = &one, int64(r.IntN(2))
			}
			all = append(all, w)
		}
		nodes := func() []Node {
			r := rand.New(rand.NewPCG(seed, 2))
			var all []Node
			for i, engine := range []string{"a", "b", "a"} {
				n := Node{ID: fmt.Sprint("n", i), Number: 1, Left: time.Minute, Facts: Facts{Engines: map[string]string{engine: "150.0.1.1"}}}
				n.Status.Free = r.IntN(4)
				all = append(all, n)
			}
			return all
		}

		// One after the other leaves the line, with or without a place.
		var want []string
		line, free := newTurns(all), nodes()
		for len(line.waiting) > 0 {
			next := slices.MinFunc(line.waiting, func(a, b profiles.WaitingCreate) int {
				of := func(w profiles.WaitingCreate) []int64 {
					return []int64{line.served[turnOf{user: w.UserID}], line.served[turnOf{w.UserID, w.KeyID}]}
				}
				return slices.Compare(of(a), of(b))
			})
			line.waiting = slices.DeleteFunc(line.waiting, func(w profiles.WaitingCreate) bool { return w.ID == next.ID })
			n := mostFree(free, wanted(next))
			if n < 0 || line.over(next) {
				continue
			}
			free[n].Status.Free--
			line.serve(next, line.last+1)
			line.given[turnOf{user: next.UserID}]++
			line.given[turnOf{key: next.KeyID}]++
			want = append(want, next.ID)
		}
		if got := newTurns(all).give(nodes()); !slices.Equal(got, want) {
			t.Errorf("seed %d: %v; want %v", seed, got, want)
		}
	}
}
