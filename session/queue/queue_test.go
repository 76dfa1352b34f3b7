package queue

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Tasks run one after the other, in order. A task with nothing to do, or refused when its
// turn comes, is followed by the next.
func TestTasksRunInOrder(t *testing.T) {
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
					t.Error("two tasks run at once")
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

// A task that takes too long gets a deadline error. Its goroutine ends even if no owner
// receives the report.
func TestTaskDeadline(t *testing.T) {
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
		cancel() // the second ends, and no owner receives its report
		synctest.Wait()
	})
}
