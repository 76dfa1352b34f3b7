package mcpserver

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/stasisd/stasis/client"
)

// apiWords are words of the HTTP API in messages of the daemon, each with the words of the
// tools. Of two that begin alike, the longer one comes first.
var apiWords = strings.NewReplacer(
	"restore_default_environment_from_user_id", "user",
	"create one with restore_from_environment_id", "call start_session with snapshot",
	"restore_from_environment_id", "snapshot",
	"restore_from_session_id", "snapshot",
	"create with if_missing=fresh", "call start_session with fresh: true",
	"if_missing=fresh", "fresh: true",
	"save one with save_as_default=true", "save one with save_session and as_default: true",
	"save_as_default=true", "as_default: true",
	"save_as_default", "as_default",
	"repeat the call with default_conflict=overwrite", "call save_session again with overwrite: true",
	"default_conflict=overwrite", "overwrite: true",
	"default_conflict", "overwrite",
	"a second DELETE with save_snapshot_mode=filesystem, or a resume,", "save_session with end: true",
	"a DELETE with save_snapshot_mode=filesystem, or a resume,", "save_session with end: true",
	"end it with save_snapshot_mode=filesystem", "call save_session with end: true",
	"save_snapshot_mode=filesystem", "save_session with end: true",
	"save_snapshot_mode", "save_session",
	"start_url", "url",
	"user_id", "user",
)

// toolWords returns a message of the daemon in the words of the tools.
func toolWords(message string) string { return apiWords.Replace(message) }

// explained returns an error in the words of the tools, with what an agent can do about it.
func explained(err error) error {
	var network *url.Error
	if errors.As(err, &network) {
		return fmt.Errorf("the daemon does not answer: %w; ask the person who configured this server whether stasis serve runs, and whether STASIS_URL is its address", err)
	}
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	text := toolWords(refused.Error())
	switch refused.Code {
	case "unauthorized":
		text += "; ask the person who configured this server to set STASIS_API_KEY to a key of this daemon"
	case "session_not_found", "session_not_running":
		text += "; list_sessions shows the sessions that run"
	case "snapshot_not_found":
		text += "; list_snapshots shows the saved environments"
	case "no_login_check":
		text = "no_login_check: the user's settings have no login check, and no tool can set one; " +
			"call start_session and look at a page that only a logged-in user sees, or ask the person to set a login check"
	}
	return errors.New(text)
}
