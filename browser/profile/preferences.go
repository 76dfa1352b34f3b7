package profile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Prepare prepares a profile for Chrome: an unpacked environment, or an empty folder for
// a fresh profile.
type Prepare struct {
	// Folder is the profile's folder; "" is [Default].
	Folder string
	// Empty removes the folder's contents first.
	Empty bool
	// RestoreTabs lets Chrome reopen the tabs of its session files. Without it, these
	// files are removed; session cookies are restored either way.
	RestoreTabs bool
	// StaleSessionStorage removes the tabs' sessionStorage, which is older than the state
	// that will be applied. Otherwise items that the site had removed would reappear.
	StaleSessionStorage bool
	// Policy is the permission policy for pages. Before is the policy that the
	// environment was saved with, which Policy replaces. Nil is no policy.
	Policy, Before *state.PermissionPolicy
	// Languages are the languages reported to sites, as in Accept-Language without
	// weights ("de-DE,de"). "" keeps the profile's own.
	Languages string
	// Proxy is the proxy for all requests; nil is none.
	Proxy *Proxy
	// Extensions lists the extensions that the profile may have. Entries of other
	// unpacked extensions are removed.
	Extensions []Extension
}

// Proxy is a profile's proxy, in the syntax of --proxy-server and --proxy-bypass-list.
type Proxy struct{ Server, Bypass string }

// Run prepares the profile of the user data directory for the Chrome of a session. It
// sets:
//
//   - session.restore_on_startup 1 ("continue where you left off"): without it
//     Chrome deletes session cookies when it starts, and sessionStorage with
//     the tabs (ShouldRestoreOldSessionCookies, profile_impl.cc);
//   - a decision on every permission for which Chrome would prompt a person;
//   - a normal exit, so that Chrome does not ask whether to restore tabs after a crash;
//   - the list of addresses that Chrome refuses;
//   - that nothing is printed;
//   - the paths of the profile's own extensions.
//
// It removes:
//
//   - folders of another machine, for downloads and unpacked extensions;
//   - policies in the profile, and an administrator's settings;
//   - session files whose pages could read files of the machine;
//   - settings of extensions that extensions may not set;
//   - grants that let pages use files or devices of a machine;
//   - paths of downloaded files.
//
// Preferences that are not valid JSON are archive_damaged. The written files belong to
// the daemon; the caller must give them to Chrome's user. Run returns the IDs of the
// extensions that the profile does not know. Chrome does not load these automatically.
func (p Prepare) Run(ctx context.Context, userDataDir string) (unknown []string, err error) {
	const op = "profile.prepare"
	if err := checkNoLink(userDataDir); err != nil {
		return nil, err
	}
	// A Chrome that used this directory may have left links. A root neither reads nor
	// writes through a link that leads out of it.
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile's folder cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	folder := p.Folder
	if folder == "" {
		folder = Default
	}
	if p.Empty {
		if err := root.RemoveAll(folder); err != nil {
			return nil, fault.Wrap(err, fault.StoreFailed, op, "an earlier profile could not be removed")
		}
	}
	if err := root.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile's folder could not be created")
	}
	for name, drop := range map[string]bool{
		"Sessions": !p.RestoreTabs, "Sessions_Encrypted": !p.RestoreTabs, // Chrome 156 writes both
		"Session Storage": p.StaleSessionStorage,
	} {
		if !drop {
			continue
		}
		if err := root.RemoveAll(path.Join(folder, name)); err != nil {
			return nil, fault.Wrap(err, fault.StoreFailed, op, "the saved tabs could not be removed")
		}
	}
	if p.RestoreTabs {
		if err := dropFormFiles(root, folder); err != nil {
			return nil, err
		}
	}
	if err := dropDownloads(ctx, root, userDataDir, folder); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	err = edit(root, path.Join(folder, "Secure Preferences"), false, func(prefs map[string]any) {
		dropManaged(prefs)
		p.placeExtensions(prefs, known)
	})
	if err != nil {
		return nil, err
	}
	err = edit(root, path.Join(folder, "Preferences"), true, func(prefs map[string]any) {
		p.prepare(prefs)
		p.placeExtensions(prefs, known)
		unknown = p.addUnknownExtensions(prefs, known)
	})
	return unknown, err
}

