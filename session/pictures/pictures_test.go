package pictures

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stasisd/stasis/session/events"
)

// tab is a tab whose pictures are taken.
type tab struct {
	began time.Time
	wait  bool // a picture waits until its context ends
	taken []string
}

func (t *tab) Screenshot(ctx context.Context) (jpeg []byte, url, title string, err error) {
	if t.wait {
		<-ctx.Done()
		t.taken = append(t.taken, fmt.Sprint("given up at ", time.Since(t.began)))
		return nil, "", "", ctx.Err()
	}
	return []byte("jpeg"), "https://a.example/", "A", nil
}

func (t *tab) Observe(kind string, data events.Fields) {
	t.taken = append(t.taken, fmt.Sprint(kind, " of ", data["url"], " at ", time.Since(t.began)))
}

// Several quick navigations get one picture, taken when the page has had time to paint. A
// picture is abandoned when the session begins to end.
func TestOnePictureOfSeveralNavigations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front := &tab{began: time.Now()}
		moved, done := make(chan struct{}, 1), make(chan struct{})
		viewCtx, endView := context.WithCancel(t.Context())
		paused := false
		session := Session{Navigated: moved, Done: done, View: func(context.Context) (View, error) {
			if paused {
				return View{}, nil
			}
			return View{Browser: front, Writer: front, Context: viewCtx}, nil
		}}
		ended := make(chan struct{})
		go func() {
			Record(t.Context(), session, slog.New(slog.DiscardHandler))
			close(ended)
		}()
		for range 5 {
			select {
			case moved <- struct{}{}:
			default:
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(9500 * time.Millisecond) // 10 s after the first
		synctest.Wait()
		paused = true
		moved <- struct{}{}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		paused, front.wait = false, true
		moved <- struct{}{}
		time.Sleep(time.Second)
		endView()
		synctest.Wait()
		close(done)
		<-ended
		want := []string{"screenshot of https://a.example/ at 500ms", "screenshot of https://a.example/ at 3s", "given up at 21s"}
		if !slices.Equal(front.taken, want) {
			t.Errorf("%q", front.taken)
		}
	})
}
