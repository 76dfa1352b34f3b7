package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
)

// rewrapPage is how many records are read and written at once.
const rewrapPage = 500

// Rewrapped tells what [RewrapSessions] came to.
type Rewrapped struct {
	Sessions int // whose record was written anew
	Events   int // that were written anew
	Opened   int // records and events of which all opened, those that are sealed as they should be too
	Left     []snapshot.LeftSealed
}

// rewrapping is one run of RewrapSessions.
type rewrapping struct {
	profiles.Catalogue
	vault  *snapshot.Vault
	retire []string
	out    Rewrapped
}

// RewrapSessions does to what the catalogue keeps sealed, in sessions' records and
// in the events of their runs, what [snapshot.Vault.Rewrap] does to a store. No
// daemon runs on the catalogue meanwhile. What is done is passed over when it is
// called again. Errors are the catalogue's; what does not open is left as it is, and
// told by session and by run.
func RewrapSessions(ctx context.Context, c profiles.Catalogue, v *snapshot.Vault, retire []string) (Rewrapped, error) {
	r := rewrapping{Catalogue: c, vault: v, retire: retire}
	err := r.sessions(ctx)
	if err == nil {
		err = r.events(ctx)
	}
	return r.out, err
}

func (r *rewrapping) sessions(ctx context.Context) error {
	for after := ""; ; {
		page, next, err := r.Sessions(ctx, profiles.SessionFilter{Limit: rewrapPage, StartAfter: after})
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

func (r *rewrapping) session(ctx context.Context, rec profiles.Session) error {
	var anew [2][]byte
	var failed error
	for i, sealed := range [][]byte{rec.Sealed, rec.Asked} {
		if len(sealed) > 0 {
			var err error
			anew[i], err = r.vault.RewrapSealed(sealed, r.retire)
			failed = errors.Join(failed, err)
		}
	}
	switch {
	case failed != nil:
		r.out.Left = append(r.out.Left, snapshot.LeftSealed{Key: "session " + rec.ID, Err: failed})
	case len(rec.Sealed)+len(rec.Asked) > 0:
		r.out.Opened++
	}
	if anew[0] == nil && anew[1] == nil {
		return nil
	}
	_, err := r.UpdateSession(ctx, rec.ID, func(rec *profiles.Session) error {
		if anew[0] != nil {
			rec.Sealed = anew[0]
		}
		if anew[1] != nil {
			rec.Asked = anew[1]
		}
		return nil
	})
	if err == nil {
		r.out.Sessions++
	}
	return err
}

// events goes over all runs, and tells by run what is left of it: there may be
// thousands in one, and one cause for all.
func (r *rewrapping) events(ctx context.Context) error {
	var last profiles.SealedEvent
	var failed error // the first one of the run
	left := 0        // of the run
	over := func() {
		if left > 0 {
			r.out.Left = append(r.out.Left, snapshot.LeftSealed{Key: fmt.Sprintf("%d events of run %s", left, last.RunID), Err: failed})
		}
		left, failed = 0, nil
	}
	for {
		page, err := r.SealedEvents(ctx, last, rewrapPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			over()
			return nil
		}
		for i := range page {
			e := &page[i]
			if e.RunID != last.RunID {
				over()
			}
			last = *e
			if e.Anew, err = r.vault.RewrapSealed(e.Sealed, r.retire); err != nil {
				left++
				if failed == nil {
					failed = err
				}
				continue
			}
			r.out.Opened++
		}
		written, err := r.ResealEvents(ctx, page)
		if err != nil {
			return err
		}
		r.out.Events += written
	}
}
