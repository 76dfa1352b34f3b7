package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// busy makes a page write a new value twice a second, as a page in use does.
const busy = `(() => { let n = 0; setInterval(() => localStorage.setItem("busy", ++n), 500); return true; })()`

// leastWindow is the minimum time for which a session is watched. A session with a long
// interval is watched for longer.
const leastWindow = 40 * time.Second

// intervalSurvey watches sessions with autosave while their page writes, and the same
// without autosave.
func intervalSurvey(ctx context.Context, b *bench) error {
	s := section{
		title: "Autosave at different intervals",
		text: `The page of a session of the probe profile writes to localStorage twice a second. The session is watched for 40 seconds, or for
one interval and five seconds if that is longer. Processor time is as above. The bytes that the daemon itself wrote to the disk
are those of /proc/PID/io.`,
		head: []string{"added to the probe profile, MB", "interval, s", "saves", "longest gap between frames, ms", "longest ping, ms", "of a core, %", "written by the daemon, MB a minute"},
	}
	for _, size := range []int{0, 100} {
		for _, interval := range []int{0, 5, 60} {
			row, err := b.watchInterval(ctx, size, interval)
			if err != nil {
				return fmt.Errorf("%d MB each %d s: %w", size, interval, err)
			}
			s.rows = append(s.rows, row)
		}
	}
	b.surveyed = append(b.surveyed, s)
	return nil
}

// watchInterval watches one session. interval is in seconds; 0 turns autosave off.
func (b *bench) watchInterval(ctx context.Context, size, interval int) ([]string, error) {
	o, named := obj{}, "never"
	if interval > 0 {
		o["auto_save"], named = obj{"interval_seconds": interval, "on": []string{}, "keep": 100}, strconv.Itoa(interval)
	}
	s, t, err := b.checkpointedSession(ctx, o, fmt.Sprintf(fill, size), frames, busy)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if err := settle(ctx); err != nil {
		return nil, err
	}
	var done bool
	if err := t.evaluate(ctx, "window.__gap = 0, true", &done); err != nil {
		return nil, err
	}
	saved, err := s.saves(ctx)
	if err != nil {
		return nil, err
	}
	ticks, wrote := below(b.ours.PID(), true).ticks(), bytesWritten(b.ours.PID())
	pings, stop := t.pinged(ctx)
	window := max(leastWindow, time.Duration(interval+5)*time.Second)
	select {
	case <-time.After(window):
	case <-ctx.Done():
	}
	stop()
	ping := <-pings
	used := float64(below(b.ours.PID(), true).ticks()-ticks) / window.Seconds() // a tick is 10 ms, so this is in percent of a core
	mb := float64(bytesWritten(b.ours.PID())-wrote) / 1e6 / window.Minutes()
	var gap float64
	if err := t.evaluate(ctx, "window.__gap", &gap); err != nil {
		return nil, err
	}
	now, err := s.saves(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.end(ctx, "none", false); err != nil {
		return nil, err
	}
	for _, id := range now {
		if err := b.ours.forget(ctx, id); err != nil {
			return nil, err
		}
	}
	return []string{strconv.Itoa(size), named, strconv.Itoa(len(now) - len(saved)), number(gap), number(ping), number(used), number(mb)}, nil
}

// saves returns the IDs of a session's snapshots.
func (s *session) saves(ctx context.Context) (ids []string, err error) {
	var list struct{ Snapshots []struct{ ID string } }
	err = s.host.Call(ctx, http.MethodGet, "/v1/sessions/"+s.ID+"/snapshots?limit=1000", nil, &list)
	for _, snapshot := range list.Snapshots {
		ids = append(ids, snapshot.ID)
	}
	return ids, err
}

// bytesWritten returns how many bytes a process has caused to be written to disk; 0 if the
// kernel does not report it.
func bytesWritten(pid int) (bytes int64) {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)) // a missing file means 0
	for line := range strings.Lines(string(raw)) {
		if value, is := strings.CutPrefix(line, "write_bytes: "); is {
			bytes, _ = strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return bytes
}
