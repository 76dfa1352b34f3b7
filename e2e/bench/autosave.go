package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// checkpoints is how many are made in each case.
const checkpoints = 6

// frames has a page remember the longest gap between two of its frames.
const frames = `(() => { let last = performance.now(); window.__gap = 0;
	const next = (now) => { window.__gap = Math.max(window.__gap, now - last); last = now; requestAnimationFrame(next); };
	requestAnimationFrame(next); return true; })()`

// autosaveSurvey makes the checkpoints of which autosave makes one per interval,
// and looks at what a page and a client see of them and at what they cost.
func autosaveSurvey(ctx context.Context, b *bench) error {
	s := section{
		title: "Checkpoints and autosave",
		text: `A session of the probe profile is saved while it runs, as autosave does once per interval where something has changed. The longest
gap between two frames (requestAnimationFrame) and the longest answer to a client that pings are those of the whole time of each checkpoint. Processor time is that of the daemon and its Chromes together, the page's own 60 frames a second with it;
the share of a core follows from it.`,
		head: []string{"kept beside, MB", "state", "Chrome stood still, ms", "longest gap of frames, ms", "longest ping, ms", "until the answer, ms",
			"archive, KB", "processor time, ms", "of a core each 5 s, %", "each 60 s, %"},
	}
	for _, size := range []int{0, 100} {
		rows, err := b.autosaved(ctx, size)
		if err != nil {
			return fmt.Errorf("%d MB: %w", size, err)
		}
		s.rows = append(s.rows, rows...)
	}
	b.seen = append(b.seen, s)
	return nil
}

// autosaved measures one size of environment.
func (b *bench) autosaved(ctx context.Context, size int) (rows [][]string, err error) {
	s, t, err := b.copied(ctx, obj{}, fmt.Sprintf(fill, size), frames)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var done bool
	var snapshots []string
	for _, state := range []string{"changed", "unchanged"} {
		if state == "unchanged" { // Chrome writes for some seconds after a page did
			for is := (checkpointed{}); !is.Unchanged; {
				if is, err = s.checkpoint(ctx); err != nil {
					return nil, err
				}
				snapshots = append(snapshots, is.Snapshot.ID)
				if err := settle(ctx); err != nil {
					return nil, err
				}
			}
		}
		var stood, gap, ping, took, cpu, kb []float64
		for n := range checkpoints {
			if state == "changed" {
				if err := t.evaluate(ctx, fmt.Sprintf(`localStorage.setItem("n", %d), document.cookie = "n=%d; max-age=1000", true`, n, n), &done); err != nil {
					return nil, err
				}
			}
			if err := t.evaluate(ctx, "window.__gap = 0, true", &done); err != nil {
				return nil, err
			}
			before := below(b.ours.PID(), true).ticks()
			var made checkpointed
			pings, stop := t.pinged(ctx)
			ms, err := timed(func() (err error) { made, err = s.checkpoint(ctx); return err })
			stop()
			longest := <-pings
			if err != nil {
				return nil, err
			}
			spent := below(b.ours.PID(), true).ticks() - before
			var frame float64
			if err := t.evaluate(ctx, "window.__gap", &frame); err != nil {
				return nil, err
			}
			snapshots = append(snapshots, made.Snapshot.ID)
			stood, gap, ping = append(stood, made.Stood), append(gap, frame), append(ping, longest)
			took, cpu = append(took, ms), append(cpu, float64(spent)*10)
			if made.Unchanged {
				made.Snapshot.Bytes = 0
			}
			kb = append(kb, float64(made.Snapshot.Bytes)/1000)
		}
		used := spread(cpu)
		rows = append(rows, []string{fmt.Sprint(size), state, spread(stood).String(), spread(gap).String(), spread(ping).String(), spread(took).String(),
			spread(kb).String(), used.String(), number(used.median / 50), number(used.median / 600)})
	}
	if _, err := s.end(ctx, "none", false); err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	for _, id := range snapshots {
		if !gone[id] {
			if err := b.ours.forget(ctx, id); err != nil {
				return nil, err
			}
		}
		gone[id] = true
	}
	return rows, nil
}

// copied is a session whose front tab has run scripts, after its first checkpoint,
// which copies all.
func (b *bench) copied(ctx context.Context, o obj, scripts ...string) (*session, *tab, error) {
	s, err := b.ours.atMe(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	t, err := s.front(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, script := range scripts {
		var done bool
		if err := t.evaluate(ctx, script, &done); err != nil {
			t.Close()
			return nil, nil, err
		}
	}
	if _, err := s.checkpoint(ctx); err != nil {
		t.Close()
		return nil, nil, err
	}
	return s, t, nil
}

// checkpointed is the answer of a checkpoint.
type checkpointed struct {
	Snapshot struct {
		ID    string
		Bytes int64 `json:"size_bytes"`
	}
	Unchanged bool
	Stood     float64 `json:"paused_ms"`
}

func (s *session) checkpoint(ctx context.Context) (made checkpointed, err error) {
	err = s.host.Call(ctx, http.MethodPost, "/v1/sessions/"+s.ID+"/snapshots", obj{}, &made)
	return made, err
}

// pinged asks the browser for its version, one answer after the other, until stop;
// then longest gives how long the slowest took, in milliseconds.
func (t *tab) pinged(ctx context.Context) (longest <-chan float64, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	result := make(chan float64, 1)
	go func() {
		var most float64
		for ctx.Err() == nil {
			ms, err := timed(func() error { return t.Call(context.WithoutCancel(ctx), "", "Browser.getVersion", nil, nil) })
			if err != nil {
				break
			}
			most = max(most, ms)
			time.Sleep(time.Millisecond)
		}
		result <- most
	}()
	return result, stop
}
