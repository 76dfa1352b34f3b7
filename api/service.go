package api

import (
	"context"
	"io"
	"time"

	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/restore"
)

// Service is what the HTTP face needs of the session room. Every method is
// safe for concurrent use and checks by itself what the caller may do; errors
// are faults, and those of somebody else's objects are as if they were not
// there.
type Service interface {
	sessions
	driver
	records
	importer
	// Ready tells whether sessions can be taken.
	Ready(ctx context.Context) error
}

var _ Service = (*session.Service)(nil)

// Keys are the API keys, and the tickets of GET /v1/connect.
type Keys interface {
	// Authenticate returns whose key the secret is; else unauthorized.
	Authenticate(ctx context.Context, secret string) (access.Caller, error)
	// NewTicket makes a ticket for one /v1/connect; RedeemTicket spends it.
	NewTicket(ctx context.Context, c access.Caller) (ticket string, expires time.Time, err error)
	RedeemTicket(ctx context.Context, ticket string) (access.Caller, error)
	// CreateKey returns the secret too, which is kept nowhere.
	CreateKey(ctx context.Context, c access.Caller, name, userID string, allUsers bool, rights []access.Right) (k access.Key, secret string, err error)
	Keys(ctx context.Context, c access.Caller) ([]access.Key, error)
	DeleteKey(ctx context.Context, c access.Caller, id string) error
}

var _ Keys = (*access.Keys)(nil)

type sessions interface {
	Create(ctx context.Context, c access.Caller, r session.Create) (session.Info, error)
	Get(ctx context.Context, c access.Caller, id string) (session.Info, error)
	List(ctx context.Context, c access.Caller, r session.ListRequest) (page []session.Info, next string, err error)
	End(ctx context.Context, c access.Caller, id string, r session.EndRequest) (session.EndAnswer, error)
	EndAll(ctx context.Context, c access.Caller, r session.EndAllRequest) (session.EndAnswer, error)
	// Checkpoint saves a session that runs on.
	Checkpoint(ctx context.Context, c access.Caller, id string, r session.CheckpointRequest) (session.CheckpointAnswer, error)
	RestoreReport(ctx context.Context, c access.Caller, id string) (restore.Report, error)
}

type driver interface {
	// AuthorizeTicket returns whom a session's ticket stands for, if it is for
	// that session and purpose; else unauthorized.
	AuthorizeTicket(ctx context.Context, ticket, sessionID string, p session.Purpose) (access.Caller, error)
	Status(ctx context.Context, c access.Caller, id string) (agent.Status, error)
	Pause(ctx context.Context, c access.Caller, id string) (session.Acknowledged, error)
	Resume(ctx context.Context, c access.Caller, id string) (session.Acknowledged, error)
	Navigate(ctx context.Context, c access.Caller, id, url string) (currentURL string, err error)
	Screenshot(ctx context.Context, c access.Caller, id string) (session.Screenshot, error)
	Pages(ctx context.Context, c access.Caller, id string) ([]session.Page, error)
	BrowserVersion(ctx context.Context, c access.Caller, id string) (product, protocolVersion, userAgent string, err error)
	// MayDrive refuses who may not connect to a session.
	MayDrive(ctx context.Context, c access.Caller, id string) error
	// Attach takes a place for one CDP client of a session, until release; else
	// too_many_clients. It comes before Connect.
	Attach(id string) (release func(), err error)
	// Connect serves one CDP client until it leaves, the session ends or the
	// caller's key is deleted; targetID "" is the browser.
	Connect(ctx context.Context, c access.Caller, id, targetID string, conn session.Conn) error
}

// records are what is kept of users.
type records interface {
	Settings(ctx context.Context, c access.Caller, userID string) (session.Settings, error)
	// ChangeSettings applies change in a transaction; its error comes back as it is.
	ChangeSettings(ctx context.Context, c access.Caller, userID string, change func(session.Settings) (session.Settings, error)) (session.Settings, error)
	CheckDefault(ctx context.Context, c access.Caller, userID string) (session.LoginOutcome, error)
	// LastCheck is the outcome of the last CheckDefault; nil where none was made.
	LastCheck(ctx context.Context, c access.Caller, userID string) (*session.LoginOutcome, error)
}

// Messenger carries the conversation with the agent that drives a session.
type Messenger interface {
	// Send records a message before it returns; Messages gives those after an ID.
	Send(ctx context.Context, c access.Caller, id string, m agent.MessageRequest) (agent.Message, error)
	Messages(ctx context.Context, c access.Caller, id string, after int64, whole bool) (agent.Conversation, error)
	// Cancel reports whether a task was going on.
	Cancel(ctx context.Context, c access.Caller, id string) (cancelled bool, err error)
}

var _ Messenger = (*agent.Messenger)(nil)

// Notes are agents' working states.
type Notes interface {
	PutNote(ctx context.Context, c access.Caller, n agent.NoteChange) (agent.Note, error)
	Note(ctx context.Context, c access.Caller, sessionID string) (agent.Note, error)
	// LatestNote is of userID, "" for the key's own.
	LatestNote(ctx context.Context, c access.Caller, userID string) (agent.Note, error)
	// SessionNotes are a browser session's: its own, else those it was restored with.
	SessionNotes(ctx context.Context, c access.Caller, id string) (agent.Note, error)
}

var _ Notes = (*agent.Notes)(nil)

// importer brings environments in that were saved elsewhere.
type importer interface {
	// Import stores nothing after an error, the body's own included.
	Import(ctx context.Context, c access.Caller, r session.Import, body io.Reader) (session.ImportAnswer, error)
}

// Documents are agents' own, kept byte for byte. What is wrong with a scope, an ID or
// a body is a fault that names it.
type Documents interface {
	MaySave(ctx context.Context, c access.Caller, at agent.Scope) error
	SaveDocument(ctx context.Context, c access.Caller, at agent.Scope, id string, body []byte, latest bool) error
	Document(ctx context.Context, c access.Caller, at agent.Scope, id string) ([]byte, error)
	DocumentIDs(ctx context.Context, c access.Caller, at agent.Scope, limit int, startAfter string) (ids []string, next string, err error)
	DeleteDocument(ctx context.Context, c access.Caller, at agent.Scope, id string) error
	Manifest(ctx context.Context, c access.Caller, at agent.Scope) ([]byte, error)
	SaveManifest(ctx context.Context, c access.Caller, at agent.Scope, body []byte) error
	// DeleteDocuments removes all of a session's, and is idempotent.
	DeleteDocuments(ctx context.Context, c access.Caller, sessionID string) error
}

var _ Documents = (*agent.Documents)(nil)

// History is what happened in sessions. whole is with the secrets in it, which
// needs the right to.
type History interface {
	Runs(ctx context.Context, c access.Caller, id string) ([]events.Run, error)
	RunEvents(ctx context.Context, c access.Caller, id, runID string, after int64, limit int, whole bool) (events.EventPage, error)
	// Follow gives a stream that is to be closed.
	Follow(ctx context.Context, c access.Caller, id string, f events.FollowRequest) (events.Stream, error)
}

var _ History = (*events.Reader)(nil)

// Deliveries are the webhooks that were sent, or are to be.
type Deliveries interface {
	Deliveries(ctx context.Context, c access.Caller, state string, limit int, startAfter string) (page []events.Delivery, next string, err error)
	Resend(ctx context.Context, c access.Caller, id string) (events.Delivery, error)
}

var _ Deliveries = (*events.Deliveries)(nil)
