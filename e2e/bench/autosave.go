package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// checkpoints is how many checkpoints are made in each case.
const checkpoints = 6

// frames makes a page record the longest gap between two of its frames.
const frames = `(() => { let last = performance.now(); window.__gap = 0;
	const next = (now) => { window.__gap = Math.max(window.__gap, now - last); last = now; requestAnimationFrame(next); };
	requestAnimationFrame(next); return true; })()`

// autosaveSurvey makes the checkpoints that autosave makes once per interval. It
// measures what a page and a client notice of them, and what they cost.
func autosaveSurvey(ctx context.Context, b *bench) error {
	s := section{
		title: "Checkpoints and autosave",
		text: `A session of the probe profile is saved while it runs, as autosave does once per interval if something has changed. During
each checkpoint, the page measures the longest gap between two frames (requestAnimationFrame), and a client that pings
measures the longest wait for an answer. Processor time is that of the daemon and its Chromes together, which includes the
page's own 60 frames a second. The share of a core is computed from it.`,
		head: []string{"added to the probe profile, MB", "state", "Chrome frozen, ms", "longest gap between frames, ms", "longest ping, ms", "until the answer, ms",
			"archive, KB", "processor time, ms", "of a core at 5 s, %", "of a core at 60 s, %"},
	}
	for _, size := range []int{0, 100} {
		rows, err := b.measureAutosave(ctx, size)
		if err != nil {
			return fmt.Errorf("%d MB: %w", size, err)
		}
		s.rows = append(s.rows, rows...)
	}
	b.surveyed = append(b.surveyed, s)
	return nil
}

// measureAutosave measures an environment of one size, in MB.
func (b *bench) measureAutosave(ctx context.Context, size int) (rows [][]string, err error) {
	s, t, err := b.checkpointedSession(ctx, obj{}, fmt.Sprintf(fill, size), frames)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var done bool
	var snapshots []string
	for _, state := range []string{"changed", "unchanged"} {
		if state == "unchanged" { // Chrome writes for some seconds after a page has changed something
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

// checkpointedSession creates a session, runs scripts in its front tab and makes the first
// checkpoint, which copies all files.
func (b *bench) checkpointedSession(ctx context.Context, o obj, scripts ...string) (*session, *tab, error) {
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

// checkpointed is the answer to a checkpoint.
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

// pinged requests the browser's version again and again until stop is called. Then
// longest yields the slowest answer, in milliseconds.
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
