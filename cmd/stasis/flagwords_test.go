package main

import "testing"

// Messages of the daemon name flags of the command line where those of the API name fields.
func TestFlagWords(t *testing.T) {
	for message, want := range map[string]string{
		`restore_default_environment_from_user_id: user "ada" has no default environment; save one with save_as_default=true, or create with if_missing=fresh`: `--default-of: user "ada" has no default environment; save one with --default, or create with --fresh`,
		`restore_from_environment_id: session s was never saved; end it with save_snapshot_mode=filesystem, or create with if_missing=fresh`:                   `--from: session s was never saved; end it with --save, or create with --fresh`,
		"the default was not moved: x; repeat the call with default_conflict=overwrite to move it":                                                             "the default was not moved: x; repeat the command with --overwrite to move it",
		"session ended; until T a second DELETE with save_snapshot_mode=filesystem, or a resume, can save it":                                                  "session ended; until T session end --save, or session resume, can save it",
		"session s has already ended without a save, and cannot be saved any more; ask for the save at the first end, with save_snapshot_mode":                 "session s has already ended without a save, and cannot be saved any more; ask for the save at the first end, with --save",
	} {
		if got := flagWords.Replace(message); got != want {
			t.Errorf("%s\n became %s\n    want %s", message, got, want)
		}
	}
}
