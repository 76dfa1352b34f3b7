// Package run records the runs of a session as events of the journal (package events). A
// run is one lifetime of the session's Chrome. Its events are what pages do, which
// clients connect, and what is saved.
package run

import (
	"context"
	"log/slog"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/queue"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
)

// Journal begins a session's next run; see [events.Journal].
type Journal interface {
	Begin(sessionID string) *events.Writer
}

// Chrome is the browser of a run; see browser.Browser.
type Chrome interface {
	Engine() string
	Version() string
	Listen(notify func(browser.PageEvent), all bool) (stop func())
}

// Runs holds the runs of one session. The last one may still be running. One goroutine at
// a time calls its methods, except Navigated: the session's goroutine, while that runs.
// Navigated is safe for concurrent use. The methods do not wait unless their comment says
// so.
type Runs struct {
	sessionID     string
	journal       Journal
	log           *slog.Logger
	writer        *events.Writer // of the last run
	ended         bool           // the end of that run is recorded, or about to be
	stopListening func()         // stops listening to Chrome's events
	navigated     chan struct{}
	notify        func(browser.PageEvent)
}

// New makes the Runs of a session without runs. Begin must be called first. notify receives
// each event of a page too, and must not wait.
func New(sessionID string, journal Journal, notify func(browser.PageEvent), log *slog.Logger) *Runs {
	return &Runs{sessionID: sessionID, journal: journal, notify: notify, log: log, navigated: make(chan struct{}, 1)}
}

// Begin begins a run with a Chrome. It records the start: restored, as report says, or
// empty if report is nil. With console, everything that pages log is recorded, not only
// errors.
func (r *Runs) Begin(chrome Chrome, report *restore.Report, console bool) {
	r.writer, r.ended = r.journal.Begin(r.sessionID), false
	if report != nil {
		r.writer.Record(events.Restored, events.Fields{"snapshot_id": report.SnapshotID, "source": string(report.Source.Type), "source_id": report.Source.ID,
			"mode": report.Mode, "path": report.Path, "duration_ms": report.DurationMS, "warnings": len(report.Warnings)})
	} else {
		r.writer.Record(events.Started, events.Fields{"engine": chrome.Engine(), "chrome": chrome.Version()})
	}
	writer, notify := r.writer, r.notify
	r.stopListening = chrome.Listen(func(h browser.PageEvent) {
		if h.Lost > 0 {
			writer.CountDropped(h.Kind, h.Lost)
			return
		}
		notify(h)
		if h.Kind == browser.EventCommand { // its client has the answer; it is no event of the run
			return
		}
		writer.Observe(h.Kind, h.Data)
		if reason, given := h.Data["reason"]; given && h.Kind == browser.EventDownload {
			r.log.Warn("the daemon cancelled a download", "session", r.sessionID, "reason", reason)
		}
		if h.Kind == browser.EventNavigation {
			select {
			case r.navigated <- struct{}{}:
			default: // a screenshot is already due
			}
		}
	}, console)
}

// Navigated returns a channel that has a value after a navigation.
func (r *Runs) Navigated() <-chan struct{} { return r.navigated }

// Writer returns the writer of the last run. It is safe to use from other goroutines at
// any time.
func (r *Runs) Writer() *events.Writer { return r.writer }

// Record records an event in the last run.
func (r *Runs) Record(event string, data events.Fields) { r.writer.Record(event, data) }

// RecordSaved records a snapshot, and whether the default moved.
func (r *Runs) RecordSaved(s library.SnapshotInfo, d *save.DefaultOutcome) {
	r.writer.Record(events.Saved, events.Fields{"snapshot_id": s.ID, "mode": s.Mode, "rescue": s.Rescue, "size_bytes": s.SizeBytes, "default_moved": d != nil && d.Moved})
}

// RecordSaveFailed records why a save failed.
func (r *Runs) RecordSaveFailed(err error) {
	r.writer.Record(events.SaveFailed, events.Fields{"code": string(fault.CodeOf(err)), "message": fault.MessageOf(err)})
}

// RecordConnected records that a client connected; clients is how many there are now. The
// returned function records that the client has disconnected and how many are left,
// unless the run has ended meanwhile.
func (r *Runs) RecordConnected(clients int) (left func(clients int)) {
	writer := r.writer
	writer.Record(events.Connected, events.Fields{"clients": clients})
	return func(clients int) {
		if r.writer == writer && !r.ended {
			writer.Record(events.Disconnected, events.Fields{"clients": clients})
		}
	}
}

// End ends the run with two tasks of a queue, after all its events are recorded. clients
// returns how many clients are connected then; the session's goroutine calls it.
func (r *Runs) End(tasks *queue.Queue, clients func() int, status profiles.RunStatus, cause string) {
	stopListening, writer := r.stopListening, r.writer
	tasks.Do(func(context.Context) error { stopListening(); return nil }, func(error) {
		there := clients()
		for gone := range there { // clients are notified of the end; the run does not wait for them to disconnect
			writer.Record(events.Disconnected, events.Fields{"clients": there - 1 - gone})
		}
		r.ended = true
	})
	tasks.Do(func(ctx context.Context) error { writer.End(ctx, status, cause); return nil }, nil)
}

// StopListening stops listening to Chrome. It waits for an event that is being recorded.
func (r *Runs) StopListening() { r.stopListening() }

// Detach leaves the run open, so that the next start of the daemon ends it. It waits until
// the recorded events are written, or ctx ends.
func (r *Runs) Detach(ctx context.Context) { r.writer.Detach(ctx) }
