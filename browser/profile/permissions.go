package profile

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/stasisd/stasis/state"
)

// These are values of content settings in Chromium's components/content_settings
// registry.
const (
	settingAllow = 1
	settingBlock = 2
)

// settingsOf returns the content settings that a decision on a permission sets, and
// whether Chrome would prompt a person for it. If it would not, a policy's default does
// not change Chrome's own; only rules do.
func settingsOf(permission string) (settings []string, asks bool) {
	switch permission {
	case "background-sync":
		return []string{"background_sync"}, false
	case "captured-surface-control":
		return []string{"captured_surface_control"}, false
	case "payment-handler":
		return []string{"payment_handler"}, false
	case "persistent-storage":
		return []string{"durable_storage"}, false
	case "camera":
		return []string{"media_stream_camera"}, true
	case "microphone":
		return []string{"media_stream_mic"}, true
	case "midi-sysex":
		return []string{"midi_sysex"}, true
	case "clipboard-read":
		return []string{"clipboard"}, true
	case "idle-detection":
		return []string{"idle_detection"}, true
	case "local-fonts":
		return []string{"local_fonts"}, true
	case "local-network":
		return []string{"local_network"}, true
	case "local-network-access":
		return []string{"local_network_access", "local_network", "loopback_network"}, true
	case "loopback-network":
		return []string{"loopback_network"}, true
	case "storage-access":
		return []string{"storage_access"}, true
	case "top-level-storage-access":
		return []string{"top_level_storage_access"}, true
	case "window-management":
		return []string{"window_placement"}, true
	case "geolocation", "midi", "notifications", "sensors":
		return []string{permission}, true
	}
	return nil, false
}

// Prompts reports whether Chrome would prompt a person for a permission.
func Prompts(permission string) bool {
	_, asks := settingsOf(permission)
	return asks
}

// promptSettings lists the content settings for which Chrome would prompt a person. No
// one can answer a prompt, and the page's call would never return, so each is decided in
// advance. Settings of devices are denied whatever the policy says: Chrome would still
// prompt for a choice of device.
func promptSettings() []string {
	all := []string{"ar", "bluetooth_guard", "bluetooth_scanning", "file_system_write_guard", "hand_tracking",
		"hid_guard", "serial_guard", "smart_card_guard", "usb_guard", "vr"}
	for _, name := range state.Permissions() {
		if settings, asks := settingsOf(name); asks {
			all = append(all, settings[0])
		}
	}
	return all
}

// writePolicy writes the permission policy into a profile's preferences. The policy's
// default and its rules for all origins become Chrome's defaults, so that the
// environment's own decisions for an origin stay. Rules for one origin become exceptions.
// decide first removes what an earlier policy (before) wrote. Without a policy it denies
// what Chrome would prompt for, except where the environment has a decision.
func writePolicy(profile map[string]any, policy, before *state.PermissionPolicy) {
	defaults := object(profile, "default_content_setting_values")
	settings := object(profile, "content_settings")
	exceptions := object(settings, "exceptions")
	partitioned, _ := settings["partitioned_exceptions"].(map[string]any)
	for _, of := range []map[string]any{defaults, exceptions, partitioned} {
		dropGrants(of)
	}
	if before != nil {
		for _, name := range state.Permissions() {
			settings, _ := settingsOf(name)
			delete(defaults, settings[0])
		}
		for _, r := range before.Rules {
			for _, s := range ruleSettings(r) {
				if of, ok := exceptions[s].(map[string]any); ok {
					delete(of, pattern(r.Origin))
				}
			}
		}
	}
	if policy != nil {
		for _, name := range state.Permissions() {
			if settings, asks := settingsOf(name); asks {
				defaults[settings[0]] = setting(policy.Default)
			}
		}
		for _, r := range policy.Rules {
			for _, s := range ruleSettings(r) {
				if everywhere(r.Origin) {
					defaults[s] = setting(r.Decision)
					continue
				}
				object(exceptions, s)[pattern(r.Origin)] = map[string]any{"setting": setting(r.Decision)}
			}
		}
	}
	for _, name := range promptSettings() {
		if _, decided := defaults[name]; !decided {
			defaults[name] = settingBlock
		}
	}
}

// dropGrants removes the settings that let pages use files and devices of a machine;
// prohibitions stay. Pages keep file handles in IndexedDB (File System Access). With such
// a setting a page could read the files that its handles name, and a crafted profile can
// name any file.
func dropGrants(settings map[string]any) {
	for name, value := range settings {
		if !strings.HasPrefix(name, "file_system_") && !strings.HasSuffix(name, "_chooser_data") || forbids(value) {
			continue
		}
		origins, ok := value.(map[string]any)
		if !ok {
			delete(settings, name)
			continue
		}
		for origin, exception := range origins {
			if of, ok := exception.(map[string]any); !ok || !forbids(of["setting"]) {
				delete(origins, origin)
			}
		}
		if len(origins) == 0 {
			delete(settings, name)
		}
	}
}

// forbids reports whether the value of a content setting, decoded from JSON, is "block".
func forbids(value any) bool {
	n, err := strconv.Atoi(fmt.Sprint(value))
	return err == nil && n == settingBlock
}

func ruleSettings(r state.PermissionRule) []string {
	settings, _ := settingsOf(r.Permission)
	return settings
}

func setting(d state.Decision) int {
	if d == state.DecisionAllow {
		return settingAllow
	}
	return settingBlock
}

func everywhere(origin string) bool { return origin == "" || origin == "*" }

// pattern returns an origin in the form of Chrome's exceptions: always with its port, and
// for any embedder.
func pattern(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return origin + ",*"
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	host := u.Hostname()
	if host != u.Host && u.Host[0] == '[' {
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host + ":" + port + ",*"
}
