package main

import "strings"

// flagWords are words of the HTTP API in messages of the daemon, each with the flags of the
// verbs. Of two that begin alike, the longer one comes first.
var flagWords = strings.NewReplacer(
	"restore_default_environment_from_user_id", "--default-of",
	"restore_from_environment_id", "--from",
	"if_missing=fresh", "--fresh",
	"save_as_default=true", "--default",
	"save_as_default", "--default",
	"repeat the call with default_conflict=overwrite", "repeat the command with --overwrite",
	"a second DELETE with save_snapshot_mode=filesystem, or a resume,", "session end --save, or session resume,",
	"a DELETE with save_snapshot_mode=filesystem, or a resume,", "session end --save, or session resume,",
	"save_snapshot_mode=filesystem", "--save",
	"save_snapshot_mode", "--save",
	"start_url", "--start-url",
)