func (p Prepare) prepare(prefs map[string]any) {
	dropManaged(prefs)
	if urls := blockedURLs(); len(urls) > 0 {
		prefs[policyPreferences] = map[string]any{"url_blocklist": urls}
	}
	object(prefs, "session")["restore_on_startup"] = 1
	profile := object(prefs, "profile")
	profile["exit_type"] = "Normal"
	profile["exited_cleanly"] = true
	writePolicy(profile, p.Policy, p.Before)
	// window.print() would open a dialog, and the page would wait for it for ever. The
	// preference does not affect Page.printToPDF (Chrome 156).
	object(prefs, printingPreferences)[printingEnabled] = false
	for _, folder := range []string{"download", "savefile"} {
		delete(object(prefs, folder), "default_directory")
	}
	if p.Languages != "" {
		// Pages see the first; Chrome computes it from the second.
		object(prefs, "intl")["accept_languages"] = p.Languages
		object(prefs, "intl")["selected_languages"] = p.Languages
	}
	delete(prefs, "proxy")
	delete(object(prefs, "webrtc"), "ip_handling_policy")
	if p.Proxy != nil {
		prefs["proxy"] = map[string]any{"mode": "fixed_servers", "server": p.Proxy.Server, "bypass_list": p.Proxy.Bypass}
		// WebRTC would bypass the proxy with UDP and reveal the machine's addresses.
		object(prefs, "webrtc")["ip_handling_policy"] = "disable_non_proxied_udp"
	}
}

// policyPreferences is the key of the preferences that Chrome's policies set. With it a
// profile could allow what Stasis refuses, such as addresses.
const policyPreferences = "policy"

// printingPreferences and printingEnabled are the keys of the preference that lets pages
// and people print. Chrome's settings cannot change it.
const printingPreferences, printingEnabled = "printing", "enabled"

// object returns the JSON object at a key, and creates it if it is missing.
func object(parent map[string]any, key string) map[string]any {
	if o, ok := parent[key].(map[string]any); ok {
		return o
	}
	o := map[string]any{}
	parent[key] = o
	return o
}

// edit applies a change to a preferences file. If create is set, it creates a missing
// file.
func edit(root *os.Root, file string, create bool, change func(map[string]any)) error {
	const op = "profile.prepare"
	prefs := map[string]any{}
	raw, err := read(root, file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !create:
		return nil
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fault.Wrap(err, fault.StoreFailed, op, "the profile's preferences could not be read")
	default:
		if prefs, err = parse(raw); err != nil {
			return fault.Wrap(err, fault.ArchiveDamaged, op, "the profile's preferences are not JSON")
		}
	}
	change(prefs)
	out, err := json.Marshal(prefs)
	if err != nil {
		return fault.Wrap(err, fault.Internal, op, "")
	}
	return fault.Wrap(root.WriteFile(file, out, 0o600), fault.StoreFailed, op, "the profile's preferences could not be written")
}

// parse decodes a preferences file. Numbers stay unchanged: some are 64-bit times that a
// float would round.
func parse(raw []byte) (map[string]any, error) {
	prefs, _ := decode(raw).(map[string]any)
	if prefs == nil {
		return nil, errNotObject
	}
	return prefs, nil
}

// decode decodes JSON as [parse] does; nil if it is none.
func decode(raw []byte) (value any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return nil
	}
	return value
}

var errNotObject = errors.New("not a JSON object")

// maxPreferences bounds a preferences file, in bytes; real ones have a few hundred
// kilobytes. Decoded JSON takes up to thirty times as much memory.
const maxPreferences = 8 << 20

// errNoPreferences is the error for something that cannot be a preferences file.
var errNoPreferences = fmt.Errorf("not a regular file of at most %d MiB", maxPreferences>>20)

// read reads a file that a Chrome left. It must be a regular file of bounded size: a
// named pipe would block the daemon, and a huge file would fill its memory.
func read(root *os.Root, file string) (_ []byte, err error) {
	f, err := root.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPreferences {
		return nil, errNoPreferences
	}
	return io.ReadAll(f)
}
