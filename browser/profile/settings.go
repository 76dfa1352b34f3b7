package profile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// ownIDs are the settings that identify a profile. No two users may share them.
func ownIDs() []string {
	return []string{"enterprise_profile_guid", "google", "protection", "media", "gcm", "extensions"}
}

// StartSettings returns the settings that Chrome has written into an empty profile while
// it started, without what identifies the profile. A Chrome that starts with them changes
// almost none. No Chrome may run on the profile.
func StartSettings(userDataDir string) ([]byte, error) {
	const op = "profile.start_settings"
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile's folder cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	raw, err := read(root, path.Join(Spare, "Preferences"))
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile's preferences could not be read")
	}
	prefs, err := parse(raw)
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile's preferences are not JSON")
	}
	for _, name := range ownIDs() {
		delete(prefs, name)
	}
	return json.Marshal(prefs)
}

// WriteStartSettings creates the empty profile [Spare] with the settings of
// [StartSettings].
func WriteStartSettings(userDataDir string, settings []byte) error {
	folder := filepath.Join(userDataDir, Spare)
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "Preferences"), settings, 0o600)
	}
	return fault.Wrap(err, fault.StoreFailed, "profile.start_settings", "the profile's preferences could not be written")
}

// unnoticed are the settings that no page can notice: Chrome's own records. A name stands
// for all below it. Chrome writes them into every profile (156).
func unnoticed() []string {
	return append(ownIDs(), "account_info", "account_tracker_service_last_update", "announcement_notification_service_first_run_time",
		"apps", "autocomplete", "autofill.ai_last_version_deduped", "autofill.last_version_deduped", "bookmark", "bookmark_bar", "browser.has_seen_welcome_page",
		"browser.window_placement", "cached_fonts", "commerce_daily_metrics_last_update_time", "countryid_at_install", "data_sharing", "default_apps_install_state",
		"devtools", "domain_diversity", "dual_layer_user_pref_store", "gaia_cookie", "history_clusters",
		"https_upgrade_fallbacks", "https_upgrade_navigations", "in_product_help",
		"invalidation", "language_model_counters", "lens", "media_router", "new_tab_page", "ntp", "optimization_guide",
		"password_manager", "pinned_tabs", "price_tracking", "privacy_guide",
		"profile.avatar_index", "profile.background_password_check", "profile.content_settings.exceptions.media_engagement",
		"profile.content_settings.exceptions.site_engagement", "profile.created_by_version", "profile.creation_time", "profile.exit_type", "profile.exited_cleanly",
		"profile.family_member_role", "profile.last_engagement_time", "profile.last_time_obsolete_http_credentials_removed",
		"profile.last_time_password_store_metrics_reported", "profile.name", "profile.observed_session_time",
		"profile.password_hash_data_list", "profile.were_old_google_logins_removed",
		"safebrowsing.event_timestamps", "safebrowsing.metrics_last_log_time", "saved_tab_groups", "schedule_to_flush_to_disk",
		"segmentation_platform", "sessions", "should_read_incorrect_format", "side_panel", "signin", "spellcheck.dictionaries",
		"spellcheck.dictionary", "sync", "tab_search",
		"toolbar", "total_passwords_available_for_account", "total_passwords_available_for_profile", "ukm", "updateclientdata",
		"web_app", "web_apps", "zerosuggest")
}

// Noticeable returns the names of settings of the environment in [Default] that pages may
// notice and that the Chrome that runs on [Spare] does not have, sorted.
func Noticeable(userDataDir string) ([]string, error) {
	const op = "profile.noticeable"
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile's folder cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	var prefs [2]map[string]any
	for i, folder := range []string{Default, Spare} {
		raw, err := read(root, path.Join(folder, "Preferences"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			prefs[i], err = parse(raw)
		}
		if err != nil {
			return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile's preferences could not be read")
		}
	}
	var names []string
	differing(prefs[0], prefs[1], "", func(name string, value any) {
		// Pages of a site with a high score may play sound at once.
		if strings.HasSuffix(name, ".hasHighScore") && value == true {
			names = append(names, "media_engagement")
		}
		if !slices.ContainsFunc(unnoticed(), func(of string) bool { return name == of || strings.HasPrefix(name, of+".") }) {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return slices.Compact(names), nil
}

// differing calls found with each value of a that b lacks or has differently, and its name.
func differing(a, b map[string]any, prefix string, found func(name string, value any)) {
	for key, value := range a {
		name := prefix + key
		other, there := b[key]
		if there && reflect.DeepEqual(value, other) {
			continue
		}
		if inner, ok := value.(map[string]any); ok {
			otherInner, _ := other.(map[string]any)
			differing(inner, otherInner, name+".", found)
			continue
		}
		found(name, value)
	}
}
