package library

import (
	"context"
	"errors"
	"fmt"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
)

// rewrapPage is how many records are read and written at once.
const rewrapPage = 500

// RewrapResult is what [RewrapCatalogue] did.
type RewrapResult struct {
	Sessions int // records that were sealed again
	Events   int // events that were sealed again
	Secrets  int // secrets of receivers of webhooks that were sealed again
	Opened   int // records and events that could be opened, including those that needed no change
	Skipped  []snapshot.SkippedObject
}

// SessionRecords reads and changes the records of sessions, which have sealed parts; see
// [profiles.SessionStore].
type SessionRecords interface {
	Sessions(ctx context.Context, f profiles.SessionFilter) (page []profiles.Session, next string, err error)
	UpdateSession(ctx context.Context, id string, change func(*profiles.Session) error) (profiles.Session, error)
}

// SealedEvents reads and changes events with sealed parts; see [profiles.EventStore].
type SealedEvents interface {
	SealedEvents(ctx context.Context, after profiles.SealedEvent, limit int) ([]profiles.SealedEvent, error)
	ResealEvents(ctx context.Context, events []profiles.SealedEvent) (written int, err error)
}

// WebhookSecrets reads and changes the secrets of receivers of webhooks; see
// [profiles.WebhookSecretStore].
type WebhookSecrets interface {
	WebhookSecrets(ctx context.Context, userID string) ([]profiles.WebhookSecret, error)
	ResealWebhookSecret(ctx context.Context, was, now profiles.WebhookSecret) error
}

// Sealer seals data again for the current recipients; see [snapshot.Vault.RewrapSealed].
type Sealer interface {
	RewrapSealed(sealed []byte, retire []string) ([]byte, error)
}

// rewrapRun is one run of RewrapCatalogue.
type rewrapRun struct {
	records SessionRecords
	sealed  SealedEvents
	secrets WebhookSecrets
	sealer  Sealer
	retire  []string
	out     RewrapResult
}

// RewrapCatalogue seals again what the catalogue keeps sealed: in sessions' records, in the
// events of their runs, and secrets of webhooks. It does for the catalogue what [snapshot.Vault.Rewrap] does
// for a store. No daemon may use the catalogue meanwhile. A second call skips what is
// done. Errors are those of the catalogue. Data that cannot be opened stays unchanged;
// Skipped lists it by session, run and user.
func RewrapCatalogue(ctx context.Context, records SessionRecords, events SealedEvents, secrets WebhookSecrets, sealer Sealer, retire []string) (RewrapResult, error) {
	r := rewrapRun{records: records, sealed: events, secrets: secrets, sealer: sealer, retire: retire}
	err := r.sessions(ctx)
	if err == nil {
		err = r.events(ctx)
	}
	if err == nil {
		err = r.webhookSecrets(ctx)
	}
	return r.out, err
}

func (r *rewrapRun) sessions(ctx context.Context) error {
	for after := ""; ; {
		page, next, err := r.records.Sessions(ctx, profiles.SessionFilter{Limit: rewrapPage, StartAfter: after})
		if err != nil {
			return err
		}
		for _, rec := range page {
			if err := r.session(ctx, rec); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

func (r *rewrapRun) session(ctx context.Context, rec profiles.Session) error {
	var resealed [2][]byte
	var failed error
	for i, sealed := range [][]byte{rec.Sealed, rec.SealedRequest} {
		if len(sealed) > 0 {
			var err error
			resealed[i], err = r.sealer.RewrapSealed(sealed, r.retire)
			failed = errors.Join(failed, err)
		}
	}
	switch {
	case failed != nil:
		r.out.Skipped = append(r.out.Skipped, snapshot.SkippedObject{Key: "session " + rec.ID, Err: failed})
	case len(rec.Sealed)+len(rec.SealedRequest) > 0:
		r.out.Opened++
	}
	if resealed[0] == nil && resealed[1] == nil {
		return nil
	}
	_, err := r.records.UpdateSession(ctx, rec.ID, func(rec *profiles.Session) error {
		if resealed[0] != nil {
			rec.Sealed = resealed[0]
		}
		if resealed[1] != nil {
			rec.SealedRequest = resealed[1]
		}
		return nil
	})
	if err == nil {
		r.out.Sessions++
	}
	return err
}

// events handles the events of all runs. It reports failures by run, because a run may
// have thousands of events that fail for one reason.
func (r *rewrapRun) events(ctx context.Context) error {
	var last profiles.SealedEvent
	var failed error // the first failure of the run
	left := 0        // failed events of the run
	endRun := func() {
		if left > 0 {
			r.out.Skipped = append(r.out.Skipped, snapshot.SkippedObject{Key: fmt.Sprintf("%d events of run %s", left, last.RunID), Err: failed})
		}
		left, failed = 0, nil
	}
	for {
		page, err := r.sealed.SealedEvents(ctx, last, rewrapPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			endRun()
			return nil
		}
		for i := range page {
			e := &page[i]
			if e.RunID != last.RunID {
				endRun()
			}
			last = *e
			if e.Replacement, err = r.sealer.RewrapSealed(e.Sealed, r.retire); err != nil {
				left++
				if failed == nil {
					failed = err
				}
				continue
			}
			r.out.Opened++
		}
		written, err := r.sealed.ResealEvents(ctx, page)
		if err != nil {
			return err
		}
		r.out.Events += written
	}
}

// webhookSecrets handles the secrets of receivers of webhooks.
func (r *rewrapRun) webhookSecrets(ctx context.Context) error {
	all, err := r.secrets.WebhookSecrets(ctx, "")
	if err != nil {
		return err
	}
	for _, was := range all {
		now, changed := was, false
		var failed error
		for _, sealed := range []*[]byte{&now.Sealed, &now.Former} {
			if len(*sealed) == 0 {
				continue
			}
			again, err := r.sealer.RewrapSealed(*sealed, r.retire)
			failed = errors.Join(failed, err)
			if again != nil {
				*sealed, changed = again, true
			}
		}
		if failed != nil {
			r.out.Skipped = append(r.out.Skipped, snapshot.SkippedObject{Key: "a webhook secret of owner " + profiles.OwnerOf(was.UserID), Err: failed})
		} else {
			r.out.Opened++
		}
		if !changed {
			continue
		}
		if err := r.secrets.ResealWebhookSecret(ctx, was, now); err != nil {
			return err
		}
		r.out.Secrets++
	}
	return nil
}
