package pool_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stasisd/stasis/browser/pool"
)

// stuck is a Chrome whose processes do not end.
type stuck struct{ asked chan struct{} }

func (s stuck) Kill(ctx context.Context) error {
	s.asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (s stuck) Done() <-chan struct{} { return nil }
func (s stuck) Memory() int64         { return 1 }

// A pool closes even if its Chromes cannot be ended, after a kill of each.
func TestCloseWithStuckChrome(t *testing.T) {
	for name, try := range map[string]func(asked chan struct{}){
		"parked": func(asked chan struct{}) {
			p := pool.NewParked[stuck](pool.Limits{Size: 9, Age: time.Hour})
			_, _ = p.Put(context.Background(), "a", stuck{asked}), p.Put(context.Background(), "b", stuck{asked})
			if p.Close(context.Background()) == nil {
				t.Error("no error for Chromes that could not be ended")
			}
		},
		"parked, and old": func(asked chan struct{}) {
			p := pool.NewParked[stuck](pool.Limits{Size: 9, Age: time.Minute})
			_, _ = p.Put(context.Background(), "a", stuck{asked}), p.Put(context.Background(), "b", stuck{asked})
			time.Sleep(2 * time.Minute)
			_ = p.Close(context.Background())
		},
		"parked, and heavy": func(asked chan struct{}) {
			p := pool.NewParked[stuck](pool.Limits{Size: 9, Age: time.Hour, Memory: 1})
			_, _ = p.Put(context.Background(), "a", stuck{asked}), p.Put(context.Background(), "b", stuck{asked})
			_ = p.Close(context.Background())
		},
		"standbys": func(asked chan struct{}) {
			p := pool.NewStandbys[stuck](time.Hour, func() {})
			p.Put(pool.Key{Snapshot: "a"}, stuck{asked})
			p.Put(pool.Key{Snapshot: "b"}, stuck{asked})
			p.Close()
		},
		"spares": func(asked chan struct{}) {
			p := pool.NewSpares(pool.Limits{Size: 2, Age: time.Hour}, func() int { return 2 },
				func(context.Context) (stuck, error) { return stuck{asked}, nil })
			p.Refill()
			synctest.Wait()
			p.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := make(chan struct{}, 2)
				try(asked)
				if len(asked) != 2 {
					t.Errorf("%d of 2 got a kill", len(asked))
				}
			})
		})
	}
}
