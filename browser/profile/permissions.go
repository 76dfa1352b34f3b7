package profile

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/stasisd/stasis/state"
)

// Content settings of Chromium's components/content_settings registry.
const (
	settingAllow = 1
	settingBlock = 2
)

// settingsOf are the content settings that a permission's decision sets, and
// whether Chrome would ask a person about it. Where it would not, the policy's
// default leaves Chrome's own: rules alone decide it.
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

// Asks reports whether Chrome would ask a person about a permission.
func Asks(permission string) bool {
	_, asks := settingsOf(permission)
	return asks
}

// askingSettings are the content settings that Chrome would ask a person
// about. Nobody is there to answer and the page's call would never return, so
// each is decided up front. Those of devices are denied whatever the policy
// says: Chrome would still have somebody choose one.
func askingSettings() []string {
	all := []string{"ar", "bluetooth_guard", "bluetooth_scanning", "file_system_write_guard", "hand_tracking",
		"hid_guard", "serial_guard", "smart_card_guard", "usb_guard", "vr"}
	for _, name := range state.Permissions() {
		if settings, asks := settingsOf(name); asks {
			all = append(all, settings[0])
		}
	}
	return all
}

// decide writes the policy into a profile's preferences: its default and rules
// for all origins as Chrome's defaults, so that decisions that the environment
// has for an origin stay, rules for an origin as exceptions. What an earlier
// policy wrote is taken back first. Without a policy what Chrome would ask is
// denied, but for what the environment has decided itself.
func decide(profile map[string]any, policy, before *state.PermissionPolicy) {
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
	for _, name := range askingSettings() {
		if _, decided := defaults[name]; !decided {
			defaults[name] = settingBlock
		}
	}
}

// dropGrants forgets which files and devices of a machine a profile lets pages use;
// what it forbids stays. A page keeps handles of files in IndexedDB (File System
// Access); with such a setting it reads what they name, and a profile can be made to
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

// forbids reports whether the value of a content setting, as JSON has it, is "block".
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

// pattern is an origin as Chrome writes it in an exception: always with its
// port, below any embedder.
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
