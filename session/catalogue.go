package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/request"
)

// Catalogue holds the stores of durable records that a [Service] uses. All of them are
// parts of one database.
type Catalogue struct {
	profiles.SessionStore
	profiles.SnapshotStore
	profiles.RetentionStore
	profiles.DefaultStore
	profiles.UserStore
	request.UploadedExtensions
	agent.NoteWriter
	RunRecords
	AnswerRecords
	DeliveryRecords
	Database
}

// RunRecords ends the runs that a killed daemon left, and removes old events; see
// [profiles.RunStore] and [profiles.EventStore].
type RunRecords interface {
	OpenRuns(ctx context.Context) ([]profiles.Run, error)
	EndRun(ctx context.Context, e profiles.RunEnd, keep profiles.EventBounds) (profiles.Run, error)
	ExpireEvents(ctx context.Context, before time.Time) error
}

// AnswerRecords removes recorded answers; see [profiles.AnswerStore].
type AnswerRecords interface {
	DropUnfinishedAnswers(ctx context.Context) error
	ExpireAnswers(ctx context.Context, before time.Time) error
}

// DeliveryRecords removes old deliveries of webhooks; see [profiles.DeliveryStore].
type DeliveryRecords interface {
	ExpireDeliveries(ctx context.Context, before time.Time) error
}

// Database reports whether the catalogue can be read.
type Database interface {
	Health(ctx context.Context) error
}
