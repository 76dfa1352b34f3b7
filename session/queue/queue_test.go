package queue

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Tasks run one after the other, in their order; one that has nothing to do, or is
// refused when its turn comes, makes room for the next.
func TestOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(t.Context(), time.Minute, func(f func()) { go f() })
		broken, refused := errors.New("broken"), errors.New("refused")
		var done []string
		ended := func(name string, want error) func(error) {
			return func(err error) {
				if !errors.Is(err, want) {
					t.Errorf("%s: %v", name, err)
				}
				done = append(done, name)
			}
		}
		running := 0
		work := func(outcome error) func(context.Context) error {
			return func(context.Context) error {
				if running++; running > 1 {
					t.Error("two tasks at once")
				}
				time.Sleep(time.Second)
				running--
				return outcome
			}
		}
		q.Do(work(nil), ended("first", nil))
		q.Add(Task{Begin: func() (func(context.Context) error, error) { return work(nil), refused }, End: ended("refused", refused)})
		q.Do(work(broken), func(err error) {
			ended("broken", broken)(err)
			q.After(func() { done = append(done, "added in between") })
		})
		q.Do(work(nil), nil)
		q.After(func() { done = append(done, "last") })
		for q.Len() > 0 {
			q.Finish(<-q.Reports())
		}
		if want := []string{"first", "refused", "broken", "last", "added in between"}; !slices.Equal(done, want) {
			t.Errorf("%q", done)
		}
	})
}

// A task that takes too long is told so, and its goroutine waits for nobody to take
// the report.
func TestATaskHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q := New(ctx, time.Minute, func(f func()) { go f() })
		waits := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		began := time.Now()
		q.Do(waits, func(err error) {
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
				t.Errorf("%v after %s", err, time.Since(began))
			}
		})
		q.Do(waits, nil)
		q.Finish(<-q.Reports())
		cancel() // the second ends, and nobody is there
		synctest.Wait()
	})
}
