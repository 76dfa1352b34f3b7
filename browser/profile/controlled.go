package profile

import "strings"

// controllable lists the preferences that Chromium 156 lets extensions set: those of
// chrome.privacy, chrome.proxy and chrome.accessibilityFeatures
// (chrome/browser/extensions/pref_mapping.cc).
var controllable = map[string]bool{
	"alternate_error_pages.enabled":                                     true,
	"autofill.credit_card_enabled":                                      true,
	"autofill.enabled":                                                  true,
	"autofill.profile_enabled":                                          true,
	"credentials_enable_service":                                        true,
	"enable_a_ping":                                                     true,
	"enable_do_not_track":                                               true,
	"enable_referrers":                                                  true,
	"net.network_prediction_options":                                    true,
	"privacy_sandbox.first_party_sets_enabled":                          true,
	"privacy_sandbox.m1.ad_measurement_enabled":                         true,
	"privacy_sandbox.m1.fledge_enabled":                                 true,
	"privacy_sandbox.m1.topics_enabled":                                 true,
	"profile.cookie_controls_mode":                                      true,
	"profile.default_content_setting_values.protected_media_identifier": true,
	"proxy":                                true,
	"safebrowsing.enabled":                 true,
	"safebrowsing.scout_reporting_enabled": true,
	"search.suggest_enabled":               true,
	"settings.a11y.animation_policy":       true,
	"spellcheck.use_spelling_service":      true,
	"translate.enabled":                    true,
	"webrtc.ip_handling_policy":            true,
	"webrtc.ip_handling_url":               true,
	"webrtc.post_quantum_key_agreement":    true,
	"webrtc.udp_port_range":                true,
}

// fontPreferences is the prefix of the preferences that chrome.fontSettings sets.
const fontPreferences = "webkit.webprefs."

// contentTypes lists the content settings that chrome.contentSettings knows.
var contentTypes = map[string]bool{
	"cookies": true, "images": true, "javascript": true, "location": true, "geolocation": true, "plugins": true, "popups": true,
	"notifications": true, "fullscreen": true, "mouselock": true, "microphone": true, "media-stream-mic": true,
	"camera": true, "media-stream-camera": true, "unsandboxedPlugins": true, "ppapi-broker": true,
	"automaticDownloads": true, "automatic-downloads": true, "autoVerify": true, "anti-abuse": true,
	"clipboard": true, "sound": true,
}

// dropControlled removes from an extension's entry every preference and content setting
// that extensions may not set. Chrome checks this when an extension sets one, but not
// when it reads the entry: there an entry could override any preference of the profile.
func dropControlled(entry map[string]any) {
	for _, name := range []string{"preferences", "incognito_preferences", "regular_only_preferences"} {
		of, ok := entry[name].(map[string]any)
		if !ok {
			delete(entry, name)
			continue
		}
		for preference := range of {
			if !controllable[preference] && !strings.HasPrefix(preference, fontPreferences) {
				delete(of, preference)
			}
		}
	}
	for _, name := range []string{"content_settings", "incognito_content_settings"} {
		of, ok := entry[name].([]any)
		if !ok {
			delete(entry, name)
			continue
		}
		kept := []any{}
		for _, value := range of {
			rule, _ := value.(map[string]any)
			if kind, _ := rule["type"].(string); contentTypes[kind] {
				kept = append(kept, value)
			}
		}
		entry[name] = kept
	}
}

// dropManaged removes a profile's settings of the machine's administrator, which Chrome
// prefers to those of its user. Chrome itself writes such names only for supervised
// children, and no profile here has one.
func dropManaged(prefs map[string]any) {
	delete(prefs, policyPreferences)
	profile, _ := prefs["profile"].(map[string]any)
	for _, of := range []map[string]any{prefs, profile} {
		for name := range of {
			if name == "managed" || strings.HasPrefix(name, "managed_") {
				delete(of, name)
			}
		}
	}
}
