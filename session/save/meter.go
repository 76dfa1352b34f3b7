package save

// Meter counts saves. Its methods are safe for concurrent use and do not wait.
type Meter interface {
	// Saved counts a save by what it was made for and its result. Failed saves count too.
	Saved(kind Kind, result Result)
}

// Result is the result of a save.
type Result string

// The results.
const (
	Saved     Result = "saved"
	Unchanged Result = "unchanged" // nothing to save
	Failed    Result = "failed"
)

// Kind is what a save was made for.
type Kind string

// The kinds of saves.
const (
	ForEnd        Kind = "end"        // a caller ended the session, or it is to persist
	ForCheckpoint Kind = "checkpoint" // a caller requested it, and the session continues
	ForAutosave   Kind = "autosave"
	ForRescue     Kind = "rescue" // the daemon ended a session, or a crash did
	ForImport     Kind = "import"
	ForLoginCheck Kind = "login_check" // a scheduled check found the default logged in
)

// ResultOf returns the result of a save that ended with err; nil: it succeeded.
func ResultOf(err error) Result {
	if err != nil {
		return Failed
	}
	return Saved
}

// kind returns what the job's save is made for.
func (j Job) kind() Kind {
	switch {
	case j.Rescue:
		return ForRescue
	case j.Auto:
		return ForAutosave
	case j.Continues:
		return ForCheckpoint
	default:
		return ForEnd
	}
}
