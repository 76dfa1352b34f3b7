package session

// Meter counts what happens, for who runs the daemon. Its methods are safe for
// concurrent use and do not wait.
type Meter interface {
	// LoginChecked counts a login check by its outcome.
	LoginChecked(outcome Outcome)
	// LoginExpired counts a default that was found logged out, once for each version.
	LoginExpired()
	// Saved counts a save, or an attempt at one, by its kind and outcome.
	Saved(kind SaveKind, outcome Outcome)
}

// Outcome is what something that is counted came to.
type Outcome string

// The outcomes of login checks, and of saves.
const (
	CheckLoggedIn  Outcome = "logged_in"
	CheckLoggedOut Outcome = "logged_out"
	CheckFailed    Outcome = "failed" // the page could not be judged
	SaveDone       Outcome = "saved"
	SaveUnchanged  Outcome = "unchanged" // there was nothing to save
	SaveNotDone    Outcome = "failed"
)

// SaveKind is what a save was made for.
type SaveKind string

// The kinds of saves.
const (
	SavedEnd        SaveKind = "end"        // somebody ended a session, or it is to persist
	SavedCheckpoint SaveKind = "checkpoint" // somebody asked for it while the session runs on
	SavedAuto       SaveKind = "autosave"
	SavedRescue     SaveKind = "rescue" // the daemon ended a session, or a crash did
	SavedImport     SaveKind = "import"
	SavedCheck      SaveKind = "login_check" // a scheduled check found the default logged in
)

// saveOutcome is what a save is counted as that came to an error, or to none.
func saveOutcome(err error) Outcome {
	if err != nil {
		return SaveNotDone
	}
	return SaveDone
}

// kind is what a job's save is made for.
func (j job) kind() SaveKind {
	switch {
	case j.rescue:
		return SavedRescue
	case j.auto:
		return SavedAuto
	case j.goesOn:
		return SavedCheckpoint
	default:
		return SavedEnd
	}
}

// unmetered counts nothing.
type unmetered struct{}

func (unmetered) LoginChecked(Outcome)    {}
func (unmetered) LoginExpired()           {}
func (unmetered) Saved(SaveKind, Outcome) {}
