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

// Prepare readies a profile for Chrome: an environment that was unpacked, or
// an empty folder for a fresh one.
type Prepare struct {
	// Folder is the profile's; empty: [Default].
	Folder string
	// Empty removes what the folder holds first.
	Empty bool
	// RestoreTabs lets Chrome reopen the tabs of its session files. Without it
	// they are removed; session cookies come back either way.
	RestoreTabs bool
	// StaleSessionStorage drops the tabs' sessionStorage, which is older than
	// what will be laid over it: what the site had removed would come back.
	StaleSessionStorage bool
	// Policy decides what pages may; Before is the one that the environment was
	// saved with, and that this one replaces. Nil is none.
	Policy, Before *state.PermissionPolicy
	// Languages are what sites are told, as in Accept-Language without weights
	// ("de-DE,de"); empty leaves the profile's own.
	Languages string
	// Proxy is what requests go through; nil is none.
	Proxy *Proxy
	// Extensions are those that the profile may have. Others that lie in a
	// folder of their own are forgotten.
	Extensions []Extension
}

// Proxy is a profile's proxy, in the words of --proxy-server and
// --proxy-bypass-list.
type Proxy struct{ Server, Bypass string }

// Run writes the preferences that every session's Chrome needs into the
// profile of the user data directory:
//
//   - session.restore_on_startup 1 ("continue where you left off"): without it
//     Chrome deletes session cookies when it starts and sessionStorage with
//     the tabs (ShouldRestoreOldSessionCookies, profile_impl.cc);
//   - a decision on every permission that Chrome would ask a person about;
//   - a normal exit, so that no crash gate holds the tabs back;
//   - no folder of another machine: downloads and unpacked extensions;
//   - no policy of the profile's own, and the list of addresses that Chrome refuses;
//   - no session files whose pages may read other files than their own;
//   - no settings of an administrator, and of extensions only those that they may set;
//   - no files or devices of a machine that pages may use;
//   - no downloads whose files lie on a machine;
//   - its own extensions, at their place.
//
// Preferences that cannot be read as JSON are archive_damaged. What is written
// belongs to the daemon; handing it to Chrome's user is the caller's. Run returns
// the IDs of those extensions that the profile does not know, which Chrome will
// not load by itself.
func (p Prepare) Run(ctx context.Context, userDataDir string) (unknown []string, err error) {
	const op = "profile.prepare"
	if err := checkReal(userDataDir); err != nil {
		return nil, err
	}
	// A Chrome may have lived here and left links behind: nothing is read or
	// written through one that leads out.
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
		return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile's folder could not be made")
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
		unknown = p.announceExtensions(prefs, known)
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
	decide(profile, p.Policy, p.Before)
	for _, folder := range []string{"download", "savefile"} {
		delete(object(prefs, folder), "default_directory")
	}
	if p.Languages != "" {
		// The first is what pages are told, the second what it is made from.
		object(prefs, "intl")["accept_languages"] = p.Languages
		object(prefs, "intl")["selected_languages"] = p.Languages
	}
	delete(prefs, "proxy")
	delete(object(prefs, "webrtc"), "ip_handling_policy")
	if p.Proxy != nil {
		prefs["proxy"] = map[string]any{"mode": "fixed_servers", "server": p.Proxy.Server, "bypass_list": p.Proxy.Bypass}
		// WebRTC would send datagrams past the proxy and tell the machine's addresses.
		object(prefs, "webrtc")["ip_handling_policy"] = "disable_non_proxied_udp"
	}
}

// policyPreferences is where Chrome keeps what its policies set. A profile could
// allow with it what Stasis refuses, such as addresses.
const policyPreferences = "policy"

// object returns the JSON object at the key, made if it is not there.
func object(parent map[string]any, key string) map[string]any {
	if o, ok := parent[key].(map[string]any); ok {
		return o
	}
	o := map[string]any{}
	parent[key] = o
	return o
}

// edit applies a change to a preferences file; create makes a missing one.
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

// parse decodes a preferences file. Numbers stay as written: some are 64-bit times
// that a float would round.
func parse(raw []byte) (prefs map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&prefs); err != nil || prefs == nil {
		return nil, errors.Join(err, errNotObject)
	}
	return prefs, nil
}

var errNotObject = errors.New("not a JSON object")

// maxPreferences bounds a preferences file, in bytes; real ones have some hundred
// kilobytes. Read as JSON it takes up to thirty times as much memory.
const maxPreferences = 8 << 20

// errNoPreferences is the error of what cannot be a preferences file.
var errNoPreferences = fmt.Errorf("it is no plain file of at most %d MiB", maxPreferences>>20)

// read reads a file that a Chrome left: a plain one of a sane size, for a pipe
// in its place would hold the daemon up and a huge one fill its memory.
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
