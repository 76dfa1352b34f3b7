package api

import (
	"context"
	"io"
	"time"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/events/webhook"
)

// fakeHistory has the runs, events and webhooks of sessions.
type fakeHistory struct {
	*failing
	entries   []events.StreamEvent // of the live session's feed
	feedWaits bool                 // the feed does not end
	feed      *fakeFeed            // the feed that was requested last
	follows   []events.FollowRequest
}

func (f *fakeHistory) Deliveries(context.Context, access.Caller, string, int, string) ([]events.Delivery, string, error) {
	d := events.Delivery{ID: "d-1", URL: "https://hooks.example/", Event: "session.created", At: born, SessionID: liveID, UserID: "alice",
		State: "pending", Attempts: 1, NextAt: born, LastAt: born, LastError: "the receiver answered 500"}
	return []events.Delivery{d, {ID: "d-0", URL: "https://hooks.example/", Event: "session.deleted", At: born, SessionID: endedID, UserID: "alice", State: "delivered"}}, "d-0", f.failure()
}

func (f *fakeHistory) Resend(ctx context.Context, c access.Caller, _ string) (events.Delivery, error) {
	page, _, err := f.Deliveries(ctx, c, "", 0, "")
	return page[0], err
}

func (f *fakeHistory) SetSecret(_ context.Context, _ access.Caller, o webhook.SecretOptions) (webhook.Receiver, webhook.Secret, error) {
	receiver, until := webhook.Receiver{UserID: o.UserID, CreatedAt: born.UTC()}, born.Add(o.Overlap).UTC()
	if o.URL != "" {
		receiver.URL, receiver.FormerSecretUntil = &o.URL, &until
	}
	if o.Secret != nil {
		return receiver, nil, f.failure()
	}
	return receiver, make(webhook.Secret, 32), f.failure()
}

func (f *fakeHistory) Secrets(context.Context, access.Caller, string) ([]webhook.Receiver, error) {
	return []webhook.Receiver{{UserID: "alice", CreatedAt: born.UTC()}}, f.failure()
}

func (f *fakeHistory) DeleteSecret(context.Context, access.Caller, string, string) error {
	return f.failure()
}

func (f *fakeHistory) Runs(context.Context, access.Caller, string) ([]events.Run, error) {
	return []events.Run{{ID: "run-1", Number: 1, Status: "failed", Cause: "the daemon was killed", StartedAt: born, EndedAt: born.Add(time.Minute)},
		{ID: "run-2", Number: 2, Status: "running", StartedAt: born}}, f.failure()
}

func (f *fakeHistory) RunEvents(_ context.Context, _ access.Caller, _, runID string, after int64, _ int, secrets bool) (events.EventPage, error) {
	url := "https://a.example/?token=***"
	if secrets {
		url = "https://a.example/?token=abc"
	}
	return events.EventPage{Events: []events.Event{{RunID: runID, Sequence: after + 1, Type: "navigated", At: born.UTC(), Data: []byte(`{"url":"` + url + `"}`)},
		{RunID: runID, Sequence: after + 2, Type: "paused", At: born.UTC(), Data: []byte(`{}`)}}, First: 1, LatestExclusive: after + 3, NextAfter: after + 2}, f.failure()
}

// fakeFeed returns the entries, and then waits or ends.
type fakeFeed struct {
	entries []events.StreamEvent
	waits   bool
	closed  chan struct{}
}

func (f *fakeFeed) Next(ctx context.Context) (events.StreamEvent, error) {
	if len(f.entries) > 0 {
		e := f.entries[0]
		f.entries = f.entries[1:]
		return e, nil
	}
	if f.waits {
		<-ctx.Done()
		return events.StreamEvent{}, ctx.Err()
	}
	return events.StreamEvent{}, io.EOF
}

func (f *fakeFeed) Close() { close(f.closed) }

func (f *fakeHistory) Follow(_ context.Context, _ access.Caller, id string, asked events.FollowRequest) (events.Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follows = append(f.follows, asked)
	feed := &fakeFeed{waits: f.feedWaits, closed: make(chan struct{})}
	if id == liveID {
		feed.entries = f.entries
	}
	f.feed = feed
	return feed, f.err
}
